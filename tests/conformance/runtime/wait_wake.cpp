// SPDX-License-Identifier: BSL-1.0
// Park and wake through the one door, by fibers and by plain threads.
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/platform/cpu.hpp>
#include <support/scheduler_access.hpp>
#include <support/fiber_group.hpp>
#include <support/permits.hpp>
#include <support/test.hpp>
#include "runtime/src/wait/wake.hpp"

namespace conformance_wait_wake {

using namespace ramie::runtime_internal;
using test::permits;
using test::fiber_group;
using test::with_workers;

TEST_CASE("fibers wake each other in turns, on any number of workers", "[conformance][wake]") {
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    ramie::runtime rt(with_workers(workers));
    permits ping, pong;
    const int rounds = test::scaled(20'000, 1'000);
    int served = 0;
    rt.run([&] {
      fiber_group c(rt);
      c.spawn([&] {
        for (int i = 0; i < rounds; ++i) {
          ping.pass();
          pong.take();
        }
      });
      c.spawn([&] {
        for (int i = 0; i < rounds; ++i) {
          ping.take();
          ++served;
          pong.pass();
        }
      });
    });
    CHECK(served == rounds);
  }
}

TEST_CASE("a hand-off goes from fiber to fiber with one switch", "[conformance][wake]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  permits ping, pong;
  constexpr int rounds = 1'000;
  ramie::runtime_stats before, after;
  rt.run([&] {
    fiber_group c(rt);
    c.spawn([&] {
      pong.take();
      for (int i = 0; i < rounds; ++i) {
        ping.pass();
        pong.take();
      }
      after = rt.stats();
      ping.pass();
    });
    c.spawn([&] {
      before = rt.stats();
      for (int i = 0; i <= rounds; ++i) {
        pong.pass();
        ping.take();
      }
    });
  });
  const auto switches = after.total.switches - before.total.switches;
  CHECK(switches >= 2 * rounds);
  CHECK(switches <= 2 * rounds + 4);  // one per hop
  CHECK(after.total.hand_offs - before.total.hand_offs >= 2 * rounds - 4);
}

