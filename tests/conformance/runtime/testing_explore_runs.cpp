// SPDX-License-Identifier: BSL-1.0
// explore: how its schedules are run: what counts as a failure, how fibers are unwound, what is misuse.
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/census.hpp>
#include <support/reports.hpp>
#include <support/exploring.hpp>
#include <support/test.hpp>

namespace conformance_testing_explore_runs {

using namespace std::chrono_literals;
using namespace ramie::testing;
using test::asking;
using test::contains;

using program = std::function<void()>;

// What fibers share here is shared by threads, too, as far as ThreadSanitizer is concerned: hence atomics, used so that
// they protect nothing.
using shared_int = std::atomic<int>;

TEST_CASE("what the test throws is the failure, and is kept", "[conformance][testing][explore]") {
  const auto found = explore(asking(5), [] {
    ramie::nursery n;
    n.spawn([] { throw std::domain_error("no such thing"); });
    n.join();
  });
  CHECK(found.failed);
  CHECK(found.schedules == 1);
  CHECK(contains(found.failure, "no such thing"));
  CHECK_THROWS_AS(std::rethrow_exception(found.cause), std::domain_error);
  CHECK_THROWS_AS(explore([] { throw 7; }), explore_failure);
}

TEST_CASE("a check that fails counts even if its exception is caught", "[conformance][testing][explore]") {
  const auto found = explore(asking(5), [] {
    try {
      check(false, "hushed up");
    } catch (const check_failed&) {
    }
  });
  CHECK(found.failed);
  CHECK(contains(found.failure, "hushed up"));
}

TEST_CASE("check outside explore throws and nothing else", "[conformance][testing][explore]") {
  check(true, "fine");
  CHECK_THROWS_AS(check(false, "wrong"), check_failed);
  CHECK_THROWS_AS(ramie::run([] { check(false); }), check_failed);
}

TEST_CASE("after a deadlock all fibers are unwound", "[conformance][testing][explore]") {
  test::census all;
  std::atomic<int> as_deadlock{0};
  const program stuck = [&] {
    ramie::channel<int> never(0);
    test::citizen root(all);
    ramie::nursery n;
    for (int i = 0; i < 5; ++i) {
      n.spawn([&, mine = test::citizen(all)] {
        test::citizen local(all);
        try {
          (void)never.recv();
        } catch (const ramie::cancelled& c) {
          if (c.kind() == ramie::cancel_kind::deadlock) ++as_deadlock;
          throw;
        }
      });
    }
    n.join();
  };
  const auto found = explore(asking(3), stuck);
  CHECK(found.failed);
  CHECK(as_deadlock == 5);
  CHECK(all.alive() == 0);
  CHECK(all.made > 0);

  auto o = asking(10);
  o.deadlock = on_deadlock::unwinds;
  const auto meant = explore(o, stuck);
  CHECK_FALSE(meant.failed);
  CHECK(meant.schedules == 10);
  CHECK(as_deadlock == 55);
  CHECK(all.alive() == 0);
}

TEST_CASE("explore inside a fiber, or of nothing, is misuse", "[conformance][testing][explore]") {
  CHECK_THROWS_AS(ramie::run([] { explore([] {}); }), ramie::usage_error);
  const auto nested = explore(asking(1), [] { explore([] {}); });
  CHECK(contains(nested.failure, "inside a fiber"));
  CHECK_THROWS_AS(std::rethrow_exception(nested.cause), ramie::usage_error);
  const auto refused = [](auto change) {
    explore_options o;
    change(o);
    CHECK_THROWS_AS(explore(o, [] {}), ramie::usage_error);
  };
  refused([](explore_options& o) { o.schedules = 0; });
  refused([](explore_options& o) { o.max_steps = 0; });
  refused([](explore_options& o) { o.change_points = 0; });
  refused([](explore_options& o) { o.change_points = 65; });
}

TEST_CASE("explore runs what it is given as often as it says", "[conformance][testing][explore]") {
  int calls = 0;
  auto o = asking(25);
  o.seed = 1000;
  const auto report = explore(o, [&] { return ++calls; });  // a result is ignored
  CHECK(calls == 25);
  CHECK(report.schedules == 25);
  CHECK(report.seed == 1024);
}

TEST_CASE("a test that holds a std::mutex over spawns and wakes can be explored without switches there",
          "[conformance][testing][explore]") {
  auto o = asking(100);
  o.wake_switches = false;
  const auto report = explore(o, [] {
    std::mutex mutex;
    ramie::channel<int> c(2);
    ramie::nursery n;
    n.spawn([&] {
      for (int i = 0; i < 2; ++i) (void)c.recv();
      std::lock_guard hold(mutex);
    });
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        std::lock_guard hold(mutex);
        (void)c.try_send(1);
        n.spawn([] {});
      });
    }
    n.join();
  });
  CHECK_FALSE(report.failed);
}

TEST_CASE("a livelock with many fibers is unwound, however few the steps", "[conformance][testing][explore]") {
  auto o = asking(4);
  o.max_steps = 20;
  test::census all;
  const auto report = explore(o, [&] {
    ramie::nursery n;
    for (int i = 0; i < 50; ++i) {
      n.spawn([&] {
        test::citizen here(all);
        ramie::nursery inner;
        inner.spawn([] {
          for (;;) ramie::yield();
        });
        inner.join();
      });
    }
    n.join();
  });
  CHECK(report.failed);
  CHECK(contains(report.failure, "livelock"));
  CHECK(all.alive() == 0);
}

TEST_CASE("many fibers under explore", "[conformance][testing][explore]") {
  const int fibers = test::scaled(500, 50);
  const auto report = explore(asking(4), [&] {
    shared_int ran{0};
    ramie::nursery n;
    for (int i = 0; i < fibers; ++i) {
      n.spawn([&] {
        ramie::yield();
        ++ran;
      });
    }
    n.join();
    check(ran.load() == fibers);
  });
  CHECK_FALSE(report.failed);
}

}  // namespace conformance_testing_explore_runs
