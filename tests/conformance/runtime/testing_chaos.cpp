// SPDX-License-Identifier: BSL-1.0
// Chaos mode: each kind happens, each can be switched off, and no promise is broken by any.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/scheduler_access.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>
#include <support/watchdog.hpp>

namespace conformance_testing_chaos {

using test::with_workers;

constexpr ramie::chaos_mode only_seed(std::uint64_t seed) {
  return {seed, false, false, false, false, false, false};
}

struct sum {
  long received = 0;
  long alive = 0;
  ramie::runtime_stats stats;
};

// Producers and consumers over channels, spawned in bursts; the sum is known. Beside somebody who computes it takes long,
// because workers in chaos yield a lot.
sum busy_program(test::watchdog& dog, unsigned workers, ramie::chaos_mode chaos, bool elastic = true) {
  auto o = with_workers(workers);
  o.elastic = elastic;
  o.chaos = chaos;
  ramie::runtime rt(o);
  test::census all;
  std::atomic<long> received{0};
  const int rounds = test::scaled(20, 5), pairs = 8, items = 20;
  rt.run([&] {
    for (int r = 0; r < rounds; ++r) {
      (void)dog.step();
      ramie::nursery n;
      for (int p = 0; p < pairs; ++p) {
        ramie::channel<std::shared_ptr<test::citizen>> pipe(static_cast<std::size_t>(p % 3));
        n.spawn([pipe, &all]() mutable {
          for (int i = 0; i < items; ++i) pipe.send(std::make_shared<test::citizen>(all));
          pipe.close();
        });
        n.spawn([pipe, &received]() mutable {
          for (auto item : pipe) received.fetch_add(item != nullptr ? 1 : 0);
        });
      }
      n.join();
    }
  });
  return {received.load() - long{rounds} * pairs * items, all.alive(), rt.stats()};
}

TEST_CASE("every kind of chaos happens, and nothing is lost by it", "[conformance][testing][chaos]") {
  test::watchdog dog([] {});
  ramie::chaos_stats seen;
  std::uint64_t migrations = 0;
  // More seeds only if dice and a loaded machine have kept something from happening.
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto got = busy_program(dog, 2, {seed});
    REQUIRE(got.received == 0);
    REQUIRE(got.alive == 0);
    CHECK(got.stats.live_workers <= 4);
    seen.yields += got.stats.chaos.yields;
    seen.wake_yields += got.stats.chaos.wake_yields;
    seen.steals += got.stats.chaos.steals;
    seen.held_back += got.stats.chaos.held_back;
    seen.promoted_workers += got.stats.chaos.promoted_workers;
    seen.retired_workers += got.stats.chaos.retired_workers;
    migrations += got.stats.total.migrations;
    const bool all_on_demand = seen.yields && seen.wake_yields && seen.steals && seen.held_back;
    if (all_on_demand && seen.promoted_workers && seen.retired_workers && migrations) break;
  }
  CHECK(seen.yields > 0);
  CHECK(seen.wake_yields > 0);
  CHECK(seen.steals > 0);
  CHECK(seen.held_back > 0);
  CHECK(seen.promoted_workers > 0);
  CHECK(seen.retired_workers > 0);
  CHECK(migrations > 0);
}

TEST_CASE("each kind of chaos can be had alone", "[conformance][testing][chaos]") {
  test::watchdog dog([] {});
  // Kinds that happened besides the one asked for.
  const auto others = [](const ramie::chaos_stats& all, std::uint64_t asked_for) {
    return all.yields + all.wake_yields + all.steals + all.held_back + all.promoted_workers + all.retired_workers -
           asked_for;
  };
  const auto alone = [&dog](bool ramie::chaos_mode::*kind, std::uint64_t seed = 7) {
    ramie::chaos_mode only = only_seed(seed);
    if (kind != nullptr) only.*kind = true;
    const auto got = busy_program(dog, 2, only);
    CHECK(got.received == 0);
    return got.stats.chaos;
  };
  const auto yields = alone(&ramie::chaos_mode::yields);
  CHECK(yields.yields > 0);
  CHECK(others(yields, yields.yields) == 0);
  const auto wake_yields = alone(&ramie::chaos_mode::wake_yields);
  CHECK(wake_yields.wake_yields > 0);
  CHECK(others(wake_yields, wake_yields.wake_yields) == 0);
  const auto delays = alone(&ramie::chaos_mode::delays);
  CHECK(delays.held_back > 0);
  CHECK(others(delays, delays.held_back) == 0);
  const auto steals = alone(&ramie::chaos_mode::steals);
  CHECK(others(steals, steals.steals) == 0);
  auto scaling = alone(&ramie::chaos_mode::scaling);
  // More seeds only if dice and a loaded machine have kept it from happening.
  for (std::uint64_t seed = 8; scaling.promoted_workers == 0 && seed < 50; ++seed) {
    scaling = alone(&ramie::chaos_mode::scaling, seed);
  }
  CHECK(scaling.promoted_workers > 0);
  CHECK(others(scaling, scaling.promoted_workers + scaling.retired_workers) == 0);
  CHECK(others(alone(&ramie::chaos_mode::migrations), 0) == 0);
  CHECK(others(alone(nullptr), 0) == 0);
}

