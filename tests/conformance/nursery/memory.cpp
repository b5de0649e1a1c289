// SPDX-License-Identifier: BSL-1.0
// What spawning takes of memory, and what happens when there is none.
#include <sys/resource.h>

#include <array>
#include <atomic>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_memory {

using ramie::nursery;
using test::with_workers;

long peak_kilobytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

TEST_CASE("spawning for ever into one nursery stays flat in memory", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  const long total = test::large() ? 10'000'000 : 1'000'000;
  struct accounts {
    long before, after;
  };
  const auto measure = [total](bool by_descendant, bool large_closures) {
    accounts a{};
    ramie::run(with_workers(2), [&] {
      nursery n;
      const auto accept = [&n, total, large_closures, &a] {
        std::array<char, 900> weight{};
        for (long i = 0; i < total; ++i) {
          if (large_closures && i % 16 == 0) {
            n.spawn([weight] { (void)weight; });
          } else {
            n.spawn([] {});
          }
          if (i % 64 == 0) ramie::yield();
          if (i == total / 10) a.before = peak_kilobytes();
          while (n.live_fibers() > 10'000) ramie::yield();
        }
        a.after = peak_kilobytes();
      };
      if (by_descendant) {
        n.spawn(accept);
      } else {
        accept();
      }
      n.join();
    });
    return a;
  };
  for (const bool by_descendant : {false, true}) {
    for (const bool large_closures : {false, true}) {
      const accounts a = measure(by_descendant, large_closures);
      INFO(by_descendant << large_closures << ": " << a.before << " KB after a tenth, " << a.after << " KB at the end");
      CHECK(a.after - a.before < 16 * 1024);
    }
  }
}

TEST_CASE("a nursery with a few small children allocates nothing", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  std::uint64_t allocated = 99;
  ramie::run(with_workers(1), [&] {
    const auto round = [] {
      nursery n;
      int sum = 0;
      for (int i = 0; i < 4; ++i) n.spawn([&sum, i] { sum += i; });
      auto t = n.spawn([a = 1L, b = 2L, c = 3L, d = 4L, e = 5L, f = 6L] { return a + b + c + d + e + f; });
      n.join();
      return sum + t.get();
    };
    for (int i = 0; i < 100; ++i) (void)round();
    const auto before = test::allocations();
    for (int i = 0; i < 1'000; ++i) (void)round();
    allocated = test::allocations() - before;
  });
  CHECK(allocated == 0);
}

// Every k-th allocation fails once, for all k: whatever was spawned ends, nothing leaks, the nursery goes on.
TEST_CASE("out of memory halfway through a spawn loses nothing", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  int failures = 0;
  for (int k = 1; k < 60; ++k) {
    test::census closures;
    std::atomic<int> ran{0};
    struct {
      long spawned = 0;
      bool failed = false;
    } seen;
    ramie::run(with_workers(1), [&] {
      nursery n;
      test::fail_allocation(k);
      try {
        for (int i = 0; i < 3'000; ++i) {
          n.spawn({.name = i % 100 == 0 ? "one with a name longer than a small string" : ""},
                  [&ran, c = test::citizen(closures)] { ran.fetch_add(1); });
          ++seen.spawned;
        }
        n.make<std::array<char, 3'000>>();
      } catch (const std::bad_alloc&) {
        seen.failed = true;
      }
      test::fail_allocation(0);
      failures += seen.failed;
      if (seen.failed) {
        n.spawn([&ran] { ran.fetch_add(1); });  // it still works
        ++seen.spawned;
      }
      n.join();
    });
    CHECK(ran.load() == seen.spawned);
    CHECK(closures.alive() == 0);
  }
  CHECK(failures > 10);
}

// A fiber that has a frame already, because of its name, must always find a place in a queue. It may push unstarted
// children out of a full ring, for which there must be one as well.
TEST_CASE("children with a name push out of the ring as many without one as there are", "[conformance][nursery]") {
  constexpr int rounds = 200, plain = 128;  // a full ring of 256 keeps half: every 129th push finds it full
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> ran{0};
    ramie::run(with_workers(workers), [&ran] {
      // From here on there are frames, and none is made for which the queue would grow.
      ramie::with_nursery([](nursery& first) {
        for (int i = 0; i < rounds; ++i) first.spawn({.name = "named"}, [] {});
      });
      nursery n;
      const auto count = [&ran] { ran.fetch_add(1, std::memory_order_relaxed); };
      for (int i = 1; i < plain; ++i) n.spawn(count);
      for (int round = 0; round < rounds; ++round) {
        n.spawn({.name = "named"}, count);
        for (int i = 0; i < plain; ++i) n.spawn(count);
      }
      n.join();
    });
    CHECK(ran.load() == plain - 1 + rounds * (plain + 1));
  }
}

}  // namespace conformance_nursery_memory
