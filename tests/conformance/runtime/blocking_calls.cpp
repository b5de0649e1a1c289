// SPDX-License-Identifier: BSL-1.0
// blocking(): what comes back, where a call runs, what cancellation does to it.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/held_calls.hpp>
#include <support/on_many.hpp>
#include <support/reports.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_blocking_calls {

using namespace std::chrono_literals;
using ramie::blocking;
using ramie::detach_on_cancel;
using ramie::testing::wait_all_blocked;
using test::findings;
using test::held_calls;
using test::on_many;
using test::with_workers;

TEST_CASE("a blocking call returns what the function returns", "[conformance][blocking]") {
  on_many([](findings& found) {
    int there = 1;
    const std::string text = "a string that is longer than most";
    int calls = 0;
    blocking([&] { ++calls; });
    EXPECT(found, calls == 1);
    EXPECT(found, blocking([] { return 7; }) == 7);
    EXPECT(found, *blocking([] { return std::make_unique<int>(8); }) == 8);
    EXPECT(found, &blocking([&]() -> int& { return there; }) == &there);
    EXPECT(found, &blocking([&]() -> const std::string& { return text; }) == &text);
    auto&& moved = blocking([&]() -> int&& { return std::move(there); });
    EXPECT(found, &moved == &there);
    const auto twice = [n = 2](auto... more) { return n * 2 + static_cast<int>(sizeof...(more)); };
    EXPECT(found, blocking(twice) == 4);

    blocking(detach_on_cancel, [&] { ++calls; });
    EXPECT(found, calls == 2);
    EXPECT(found, *blocking(detach_on_cancel, [p = std::make_unique<int>(9)]() mutable { return std::move(p); }) == 9);
    EXPECT(found, &blocking(detach_on_cancel, [&]() -> int& { return there; }) == &there);
  });
}

TEST_CASE("what a blocking call throws is thrown in the fiber", "[conformance][blocking]") {
  on_many([](findings& found) {
    const auto fails = []() -> int { throw std::runtime_error("no such file"); };
    for (const bool detachable : {false, true}) {
      std::string got;
      try {
        (void)(detachable ? blocking(detach_on_cancel, fails) : blocking(fails));
      } catch (const std::runtime_error& e) {
        got = e.what();
      }
      EXPECT(found, got == "no such file");
      EXPECT(found, blocking([] { return 1; }) == 1);
    }
    try {
      blocking([] { throw 5; });
      found.expect(false);
    } catch (int five) {
      EXPECT(found, five == 5);
    }
  });
}

TEST_CASE("a worker runs others while a fiber waits for its call", "[conformance][blocking]") {
  held_calls held;
  const auto served = ramie::run(with_workers(1), [&] {
    ramie::nursery n;
    n.spawn([&] { blocking([&] { held.call(); }); });
    int count = 0;
    while (held.inside() == 0) {
      ++count;
      ramie::yield();
    }
    held.let_go(1);
    n.join();
    return count;
  });
  CHECK(served > 0);
}

TEST_CASE("inside a blocking call it is a plain thread", "[conformance][blocking]") {
  on_many([](findings& found) {
    ramie::channel<int> to_fiber(0), to_call(0);
    ramie::nursery n;
    n.spawn([&] { to_call.send(to_fiber.recv().value() + 1); });
    const int answer = blocking([&] {
      EXPECT(found, !ramie::this_fiber::exists(), ramie::this_fiber::number() == 0);
      const auto here = std::this_thread::get_id();
      EXPECT(found, blocking([] { return std::this_thread::get_id(); }) == here);
      to_fiber.send(1);
      return to_call.recv().value();
    });
    EXPECT(found, answer == 2);
    n.join();
    EXPECT(found, blocking([] { return ramie::run(with_workers(1), [] { return 3; }); }) == 3);
  });
}

