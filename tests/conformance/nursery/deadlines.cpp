// SPDX-License-Identifier: BSL-1.0
// Deadlines of scopes and nurseries: whose time comes, who is cut short, in which order.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_deadlines {

using namespace std::chrono_literals;
using ramie::cancel_kind;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

TEST_CASE("deadlines: each catches its own, the nearest wins", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  std::vector<std::string> said;
  ramie::run(o, [&] {
    gate never;
    nursery n;
    n.spawn([&] {
      const auto outer = ramie::with_timeout(10s, [&] {
        const bool inner = ramie::with_timeout(1s, [&] { test::wait_at(never); });
        said.push_back(inner ? "inner done" : "inner timed out");
        const auto value = ramie::with_timeout(1h, [] { return 5; });
        said.push_back(value == 5 ? "value" : "no value");
        (void)ramie::with_timeout(1h, [&] { test::wait_at(never); });
        said.push_back("not reached");
        return 1;
      });
      said.push_back(outer ? "outer done" : "outer timed out");
    });
    n.spawn([&] {
      ramie::yield();
      clock.advance(999ms);
      for (int i = 0; i < 3; ++i) ramie::yield();
      said.push_back("a second is almost over");
      clock.advance(1ms);
      for (int i = 0; i < 3; ++i) ramie::yield();
      clock.advance(9s);
    });
    n.join();
    int here = 7;
    const auto reference = ramie::with_deadline(ramie::now() + 1s, [&]() -> int& { return here; });
    said.push_back(&reference->get() == &here ? "reference" : "copy");
    const bool expired = ramie::with_timeout(-1s, [] { ramie::check_cancelled(); });
    const bool long_ago = ramie::with_timeout(std::chrono::hours::min(), [] { ramie::check_cancelled(); });
    said.push_back(expired || long_ago ? "late" : "expired");
  });
  CHECK(said == std::vector<std::string>{"a second is almost over", "inner timed out", "value", "outer timed out",
                                         "reference", "expired"});
}

TEST_CASE("a nursery's own deadline", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  std::atomic<int> in_time{0}, late{0};
  std::atomic<bool> waiting{false};
  ramie::run(o, [&] {
    gate never;
    nursery n;
    n.cancel_after(1s);
    n.cancel_after(5s);  // the later call replaces the earlier one
    n.spawn([&] {
      while (!waiting.load()) ramie::yield();
      clock.advance(2s);
      ramie::yield();
      if (!ramie::stop_requested()) in_time.fetch_add(1);
      clock.advance(4s);
    });
    n.spawn([&] {
      waiting.store(true);
      try {
        test::wait_at(never);
      } catch (const cancelled& c) {
        late.fetch_add(c.kind() == cancel_kind::deadline);
        throw;
      }
    });
    n.join();
    nursery unhurried;
    unhurried.cancel_after(std::chrono::hours::max());
    unhurried.join();
    nursery gone_in_time;
    gone_in_time.cancel_after(1s);
    gone_in_time.join();
  });
  clock.advance(1h);
  CHECK(in_time.load() == 1);
  CHECK(late.load() == 1);
}

TEST_CASE("deadlines by the machine's clock", "[conformance][nursery][deadline]") {
  bool done = true;
  ramie::run(with_workers(1), [&] {
    gate never;
    done = ramie::with_timeout(1ms, [&] { test::wait_at(never); });
  });
  CHECK_FALSE(done);
}

TEST_CASE("a deadline that has passed cancels at the first cancellation point", "[conformance][nursery][deadline]") {
  int passed = 0;
  for (const unsigned workers : {1u, 2u}) {
    ramie::run(test::with_workers(workers), [&] {
      for (int i = 0; i < 200; ++i) {
        if (ramie::with_timeout(0s, [] { ramie::check_cancelled(); })) ++passed;
        if (ramie::with_deadline(ramie::now(), [] { ramie::yield(); })) ++passed;
        ramie::nursery n;
        n.cancel_after(0s);
        n.spawn([&] { ++passed; });  // never starts
        n.join();
      }
    });
  }
  CHECK(passed == 0);
}

TEST_CASE("many deadlines come in order", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  test::journal<int> order;
  ramie::run(o, [&] {
    gate never;
    nursery n;
    std::atomic<int> waiting{0};
    for (int i = 0; i < 500; ++i) {
      n.spawn([&, when = (i * 193) % 500] {
        (void)ramie::with_timeout(std::chrono::seconds(when + 1), [&] {
          waiting.fetch_add(1);
          if (when % 7 == 0) return;  // removed before its time
          test::wait_at(never);
        });
        if (when % 7 != 0) order.add(when);
      });
    }
    while (waiting.load() != 500) ramie::yield();
    for (int s = 0; s < 501; ++s) {
      clock.advance(1s);
      for (int k = 0; k < 3; ++k) ramie::yield();
    }
    n.join();
  });
  const auto seen = order.entries();
  CHECK(seen.size() == 500 - 72);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

// The deadline comes at any moment of the join: whenever it does, the join ends.
TEST_CASE("a deadline reaches a join that is about to park", "[conformance][nursery][deadline]") {
  int ended = 0;
  const int rounds = test::scaled(300, 40);
  for (int round = 0; round < rounds; ++round) {
    ramie::manual_clock clock;
    auto o = with_workers(2);
    o.clock = &clock;
    std::atomic<bool> in_scope{false};
    std::thread hand([&] {
      test::until([&] { return in_scope.load(); });
      for (int i = 0; i < round; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      clock.advance(2s);
    });
    ramie::run(o, [&] {
      gate until_timeout;
      nursery n;
      n.spawn([&] { test::wait_at(until_timeout); });
      const bool in_time = ramie::with_timeout(1s, [&] {
        in_scope.store(true);
        n.join();
      });
      ended += !in_time;
      until_timeout.open();
      n.join();
    });
    hand.join();
  }
  CHECK(ended == rounds);
}

}  // namespace conformance_nursery_deadlines