TEST_CASE("plain threads wait and wake like fibers", "[conformance][proxy]") {
  ramie::runtime rt(with_workers(2));
  permits to_fiber, to_thread;
  const int rounds = test::scaled(2'000, 300);
  std::thread outside([&] {
    for (int i = 0; i < rounds; ++i) {
      to_fiber.pass();
      to_thread.take();
    }
  });
  rt.run([&] {
    for (int i = 0; i < rounds; ++i) {
      to_fiber.take();
      to_thread.pass();
    }
  });
  outside.join();
  CHECK(to_thread.balanced());
  CHECK(to_fiber.balanced());
}

// Comes true at a moment of the test's choice: while it is listed, or when the wait gives up.
class late_arrival final : public waitable {
 public:
  enum class moment { never, while_listed, when_given_up };
  explicit late_arrival(moment when) : when_(when) {}
  bool try_complete(waiter&) override { return there_; }
  bool publish(waiter& node) override {
    if (when_ == moment::while_listed && claim(node)) {
      node.outcome = 1;
      complete(*node.who);
    }
    return true;
  }
  void unpublish(waiter&) noexcept override { there_ = when_ == moment::when_given_up; }

 private:
  const moment when_;
  bool there_ = false;
};

// The outcome of a node's last wait says nothing about the next one: here the second wait is woken in vain, and then in
// earnest.
class waited_on_twice final : public waitable {
 public:
  bool try_complete(waiter&) override { return false; }
  bool publish(waiter& node) override {
    if (++published == 2) {
      waker(node).wake();
    } else if (claim(node)) {
      node.outcome = 1;
      complete(*node.who);
    }
    return true;
  }
  void unpublish(waiter&) noexcept override { ++unpublished; }
  int published = 0, unpublished = 0;
};

TEST_CASE("a node may be waited with again", "[conformance][wake]") {
  static const wait_reason why{"twice"};
  const auto published_and_unpublished = [](auto wait) {
    waited_on_twice on;
    waiter node;
    for (int i = 0; i < 2; ++i) (void)wait(on, node);
    return std::pair(on.published, on.unpublished);
  };
  const auto plainly = [](waitable& on, waiter& node) { return fiber_wait(on, node, why); };
  const auto fresh_first = [](waitable& on, waiter& node) { return fiber_wait_fresh_first(on, node, why); };
  const std::pair expected(3, 1);
  CHECK(published_and_unpublished(plainly) == expected);
  CHECK(ramie::run(with_workers(1), [&] { return published_and_unpublished(plainly); }) == expected);
  CHECK(ramie::run(with_workers(1), [&] { return published_and_unpublished(fresh_first); }) == expected);
}

TEST_CASE("what has come counts, though the deadline has passed", "[conformance][proxy][deadline]") {
  static const wait_reason why{"a late arrival"};
  const auto wait_for = [](late_arrival::moment when) {
    late_arrival on(when);
    waiter node;
    return fiber_wait_until(on, node, why, std::chrono::steady_clock::time_point::min());
  };
  using moment = late_arrival::moment;
  std::array<wait_result, 3> by_thread, by_fiber;
  const auto wait_for_all = [&](auto& ended) {
    ended = {wait_for(moment::never), wait_for(moment::while_listed), wait_for(moment::when_given_up)};
  };
  wait_for_all(by_thread);
  ramie::run(with_workers(1), [&] { wait_for_all(by_fiber); });
  const std::array<wait_result, 3> expected{wait_result::timed_out, wait_result::completed, wait_result::completed};
  CHECK(by_thread == expected);
  CHECK(by_fiber == expected);
}

TEST_CASE("a wake from a plain thread reaches sleeping workers", "[conformance][proxy]") {
  ramie::runtime rt(with_workers(2));
  for (int round = 0; round < test::scaled(300, 50); ++round) {
    gate door;
    std::thread outside([&] {
      // Only when every worker that lives is asleep.
      auto& sched = scheduler_of(rt);
      test::until([&] {
        return sched.pool.live() > 0 && std::all_of(sched.pool.workers().begin(), sched.pool.workers().end(), [](const auto& w) {
                 const auto s = w->life.state.load();
                 return s == worker_state::sleep || !has_thread(s);
               });
      });
      door.open();
    });
    rt.run([&] { test::wait_at(door); });
    outside.join();
  }
  CHECK(rt.stats().total.times_parked > 0);
}

TEST_CASE("a worker that naps after thefts that do not pay comes back when it is needed", "[conformance][idle]") {
  auto o = with_workers(2);
  o.elastic = false;  // nobody but the second worker can help
  ramie::runtime rt(o);
  const int rounds = test::scaled(20, 5);
  std::atomic<int> met{0};
  rt.run([&] {
    for (int round = 0; round < rounds; ++round) {
      for (int batch = 0; batch < (test::sanitized ? 40 : 200); ++batch) {
        fiber_group small(rt);
        for (int i = 0; i < 16; ++i) small.spawn([] {});
        small.join();
      }
      // Neither yields before the other has come: that takes both workers.
      std::atomic<int> here{0};
      fiber_group both(rt);
      for (int i = 0; i < 2; ++i) {
        both.spawn([&] {
          here.fetch_add(1);
          test::until([&] { return here.load() == 2; });
          met.fetch_add(1);
        });
      }
      both.join();
    }
  });
  CHECK(met.load() == 2 * rounds);
}

TEST_CASE("stale wakers are harmless", "[conformance][ticket]") {
  ramie::runtime rt(with_workers(2));
  const int rounds = test::scaled(5'000, 500);
  std::atomic<fiber*> target{nullptr};
  std::atomic<std::uint64_t> ticket{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> hecklers;
  for (int i = 0; i < 2; ++i) {
    hecklers.emplace_back([&] {
      while (!stop.load()) {
        // Tickets of the past, of now, and one that looks the same in 16 bits.
        fiber* const f = target.load();
        const auto t = ticket.load();
        waker(f, t).wake();
        waker(f, t - 1).wake();
        waker(f, t + 0x10000).wake();
      }
    });
  }
  int taken = 0;
  rt.run([&] {
    permits ping, pong;
    fiber_group c(rt);
    c.spawn([&] {
      target = current_fiber();
      for (int i = 0; i < rounds; ++i) {
        ping.take();
        ++taken;
        ticket = target.load()->wait_ticket.load();
        pong.pass();
      }
      target = nullptr;
    });
    c.spawn([&] {
      for (int i = 0; i < rounds; ++i) {
        ping.pass();
        pong.take();
      }
    });
  });
  stop = true;
  for (auto& h : hecklers) h.join();
  CHECK(taken == rounds);  // a false wake is only a spurious one
}

TEST_CASE("tickets go on when a frame is recycled", "[conformance][ticket]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  fiber* first = nullptr;
  std::uint64_t first_ticket = 0, second_ticket = 0;
  bool reused = false;
  rt.run([&] {
    {
      gate door;
      fiber_group c(rt);
      c.spawn([&] {
        test::wait_at(door);
        first = current_fiber();
        first_ticket = first->wait_ticket.load();
      });
      ramie::yield();
      door.open();
      c.join();
    }
    for (int i = 0; i < 1'000 && !reused; ++i) {
      gate door;
      fiber_group c(rt);
      c.spawn([&] {
        if (current_fiber() != first) return;
        reused = true;
        test::wait_at(door);
        second_ticket = first->wait_ticket.load();
      });
      ramie::yield();
      door.open();
      c.join();
    }
  });
  CHECK(reused);
  CHECK(second_ticket > first_ticket);
}

TEST_CASE("a refused publish leaves the fiber running", "[conformance][wake]") {
  struct closed final : waitable {
    int published = 0;
    bool try_complete(waiter&) override { return false; }
    bool publish(waiter&) override {
      ++published;
      return false;
    }
    void unpublish(waiter&) noexcept override {}
  } never;
  static const wait_reason why{"closed"};
  bool refused = false;
  ramie::run([&] {
    waiter node;
    refused = fiber_wait(never, node, why) == wait_result::refused;
    ramie::yield();
  });
  CHECK(refused);
  CHECK(never.published == 1);
}

TEST_CASE("a publish that throws leaves the fiber running", "[conformance][wake]") {
  struct broken final : waitable {
    bool try_complete(waiter&) override { return false; }
    bool publish(waiter&) override { throw std::runtime_error("no"); }
    void unpublish(waiter&) noexcept override {}
  } never;
  static const wait_reason why{"broken"};
  bool caught = false;
  ramie::run([&] {
    waiter node;
    try {
      (void)fiber_wait(never, node, why);
    } catch (const std::runtime_error&) {
      caught = true;
    }
    ramie::yield();
  });
  CHECK(caught);
}

// The waker comes between publish and the switch: the park is called off on the spot.
TEST_CASE("a wake before the switch keeps the fiber on its stack", "[conformance][wake]") {
  struct eager final : waitable {
    bool done = false;
    bool try_complete(waiter&) override { return done; }
    bool publish(waiter& node) override {
      done = true;
      if (claim(node)) {
        node.outcome = 1;
        complete(*node.who);  // PARKING: deferred
      }
      return true;
    }
    void unpublish(waiter&) noexcept override {}
  } now;
  static const wait_reason why{"eager"};
  ramie::runtime rt(with_workers(1));
  std::uint64_t parks = 99;
  rt.run([&] {
    const auto before = rt.stats().total.parks;
    waiter node;
    (void)fiber_wait(now, node, why);
    parks = rt.stats().total.parks - before;
  });
  CHECK(parks == 0);
}

// The transfer window: the partner has claimed, the parker commits, and only then is the element moved. Not many turns of
// waiting for others each time: beside somebody who computes each of them may take milliseconds.
TEST_CASE("a claimed fiber does not run before its partner is done", "[conformance][wake]") {
  ramie::runtime rt(with_workers(2));
  struct slow_partner final : waitable {
    std::atomic<waiter*> listed{nullptr};
    bool try_complete(waiter&) override { return false; }
    bool publish(waiter& node) override {
      listed = &node;
      return true;
    }
    void unpublish(waiter&) noexcept override { listed = nullptr; }
  } meeting;
  static const wait_reason why{"slow partner"};
  const int rounds = test::scaled(500, 100);
  int early = 0;
  std::atomic<bool> moved{false};
  std::thread partner([&] {
    for (int i = 0; i < rounds; ++i) {
      test::until([&] { return meeting.listed.load() != nullptr; });
      waiter* const node = meeting.listed.exchange(nullptr);
      fiber* const who = node->who;
      if (!claim(*node)) std::abort();
      test::until([&] { return who->word.load().state() != lifecycle::parking; });
      for (int k = 0; k < 50; ++k) ramie::platform::cpu_pause();  // the window, wide open
      std::this_thread::yield();
      node->outcome = 1;
      moved = true;
      complete(*who);
    }
  });
  rt.run([&] {
    for (int i = 0; i < rounds; ++i) {
      waiter node;
      (void)fiber_wait(meeting, node, why);
      early += !moved.exchange(false);
    }
  });
  partner.join();
  CHECK(early == 0);
}

}  // namespace conformance_wait_wake