TEST_CASE("on a plain thread blocking just calls", "[conformance][blocking]") {
  const auto here = std::this_thread::get_id();
  CHECK(blocking([] { return std::this_thread::get_id(); }) == here);
  CHECK(blocking(detach_on_cancel, [] { return std::this_thread::get_id(); }) == here);
  CHECK_THROWS_AS(blocking([] { throw std::runtime_error("as it is"); }), std::runtime_error);
}

TEST_CASE("a call that waits in line when its fiber is cancelled never runs", "[conformance][blocking]") {
  for (const bool detachable : {false, true}) {
    for (const unsigned workers : {1u, 2u, 4u}) {
      auto o = with_workers(workers);
      o.max_blocking_threads = 1;
      ramie::runtime rt(o);
      held_calls held;
      findings found;
      test::census things;
      std::atomic<int> ran{0}, cancelled{0};
      rt.run([&] {
        ramie::nursery outer;
        outer.spawn([&] { blocking([&] { held.call(); }); });
        test::yield_until([&] { return held.inside() == 1; });
        ramie::nursery n;
        for (int i = 0; i < 5; ++i) {
          n.spawn([&] {
            try {
              if (detachable) {
                blocking(detach_on_cancel, [&ran, who = test::citizen(things)] { ++ran; });
              } else {
                blocking([&] { ++ran; });
              }
            } catch (const ramie::cancelled&) {
              ++cancelled;
              throw;
            }
          });
        }
        test::yield_until([&] { return rt.stats().blocking.pending == 5; });
        n.cancel("enough");
        n.join();
        EXPECT(found, rt.stats().blocking.pending == 0, held.inside() == 1);
        held.let_go(1);
        outer.join();
      });
      CHECK(found.wrong() == "");
      CHECK(ran == 0);
      CHECK(cancelled == 5);
      CHECK(things.alive() == 0);
      CHECK(rt.stats().blocking.jobs == 1);
    }
  }
}

TEST_CASE("a cancelled fiber waits for the end of its call, and drops the result", "[conformance][blocking]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    held_calls held;
    findings found;
    test::census things;
    std::atomic<int> cancelled{0}, returned{0};
    ramie::run(with_workers(workers), [&] {
      ramie::nursery n;
      n.spawn([&] {
        try {
          (void)blocking([&] {
            held.call();
            return test::citizen(things);
          });
          ++returned;
        } catch (const ramie::cancelled&) {
          ++cancelled;
          throw;
        }
      });
      test::yield_until([&] { return held.inside() == 1; });
      wait_all_blocked();
      {
        const ramie::shield for_the_owner;
        n.cancel("now");
        wait_all_blocked();
      }
      EXPECT(found, cancelled == 0);  // it waits
      held.let_go(1);
      n.join();
    });
    CHECK(found.wrong() == "");
    CHECK(cancelled == 1);
    CHECK(returned == 0);
    CHECK(things.made == 1);
    CHECK(things.alive() == 0);
  }
}

TEST_CASE("a call that has ended before its fiber is cancelled counts", "[conformance][blocking]") {
  // One worker, so the fiber does not run between the end of the call and the cancellation.
  const int got = ramie::run(with_workers(1), [] {
    std::atomic<int> value{0};
    auto& sched = *ramie::runtime_internal::current_context().local->runs_in;
    ramie::nursery n;
    n.spawn([&] { value = blocking([&] { return 6; }); });
    ramie::yield();  // it waits now, unless the call has ended already
    test::until([&] { return value != 0 || sched.queues.anything_queued(); });  // here, if it ended while the fiber parked
    n.cancel("too late");
    n.join();
    return value.load();
  });
  CHECK(got == 6);
}

