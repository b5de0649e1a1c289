// SPDX-License-Identifier: BSL-1.0
// <ramie/time.hpp>: sleeps, intervals, deadlines. On clocks that stand still; only where plain threads have the
// machine's, by that.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/on_many.hpp>
#include <support/test.hpp>

namespace conformance_time_sleeping {

using namespace std::chrono_literals;
using ramie::interval;
using ramie::missed_ticks;
using ramie::now;
using ramie::sleep_for;
using ramie::sleep_until;
using ramie::testing::virtual_clock;
using ramie::testing::wait_all_blocked;
using steady = std::chrono::steady_clock;
using test::findings;
using test::in_virtual_time;
using test::with_workers;

TEST_CASE("a sleep ends at a deadline as at a time", "[conformance][time]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    sleep_until(ramie::deadline(began + 5ms));
    EXPECT(found, now() == began + 5ms);
    const ramie::deadline until = 5ms;
    sleep_until(until);
    sleep_until(until);
    EXPECT(found, now() == began + 10ms, !ramie::with_timeout(1h, [] { sleep_until(ramie::deadline()); }));
  });
}

TEST_CASE("a sleep ends at its time, never before", "[conformance][time]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    sleep_for(1ns);
    EXPECT(found, now() == began + 1ns);
    sleep_until(began + 90min);
    EXPECT(found, now() == began + 90min);
    sleep_for(std::chrono::duration<double>(0.5));
    EXPECT(found, now() == began + 90min + 500ms);
  });
  test::as_fiber([](findings& found, ramie::manual_clock& clock) {
    std::atomic<bool> awake{false};
    ramie::nursery n;
    n.spawn([&] {
      sleep_for(10s);
      awake = true;
    });
    wait_all_blocked();
    clock.advance(10s - 1ns);
    wait_all_blocked();
    found.expect(!awake);
    clock.advance(1ns);
    wait_all_blocked();
    found.expect(awake);
    n.join();
  });
}

TEST_CASE("sleepers wake in the order of their times", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    virtual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    test::journal<int> order;
    ramie::run(o, [&] {
      ramie::nursery n;
      for (const int seconds : {5, 1, 4, 2, 3}) {
        n.spawn([&order, seconds] {
          sleep_for(std::chrono::seconds(seconds));
          order.add(seconds);
        });
      }
      n.join();
    });
    CHECK(order.entries() == std::vector<int>{1, 2, 3, 4, 5});
  }
}

TEST_CASE("a time that has passed lets others go first and takes no time", "[conformance][time]") {
  test::journal<std::string> order;
  test::as_fiber([&](findings& found, ramie::manual_clock& clock) {
    clock.advance(1h);
    const auto began = now();
    ramie::nursery n;
    n.spawn([&] { order.add("other"); });
    sleep_for(0s);
    order.add("zero");
    sleep_for(-5s);
    sleep_for(std::chrono::nanoseconds::min());
    sleep_for(std::chrono::hours::min());
    sleep_for(std::chrono::duration<double>(-1e300));
    sleep_until(began);
    sleep_until(began - 1h);
    sleep_until(steady::time_point::min());
    sleep_until(steady::time_point());
    EXPECT(found, now() == began);
    n.join();
  });
  CHECK(order.entries() == std::vector<std::string>{"other", "zero"});
}

// Asleep for good in every way there is, until cancelled.
TEST_CASE("a time beyond the clock's is until cancelled", "[conformance][time]") {
  in_virtual_time([](findings& found) {
    std::atomic<int> cancelled{0}, back{0};
    const auto asleep = [&](auto how) {
      return [&, how] {
        try {
          how();
          ++back;
        } catch (const ramie::cancelled&) {
          ++cancelled;
          throw;
        }
      };
    };
    ramie::nursery n;
    n.spawn(asleep([] { sleep_until(steady::time_point::max()); }));
    n.spawn(asleep([] { sleep_for(steady::duration::max()); }));
    n.spawn(asleep([] { sleep_for(std::chrono::hours::max()); }));
    n.spawn(asleep([] { sleep_for(std::chrono::duration<double>(1e300)); }));
    wait_all_blocked();
    EXPECT(found, cancelled == 0, back == 0);
    n.cancel("enough");
    n.join();
    EXPECT(found, cancelled == 4, back == 0);
  });
}