TEST_CASE("chaos keeps to the pool's limits", "[conformance][testing][chaos]") {
  test::watchdog dog([] {});
  const auto fixed = busy_program(dog, 2, {3}, false);
  CHECK(fixed.received == 0);
  CHECK(fixed.stats.chaos.promoted_workers == 0);
  CHECK(fixed.stats.workers.size() == 2);
  for (const unsigned workers : {1u, 4u, 8u}) {
    const auto got = busy_program(dog, workers, {workers});
    CHECK(got.received == 0);
    CHECK(got.alive == 0);
    CHECK(got.stats.workers.size() <= 2 * workers);
  }
}

TEST_CASE("without chaos nothing of it is counted", "[conformance][testing][chaos]") {
  ramie::runtime rt(with_workers(2));
  rt.run([] {
    ramie::nursery n;
    for (int i = 0; i < 100; ++i) n.spawn([] { ramie::yield(); });
    n.join();
  });
  const auto seen = rt.stats().chaos;
  CHECK(seen.yields + seen.wake_yields + seen.steals + seen.held_back == 0);
  CHECK(seen.promoted_workers + seen.retired_workers == 0);
}

// The order in which fibers of one worker take from a channel: `slowly`, each step takes longer than the time for which a
// busy worker leaves its injection queue alone.
std::vector<int> order_of_takes(std::uint64_t seed, bool slowly) {
  auto o = with_workers(1);
  o.chaos = ramie::chaos_mode{seed};
  test::journal<int> steps;
  ramie::run(o, [&] {
    ramie::nursery n;
    ramie::channel<int> turn(1);
    for (int i = 0; i < 8; ++i) {
      n.spawn([&, i] {
        for (int k = 0; k < 16; ++k) {
          turn.send(i);
          const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(slowly ? 200 : 0);
          while (std::chrono::steady_clock::now() < until) {
          }
          ramie::nursery inner;
          inner.spawn([] {});
          inner.spawn([] { ramie::yield(); });
          inner.join();
          steps.add(*turn.recv());
        }
      });
    }
    n.join();
  });
  return steps.entries();
}

TEST_CASE("on one worker the same seed draws the same chaos, however fast the machine is", "[conformance][testing][chaos]") {
  std::vector<std::vector<int>> orders;
  for (std::uint64_t seed = 11; seed < 16; ++seed) {
    orders.push_back(order_of_takes(seed, false));
    CHECK(orders.back().size() == 8 * 16);
    CHECK(order_of_takes(seed, true) == orders.back());
  }
  CHECK(std::any_of(orders.begin(), orders.end(), [&](const auto& o) { return o != orders.front(); }));
}

TEST_CASE("a runtime in chaos sleeps when there is nothing to do", "[conformance][testing][chaos]") {
  auto o = with_workers(2);
  o.chaos = ramie::chaos_mode{5};
  ramie::runtime rt(o);
  rt.run([] {});
  const auto& idle = ramie::runtime_internal::scheduler_of(rt).pool.idle();
  const auto sleeps = [&rt] { return rt.stats().total.times_parked; };
  const auto sleeps_on = [&] {  // a worker that has announced its sleep may still have to count it
    const auto before = sleeps();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    return before != 0 && sleeps() == before && idle.load().all_parked();
  };
  test::until(sleeps_on);
  CHECK(rt.run([] { return 3; }) == 3);
}

}  // namespace conformance_testing_chaos
