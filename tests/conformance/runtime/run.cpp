// SPDX-License-Identifier: BSL-1.0
// Fibers that run, park and wake: adoption, hand-off, budgets, scale.
#include <unistd.h>

#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include <ramie/nursery.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

#include <ramie/nursery.hpp>
#include <ramie/runtime/constants.hpp>

namespace conformance_run {

using test::fiber_group;
using test::with_workers;

std::size_t resident_bytes() {
  long pages = 0;
  if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<std::size_t>(pages) * 4096;
}

TEST_CASE("run returns what the fiber returns", "[conformance][run]") {
  CHECK(ramie::run([] { return 42; }) == 42);
  int target = 1;
  int& same = ramie::run([&]() -> int& { return target; });
  CHECK(&same == &target);
  CHECK(*ramie::run([] { return std::make_unique<int>(7); }) == 7);
  bool ran = false;
  ramie::run(with_workers(1), [&] { ran = ramie::this_fiber::exists(); });
  CHECK(ran);
  CHECK_FALSE(ramie::this_fiber::exists());
}

TEST_CASE("run throws what the fiber throws", "[conformance][run]") {
  CHECK_THROWS_AS(ramie::run([] { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST_CASE("several threads may run in one runtime", "[conformance][run]") {
  ramie::runtime rt(with_workers(2));
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int i = 1; i <= 8; ++i) threads.emplace_back([&, i] { sum += rt.run([i] { return i; }); });
  for (auto& t : threads) t.join();
  CHECK(sum == 36);
}

TEST_CASE("workers start lazily", "[conformance][workers]") {
  ramie::runtime rt(with_workers(4));
  CHECK(rt.stats().live_workers == 0);
  rt.run([] {});
  CHECK(rt.stats().live_workers >= 1);
}

TEST_CASE("a fiber that never parks costs no switch and no stack", "[conformance][adoption]") {
  ramie::runtime rt(with_workers(1));
  constexpr int count = 1'000;
  ramie::runtime_stats before, after;
  rt.run([&] {
    fiber_group c(rt);
    c.spawn([] {});
    c.join();  // the worker now has all it needs
    before = rt.stats();
    fiber_group all(rt);
    for (int i = 0; i < count; ++i) all.spawn([] {});
    all.join();
    after = rt.stats();
  });
  CHECK(after.total.finished_in_place - before.total.finished_in_place == count);
  CHECK(after.total.started - before.total.started == count);
  CHECK(after.total.adopted == before.total.adopted);
  CHECK(after.stack_slots == before.stack_slots);
  // The root leaves once and comes back once, each by way of a loop; the thousand add nothing.
  CHECK(after.total.switches - before.total.switches <= 4);
}

TEST_CASE("a fiber that parks keeps the stack it was called on", "[conformance][adoption]") {
  ramie::runtime rt(with_workers(1));
  test::runtime_internal::gate door;
  rt.run([&] {
    fiber_group c(rt);
    const auto before = rt.stats();
    for (int i = 0; i < 10; ++i) c.spawn([&] { test::wait_at(door); });
    ramie::yield();
    const auto parked = rt.stats();
    if (parked.total.adopted - before.total.adopted < 10) std::abort();
    door.open();
    c.join();
  });
  CHECK(rt.stats().total.adopted >= 10);
}

TEST_CASE("an unstarted fiber holds no stack", "[conformance][scale]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  const int count = test::scaled(1'000'000, 1'000);
  std::size_t grown = 0;
  std::uint64_t slots = 0;
  rt.run([&] {
    fiber_group c(rt);
    const auto before = resident_bytes();
    for (int i = 0; i < count; ++i) c.spawn([] {});
    grown = resident_bytes() - before;
    slots = rt.stats().stack_slots;
    c.join();
    if (c.ran() != count) std::abort();
  });
  if (!test::sanitized && !test::under_valgrind()) CHECK(grown < 250'000'000);
  CHECK(slots <= 4);
}

TEST_CASE("many fibers can be parked at once, each guarded, each woken once", "[conformance][scale]") {
  auto o = with_workers(2);
  o.stack_size = test::sanitized ? 64 * 1024 : 16 * 1024;  // the sanitizers' own calls need more
  ramie::runtime rt(o);
  const int count = test::large() && !test::sanitized ? 1'000'000 : test::scaled(100'000, 1'000);
  test::runtime_internal::gate door;
  std::atomic<int> woken{0};
  std::uint64_t in_use = 0;
  double bytes_each = 0;
  rt.run([&] {
    fiber_group c(rt);
    const auto before = resident_bytes();
    std::atomic<int> arrived{0};
    for (int i = 0; i < count; ++i) {
      c.spawn([&] {
        arrived.fetch_add(1, std::memory_order_relaxed);
        test::wait_at(door);
        woken.fetch_add(1, std::memory_order_relaxed);
      });
    }
    while (arrived.load() != count) ramie::yield();
    in_use = rt.stats().stacks_in_use;
    bytes_each = static_cast<double>(resident_bytes() - before) / count;
    door.open();
    c.join();
    if (c.ran() != count) std::abort();
  });
  CHECK(woken == count);
  CHECK(in_use >= static_cast<std::uint64_t>(count));
  // One page of stack, a frame, a closure.
  if (!test::sanitized && !test::under_valgrind()) CHECK(bytes_each < 4'700);
}

TEST_CASE("yield goes round", "[conformance][fairness]") {
  ramie::runtime rt(with_workers(1));
  test::journal<int> order;
  rt.run([&] {
    fiber_group c(rt);
    for (int i = 0; i < 3; ++i) {
      c.spawn([&order, i] {
        for (int k = 0; k < 3; ++k) {
          order.add(i);
          ramie::yield();
        }
      });
    }
  });
  CHECK(order.entries() == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("who spawns many and yields in between does not run ahead of them", "[conformance][fairness]") {
  constexpr int burst = 700;
  constexpr auto max_batch = ramie::runtime_internal::max_injection_batch;
  int started = 0;
  std::vector<int> seen;
  auto alone = with_workers(1);
  alone.elastic = false;
  ramie::run(alone, [&] {
    ramie::nursery n;
    for (int i = 1; i <= 4 * burst; ++i) {
      n.spawn([&started] { ++started; });
      if (i % burst != 0) continue;
      ramie::yield();
      seen.push_back(started);
    }
  });
  // But for those that were taken from the injection queue together and not all run when its last one had its turn.
  REQUIRE(seen.size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(seen[static_cast<std::size_t>(i)] > (i + 1) * burst - static_cast<int>(max_batch));
}

// A pair that keeps waking each other through the LIFO slot must not starve the ring, and a busy local
// queue must not starve the injection queue.
TEST_CASE("ping-pong starves neither the ring nor the injection queue", "[conformance][fairness]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  std::atomic<bool> from_ring{false}, from_outside{false}, inside{false};
  std::thread outside;
  rt.run([&] {
    fiber_group c(rt);
    outside = std::thread([&] {
      test::until([&] { return inside.load(); });
      rt.run([&] { from_outside = true; });
    });
    for (int i = 0; i < 2; ++i) {
      c.spawn([&] {
        inside = true;
        while (!from_ring || !from_outside) ramie::yield();
      });
    }
    c.spawn([&] { from_ring = true; });
  });
  outside.join();
  CHECK(from_ring);
  CHECK(from_outside);
}

TEST_CASE("a woken fiber runs before older ring entries, three times in a row at most", "[conformance][fairness]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  const auto before = rt.stats().total.lifo_hits;
  test::journal<int> journal;
  rt.run([&] {
    test::runtime_internal::gate doors[6];
    fiber_group c(rt);
    for (int i = 0; i < 6; ++i) {
      c.spawn([&, i] {
        test::wait_at(doors[i]);
        journal.add(i);
        if (i + 1 < 6) doors[i + 1].open();  // each wakes the next: a chain through the LIFO slot
      });
    }
    ramie::yield();
    ramie::yield();  // all six are parked now, and a tick may have ended: order below is what counts
    for (int i = 0; i < 3; ++i) c.spawn([&, i] { journal.add(100 + i); });
    doors[0].open();
    c.join();
  });
  const auto order = journal.entries();
  // The chain gets at most three turns in a row before an older entry of the ring gets one.
  int run = 0, longest = 0;
  bool ring_left = true;
  for (const int id : order) {
    run = id < 100 ? run + 1 : 0;
    if (id == 102) ring_left = false;
    if (ring_left) longest = std::max(longest, run);
  }
  CHECK(order.size() == 9);
  CHECK(longest <= 3);
  CHECK(rt.stats().total.lifo_hits > before);
}

TEST_CASE("a full ring overflows in batches", "[conformance][queues]") {
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  rt.run([&] {
    fiber_group c(rt);
    for (int i = 0; i < 1'000; ++i) c.spawn([] {});
  });
  const auto s = rt.stats();
  CHECK(s.total.overflows >= 5);
  CHECK(s.total.batch_fetches >= 5);
  CHECK(s.total.finished_in_place >= 1'000);
}

TEST_CASE("work spreads over workers", "[conformance][stealing]") {
  ramie::runtime rt(with_workers(4));
  std::atomic<int> meeting{0};
  // Four fibers that spin until all four run: possible only on four workers at once.
  rt.run([&] {
    fiber_group c(rt);
    for (int i = 0; i < 3; ++i) {
      c.spawn([&] {
        meeting.fetch_add(1);
        test::until([&] { return meeting.load() >= 4; });
      });
    }
    meeting.fetch_add(1);
    test::until([&] { return meeting.load() >= 4; });
    c.join();
  });
  CHECK(meeting == 4);
  test::until([&] { return rt.stats().live_workers >= 4; });  // counted when it may have done all this
}

TEST_CASE("another size class gets a stack of that class", "[conformance][stacks]") {
  ramie::runtime rt(with_workers(1));
  std::atomic<int> ok{0};
  rt.run([&] {
    fiber_group c(rt);
    for (int i = 0; i < 4; ++i) {
      c.spawn(
          [&] {
            volatile char deep[900 * 1024];
            for (std::size_t k = 0; k < sizeof deep; k += 4096) deep[k] = 1;
            ramie::yield();
            ok += deep[0];
          },
          1024 * 1024);
    }
    c.spawn([&] { ok += 10; });
  });
  CHECK(ok == 14);
}

TEST_CASE("the root fiber has as much stack as a thread", "[conformance][stacks]") {
  const int sum = ramie::run([] {
    volatile char deep[7 * 1024 * 1024];
    for (std::size_t k = 0; k < sizeof deep; k += 4096) deep[k] = 1;
    return deep[0] + deep[4096];
  });
  CHECK(sum == 2);
}

}  // namespace conformance_run