TEST_CASE("a sleep is a cancellation point, at every length", "[conformance][time]") {
  in_virtual_time([](findings& found) {
    for (const auto length : {-1s, 0s, 1s}) {
      std::atomic<int> cancelled{0}, back{0};
      ramie::nursery n;
      n.spawn([&] {
        ramie::channel<int> never(0);
        try {
          ramie::shield from_the_first;
          (void)never.recv_for(1s);
        } catch (...) {
        }
        try {
          sleep_for(length);
          ++back;
        } catch (const ramie::cancelled&) {
          ++cancelled;
          throw;
        }
      });
      n.cancel("before");
      n.join();
      EXPECT(found, back == 0);
    }
    const auto began = now();
    {
      ramie::nursery n;
      n.spawn([] { sleep_for(1h); });
      n.cancel_after(5s);
      n.join();
    }
    EXPECT(found, now() == began + 5s);
    found.expect(!ramie::with_timeout(3s, [] { sleep_for(1h); }));
    found.expect(ramie::with_timeout(1h, [] { sleep_for(3s); }));
    EXPECT(found, now() == began + 11s);
    const bool ended = ramie::with_timeout(1s, [] {
      ramie::shield on;
      sleep_for(4s);  // to its end
    });
    EXPECT(found, ended, now() == began + 15s);
  });
}

TEST_CASE("plain threads sleep by the machine's clock", "[conformance][time]") {
  const auto began = steady::now();
  sleep_until(began);
  sleep_for(-1h);
  sleep_for(2ms);
  CHECK(steady::now() >= began + 2ms);
  const auto later = steady::now() + 1ms;
  sleep_until(later);
  CHECK(steady::now() >= later);
  interval every(1ms);
  const auto due = every.next();
  CHECK(every.tick() == due);
  CHECK(steady::now() >= due);
}

TEST_CASE("an interval keeps its rhythm", "[conformance][time][interval]") {
  in_virtual_time([](findings& found) {
    for (const auto mode : {missed_ticks::burst, missed_ticks::delay, missed_ticks::skip}) {
      const auto began = now();
      interval every(10ms, mode);
      EXPECT(found, every.period() == 10ms, every.next() == began + 10ms);
      for (int i = 1; i <= 5; ++i) {
        sleep_for(3ms);  // less than a period
        EXPECT(found, every.tick() == began + i * 10ms);
        EXPECT(found, now() == began + i * 10ms);
      }
      sleep_for(4ms);
      every.reset();
      EXPECT(found, every.tick() == began + 64ms, now() == began + 64ms);
      interval at_once(now(), 10ms, mode);
      EXPECT(found, at_once.tick() == now(), at_once.next() == now() + 10ms);
    }
  });
}

// Ticks at 10, 20, 30 …; somebody comes for the first one at 35.
TEST_CASE("an interval makes up for missed ticks as it was told", "[conformance][time][interval]") {
  in_virtual_time([](findings& found) {
    const auto ticks = [&](missed_ticks mode, std::vector<int> due, std::vector<int> got_at) {
      const auto began = now();
      interval every(10ms, mode);
      sleep_for(35ms);
      for (std::size_t i = 0; i < due.size(); ++i) {
        EXPECT(found, every.tick() == began + std::chrono::milliseconds(due[i]));
        EXPECT(found, now() == began + std::chrono::milliseconds(got_at[i]));
      }
    };
    ticks(missed_ticks::burst, {10, 20, 30, 40, 50}, {35, 35, 35, 40, 50});
    ticks(missed_ticks::delay, {10, 45, 55, 65}, {35, 45, 55, 65});
    ticks(missed_ticks::skip, {10, 40, 50, 60}, {35, 40, 50, 60});
  });
}