TEST_CASE("a failure of a call whose fiber was cancelled is reported", "[conformance][blocking]") {
  for (const bool detachable : {false, true}) {
    const test::reports reported;
    held_calls held;
    std::atomic<int> cancelled{0};
    ramie::run(with_workers(2), [&] {
      const auto fails = [&] {
        held.call();
        throw std::runtime_error("nobody hears this");
      };
      ramie::nursery n;
      n.spawn({.name = "caller"}, [&] {
        try {
          detachable ? blocking(detach_on_cancel, fails) : blocking(fails);
        } catch (const ramie::cancelled&) {
          ++cancelled;
          throw;
        }
      });
      test::yield_until([&] { return held.inside() == 1; });
      {
        const ramie::shield for_the_owner;
        n.cancel("now");
        wait_all_blocked();  // it has noticed
      }
      held.let_go(1);
      n.join();
    });
    CHECK(cancelled == 1);
    REQUIRE(reported.taken().size() == 1);
    CHECK(reported.taken()[0].kind == ramie::report_kind::lost_failure);
    CHECK(reported.taken()[0].text == "nobody hears this");
    if (!detachable) CHECK(reported.taken()[0].who.find("'caller'") != std::string::npos);
  }
}

TEST_CASE("a detachable call is left behind at once, and the runtime's end waits for it", "[conformance][blocking]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    held_calls held;
    findings found;
    test::census things;
    std::atomic<bool> ended{false}, waited_for{false};
    auto rt = std::make_unique<ramie::runtime>(with_workers(workers));
    rt->run([&] {
      ramie::nursery n;
      n.spawn([&] {
        (void)blocking(detach_on_cancel, [&held, &ended, who = test::citizen(things)] {
          held.call();
          ended = true;
          return std::string("dropped");
        });
      });
      test::yield_until([&] { return held.inside() == 1; });
      n.cancel("leave it");
      n.join();  // although the call has not ended
      found.expect(!ended.load());
    });
    CHECK(found.wrong() == "");
    CHECK(rt->stats().blocking.threads == 1);
    CHECK(things.alive() == 1);
    std::thread ender([&] {
      rt.reset();
      waited_for = ended.load();
    });
    held.let_go(1);
    ender.join();
    CHECK(waited_for);
    CHECK(things.alive() == 0);
  }
}

TEST_CASE("a fiber that was cancelled before calls nothing", "[conformance][blocking]") {
  std::atomic<int> ran{0}, cancelled{0};
  ramie::run(with_workers(2), [&] {
    for (const bool detachable : {false, true}) {
      (void)ramie::with_timeout(0s, [&] {
        try {
          detachable ? blocking(detach_on_cancel, [&] { ++ran; }) : blocking([&] { ++ran; });
        } catch (const ramie::cancelled&) {
          ++cancelled;
          ramie::shield unharmed;
          blocking([&] { ran += 10; });
          throw;
        }
      });
    }
  });
  CHECK(ran == 20);
  CHECK(cancelled == 2);
}

TEST_CASE("a blocking call needs no memory once its thread is there", "[conformance][blocking][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  std::uint64_t allocated = 99;
  ramie::run(with_workers(1), [&] {
    for (int i = 0; i < 10; ++i) blocking([] {});
    const auto before = test::allocations();
    for (int i = 0; i < 100; ++i) blocking([] {});
    allocated = test::allocations() - before;
  });
  CHECK(allocated == 0);
}

TEST_CASE("a virtual clock stands still while a fiber waits for a blocking call", "[conformance][blocking][clock]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    ramie::testing::virtual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    ramie::runtime rt(o);
    bool in_time = false;
    std::chrono::nanoseconds at_end{-1};
    rt.run([&] {
      const auto began = ramie::now();
      ramie::nursery n;
      n.spawn([] { ramie::sleep_for(2h); });
      in_time = ramie::with_timeout(1h, [&] { blocking([&] { wait_all_blocked(rt); }); });
      at_end = ramie::now() - began;
      n.join();
    });
    CHECK(in_time);
    CHECK(at_end == 0s);
    CHECK(clock.now().time_since_epoch() == 2h);
  }
}

}  // namespace conformance_blocking_calls
