// SPDX-License-Identifier: BSL-1.0
// What a wait promises to whoever is behind it: reasons, what is ready, deadlines, proxies. Clauses A2 to A31.
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_wait_contract {

using namespace ramie::runtime_internal;
using test::with_workers;

// A2: by a fiber's first wait, by one that goes the short way, and by a thread.
TEST_CASE("a parked fiber says what it waits for, and no longer than that", "[conformance][wake]") {
  std::vector<std::string> meanwhile;
  bool afterwards = false;
  ramie::channel<int> c(0);
  std::atomic<const fiber*> who{nullptr};
  const auto receive = [&] {
    (void)c.recv();
    afterwards = afterwards || self().reason.get() != nullptr;
  };
  const auto look = [&] {
    const wait_reason* const why = who.load()->reason.get();
    meanwhile.push_back(why == nullptr ? "nothing" : std::string(why->kind) + " " + why->where.file_name());
  };
  ramie::run(with_workers(1), [&] {
    ramie::nursery n;
    n.spawn([&] {
      who = &self();
      for (int i = 0; i < 2; ++i) receive();
    });
    for (int i = 0; i < 2; ++i) {
      ramie::yield();
      look();
      c.send(i);
    }
    n.join();
  });
  who = nullptr;
  std::thread outside([&] {
    who = &self();
    receive();
  });
  test::until([&] { return who.load() != nullptr && who.load()->word.load().state() == lifecycle::parked; });
  look();
  c.send(3);
  outside.join();
  REQUIRE(meanwhile.size() == 3);
  for (const auto& said : meanwhile) {
    CHECK(said.find("channel recv") == 0);
    CHECK(said.find("operations.cpp") != std::string::npos);
  }
  CHECK_FALSE(afterwards);
}

// A4
TEST_CASE("what is ready is not waited for", "[conformance][wake]") {
  struct ready final : waitable {
    int asked = 0, published = 0;
    bool try_complete(waiter&) override { return ++asked != 0; }
    bool publish(waiter&) override { return ++published == 0; }
    void unpublish(waiter&) noexcept override {}
  } now;
  static const wait_reason why{"ready"};
  std::uint64_t tickets = 99;
  bool completed = false;
  const auto wait = [&] {
    const auto before = self().wait_ticket.load();
    waiter node;
    completed = fiber_wait(now, node, why) == wait_result::completed;
    tickets = self().wait_ticket.load() - before;
  };
  wait();
  CHECK((completed && tickets == 0));
  ramie::run(with_workers(1), wait);
  CHECK((completed && tickets == 0));
  CHECK(now.asked == 2);
  CHECK(now.published == 0);
}

// A22: at the first look, and when it has become ready while the fiber was parked and only the cancellation woke it.
TEST_CASE("what is ready wins over a cancellation", "[conformance][wake][cancel]") {
  struct switched final : waitable {
    std::atomic<bool> on{false};
    bool try_complete(waiter&) override { return on.load(); }
    bool publish(waiter&) override { return true; }
    void unpublish(waiter&) noexcept override {}
  };
  static const wait_reason why{"switched"};
  test::journal<wait_result> ended;
  ramie::run(with_workers(1), [&] {
    const auto wait_for = [&](switched& what) {
      waiter node;
      ended.add(fiber_wait(what, node, why));
    };
    switched at_once, later;
    at_once.on = true;
    ramie::nursery n;
    n.spawn([&] { wait_for(later); });
    ramie::yield();
    later.on = true;
    n.cancel();
    wait_for(at_once);
  });
  CHECK(ended.entries() == std::vector{wait_result::completed, wait_result::completed});
}

// A7
TEST_CASE("a waiter is taken out of its list once, however often it is tried", "[conformance][wake]") {
  waiter first, second, never;
  wait_list list;
  list.add(first);
  list.add(second);
  list.remove(first);
  list.remove(first);
  list.remove(never);
  CHECK(list.first() == &second);
  CHECK(second.previous == nullptr);
  list.remove(second);
  list.remove(second);
  CHECK(list.empty());
  list.add(first);  // nothing of the old life is left
  CHECK(list.first() == &first);
  CHECK(first.next == nullptr);
  list.add(second);
  list.add(never);
  list.remove(second);
  list.remove(never);
  list.remove(second);  // it does not bring its old neighbours back
  CHECK(first.next == nullptr);
}

// A26: it comes true once it is listed, and nobody tells.
TEST_CASE("who is too late looks once more, fiber or thread", "[conformance][wake][time]") {
  struct silent final : waitable {
    bool on = false;
    bool try_complete(waiter&) override { return on; }
    bool publish(waiter&) override { return on = true; }
    void unpublish(waiter&) noexcept override {}
  };
  static const wait_reason why{"silent"};
  std::vector<wait_result> ended;
  const auto wait = [&] {
    silent what;
    waiter node;
    ended.push_back(fiber_wait_until(what, node, why, std::chrono::steady_clock::now() + std::chrono::milliseconds(1)));
  };
  wait();
  ramie::run(with_workers(1), wait);
  CHECK(ended == std::vector{wait_result::completed, wait_result::completed});
}

// A27
TEST_CASE("a deadline that can't be kept is refused before anything is listed", "[conformance][channel][time]") {
  namespace faults = ramie::platform::faults;
  bool refused = false, nobody_listed = false, kept = false;
  ramie::run(with_workers(1), [&] {
    ramie::channel<int> c(0);
    faults::plan_for(ramie::platform::fault::thread, 1, faults::for_good);  // the keeper's
    try {
      (void)c.recv_for(std::chrono::milliseconds(1));
    } catch (const std::system_error&) {
      refused = true;
    }
    faults::plan_for(ramie::platform::fault::thread, 0, 0);
    nobody_listed = c.try_send(1) == ramie::channel_status::would_block;
    kept = c.recv_for(std::chrono::milliseconds(1)).status() == ramie::channel_status::timed_out;
  });
  CHECK(refused);
  CHECK(nobody_listed);
  CHECK(kept);
}

// A31
TEST_CASE("a thread that ends passes its proxy on, with its tickets", "[conformance][proxy]") {
  const fiber* first = nullptr;
  const fiber* second = nullptr;
  std::uint64_t tickets[2] = {};
  static ramie::fiber_local<int> own;
  int found = 0;
  const auto wait_once = [&found](const fiber*& who, std::uint64_t& ticket) {
    std::thread([&] {
      who = &self();
      found += *own;  // the next thread starts with none
      own.set(7);
      ramie::channel<int> c(0);
      (void)c.recv_for(std::chrono::nanoseconds(1));
      ticket = who->wait_ticket.load();
    }).join();
  };
  wait_once(first, tickets[0]);
  wait_once(second, tickets[1]);
  CHECK(first == second);
  CHECK(tickets[1] > tickets[0]);
  CHECK(found == 0);
}

// U4
TEST_CASE("a near deadline is kept to the nanosecond", "[conformance][time]") {
  std::chrono::nanoseconds late{99};
  ramie::run(with_workers(1), [&] {
    timekeeper& keeper = this_worker()->sched.deadlines;
    const auto now = std::chrono::floor<std::chrono::milliseconds>(keeper.now());
    wake_up entry(now + std::chrono::nanoseconds(3'999'999));
    keeper.set(entry, waker(), now);
    late = keeper.earliest() - entry.when;
    keeper.remove(entry);
  });
  CHECK(late == std::chrono::nanoseconds(0));
}

// X9
TEST_CASE("a scope whose time has passed is cancelled before anything in it runs", "[conformance][cancel][deadline]") {
  bool at_once = false;
  ramie::run(with_workers(1), [&] {
    const auto passed = ramie::now() - std::chrono::nanoseconds(1);
    (void)ramie::with_deadline(passed, [&] { at_once = ramie::stop_requested(); });
  });
  CHECK(at_once);
}

}  // namespace conformance_wait_contract