TEST_CASE("a tick that is late by less than a period, or by whole ones", "[conformance][time][interval]") {
  in_virtual_time([](findings& found) {
    const auto next_after = [&](missed_ticks mode, std::chrono::nanoseconds comes) {
      const auto began = now();
      interval every(10ms, mode);
      sleep_for(comes);
      (void)every.tick();
      return every.next() - began;
    };
    EXPECT(found, next_after(missed_ticks::burst, 13ms) == 20ms);
    EXPECT(found, next_after(missed_ticks::delay, 13ms) == 23ms);
    EXPECT(found, next_after(missed_ticks::skip, 13ms) == 20ms);
    EXPECT(found, next_after(missed_ticks::burst, 20ms) == 20ms);
    EXPECT(found, next_after(missed_ticks::delay, 20ms) == 30ms);
    EXPECT(found, next_after(missed_ticks::skip, 20ms) == 30ms);
    EXPECT(found, next_after(missed_ticks::skip, 10ms) == 20ms);  // just in time
  });
}

TEST_CASE("a tick that was cut short is still the next one", "[conformance][time][interval]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    interval every(10s);
    found.expect(!ramie::with_timeout(4s, [&] { (void)every.tick(); }));
    EXPECT(found, every.next() == began + 10s);
    EXPECT(found, every.tick() == began + 10s, now() == began + 10s);
  });
}

TEST_CASE("intervals of no length are refused, endless ones never tick twice", "[conformance][time][interval]") {
  CHECK_THROWS_AS(interval(0ns), ramie::usage_error);
  CHECK_THROWS_AS(interval(-1s), ramie::usage_error);
  in_virtual_time([](findings& found) {
    for (const auto mode : {missed_ticks::burst, missed_ticks::delay, missed_ticks::skip}) {
      sleep_for(1s);
      interval endless(steady::duration::max(), mode);
      EXPECT(found, endless.next() == steady::time_point::max());
      interval once(now(), steady::duration::max(), mode);
      EXPECT(found, once.tick() == now(), once.next() == steady::time_point::max());
      found.expect(!ramie::with_timeout(1h, [&] { (void)once.tick(); }));
      interval long_ago(steady::time_point::min(), 1h, mode);
      EXPECT(found, long_ago.tick() <= now());
    }
    interval behind(steady::time_point(), 1ns, missed_ticks::skip);
    (void)behind.tick();
    EXPECT(found, behind.next() == now() + 1ns);
  });
}

TEST_CASE("a deadline says what is left of it", "[conformance][time]") {
  in_virtual_time([](findings& found) {
    const auto until = ramie::deadline(10s);
    EXPECT(found, until.when() == now() + 10s, until.remaining() == 10s, !until.expired());
    sleep_for(4s);
    EXPECT(found, until.remaining() == 6s);
    sleep_for(6s);
    EXPECT(found, until.expired(), until.remaining() == 0s);
    sleep_for(1h);
    EXPECT(found, until.expired(), until.remaining() == 0s);

    EXPECT(found, ramie::deadline().remaining() == steady::duration::max(), !ramie::deadline().expired());
    found.expect(!ramie::deadline(std::chrono::hours::max()).expired());
    EXPECT(found, ramie::deadline(0s).expired(), ramie::deadline(-1s).expired());
    EXPECT(found, ramie::deadline(steady::time_point::min()).remaining() == 0s);
    found.expect(ramie::deadline(steady::time_point()).expired());
  });
  using in_ms = std::chrono::time_point<steady, std::chrono::milliseconds>;  // a coarser time is one, too
  const auto at = [](ramie::deadline when) { return when; };
  CHECK(at(in_ms(7ms)).when() == steady::time_point(7ms));
  CHECK(at(in_ms::max()).is_never());
  CHECK(at(steady::time_point::max()).is_never());
  CHECK(at(in_ms::min()).expired());
  const auto too_early = std::chrono::floor<std::chrono::milliseconds>(steady::time_point::min());  // for the clock
  CHECK(at(too_early).when() == steady::time_point::min());
  CHECK(at(too_early).expired());
  CHECK(ramie::deadline(1h).remaining() > 50min);
}

TEST_CASE("fibers of one runtime and threads have clocks of their own", "[conformance][time]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  clock.advance(5s);
  CHECK(ramie::run(o, [] { return now().time_since_epoch(); }) == 5s);
  const auto before = steady::now();
  CHECK(now() >= before);
  CHECK(ramie::run(o, [] { return ramie::blocking([] { return now(); }); }) >= before);
}

}  // namespace conformance_time_sleeping
