// SPDX-License-Identifier: BSL-1.0
// Random mixes of blocking calls, cancellations and calls left behind: every call that begins ends once, every fiber
// ends, nothing is left.
#include <atomic>
#include <chrono>
#include <thread>

#include <ramie/platform/cpu.hpp>
#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/reports.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_blocking_programs {

using namespace std::chrono_literals;

test::random_test this_test("blocking calls");

struct ledger {
  test::census things;
  std::atomic<long> begun{0}, ended{0}, returned{0}, thrown{0}, cancelled{0}, wrong{0};
};

struct deliberate {};

// A call of its own kind, and what must come back from it.
void one_call(test::dice& dice, ledger& l) {
  const unsigned kind = dice.below(8);
  const auto work = [&l, kind, load = test::citizen(l.things), spins = dice.below(50)] {
    l.begun.fetch_add(1);
    // Beside somebody who computes, each yield may take milliseconds, and there are thousands of calls.
    for (unsigned i = 0; i < spins; ++i) i % 16 == 0 ? std::this_thread::yield() : ramie::platform::cpu_pause();
    l.ended.fetch_add(1);
    if (kind == 0) throw deliberate();
    return kind;
  };
  try {
    const unsigned got = kind % 2 == 0 ? ramie::blocking(work) : ramie::blocking(ramie::detach_on_cancel, work);
    if (got != kind) l.wrong.fetch_add(1);
    l.returned.fetch_add(1);
  } catch (const deliberate&) {
    if (kind != 0) l.wrong.fetch_add(1);
    l.thrown.fetch_add(1);
  }
}

void fiber_of(std::uint64_t seed, ledger& l) {
  test::dice dice(seed);
  try {
    for (int step = 0; step < 10; ++step) {
      switch (dice.below(4)) {
        case 0: ramie::yield(); break;
        case 1: {
          ramie::shield on;
          one_call(dice, l);
          break;
        }
        default: one_call(dice, l); break;
      }
    }
  } catch (const ramie::cancelled&) {
    l.cancelled.fetch_add(1);
    throw;
  }
}

void random_program(const test::setting& how, ledger& l) {
  test::dice dice(how.seed);
  auto o = how.options();
  o.max_blocking_threads = 1 + dice.below(6);
  if (dice.one_in(2)) o.blocking_idle_time = std::chrono::nanoseconds(dice.below(2) * 50'000);
  ramie::runtime rt(o);
  rt.run([&] {
    for (int round = 0; round < 3; ++round) {
      ramie::nursery n;
      const int fibers = test::scaled(20, 8);
      for (int i = 0; i < fibers; ++i) {
        n.spawn([&l, seed = dice()] { fiber_of(seed, l); });
      }
      for (unsigned k = dice.below(100); k > 0; --k) ramie::yield();
      if (dice.one_in(2)) n.cancel("by chance");
      n.join();
    }
  });
  const auto pool = rt.stats().blocking;
  if (pool.pending != 0 || pool.peak > o.max_blocking_threads || pool.threads > o.max_blocking_threads) ++l.wrong;
}

TEST_CASE("random blocking calls begin and end once and leave nothing behind", "[stress][blocking]") {
  const test::reports dropped;
  this_test.for_each_seed(test::scaled(8, 2), 200, [](const test::setting& how) {
    INFO(how);
    ledger l;
    random_program(how, l);
    REQUIRE(l.wrong == 0);
    REQUIRE(l.begun == l.ended);
    REQUIRE(l.begun >= l.returned + l.thrown);
    REQUIRE(l.things.alive() == 0);
  });
}

}  // namespace stress_blocking_programs
