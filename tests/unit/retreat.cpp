// SPDX-License-Identifier: BSL-1.0
// Whether a worker has a processor, and who stays out if not, by figures and a clock that the test moves.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <ramie/platform/thread_meter.hpp>
#include "runtime/src/sched/crowding.hpp"
#include "runtime/src/sched/entanglement.hpp"
#include "runtime/src/sched/retreat.hpp"
#include <support/fiber_group.hpp>
#include <support/each_mechanism.hpp>
#include <support/test.hpp>

namespace unit_retreat {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct watched {
  crowding room;
  ramie::platform::thread_usage used{1s, 1s, 1000};
  ramie::platform::time_point now{100s};

  watched() { (void)room.measure(used, now); }  // the first measurement only learns where the figures stand

  // Runs `times` times, for so long each, after it has waited for a processor for so long.
  unsigned runs(unsigned times, nanoseconds each, nanoseconds wait, nanoseconds rest = 0ns) {
    used.ran += times * each;
    used.waited += times * wait;
    used.times += times;
    now += times * (each + wait + rest);
    return room.measure(used, now);
  }
};

TEST_CASE("a worker that waits for a processor is crowded", "[unit][retreat]") {
  watched w;
  CHECK(w.runs(1, 3ms, 4ms) == 0);  // too early to say
  CHECK(w.runs(1, 1ms, 0ms) == 1);
  CHECK(w.runs(2, 2ms, 4ms) == 2);
  CHECK(w.runs(1, 4ms, 0ms) == 0);
  CHECK(w.runs(4, 1ms, 1ms) == 1);
}

TEST_CASE("the usual wait for a processor that wakes up is none", "[unit][retreat]") {
  watched w;
  for (int i = 0; i < 100; ++i) CHECK(w.runs(8, 10us, usual_wait) == 0);
  SECTION("but a long one among them is") {
    unsigned seen = 0;
    for (int i = 0; i < 100; ++i) seen = std::max({seen, w.runs(7, 50us, 10us), w.runs(1, 50us, i % 4 == 0 ? 4ms : 0ms)});
    CHECK(seen >= 1);
  }
}

TEST_CASE("losing less than an eighth is not being crowded", "[unit][retreat]") {
  watched w;
  CHECK(w.runs(1, 8ms, usual_wait + 1ms) == 1);
  CHECK(w.runs(1, 8ms, usual_wait + 1ms - 1us) == 0);
}

TEST_CASE("a worker with little to do is not crowded", "[unit][retreat]") {
  watched w;
  for (int i = 0; i < 100; ++i) CHECK(w.runs(8, 50us, 500us, 5ms) == 0);
}

TEST_CASE("it looks now and then", "[unit][retreat]") {
  crowding room;
  unsigned looks = 0;
  for (unsigned i = 0; i < 10 * turns_per_crowding_measurement; ++i) looks += room.due();
  CHECK(looks == 10);
}

constexpr ramie::platform::time_point start{100s};

TEST_CASE("suspensions are granted to one after the other, never to the last", "[unit][retreat]") {
  suspensions r;
  CHECK_FALSE(r.request(1, 1, start));
  const auto first = r.request(3, 1, start);
  REQUIRE(first);
  CHECK(first->until == start + shortest_suspension);
  CHECK_FALSE(r.request(3, 1, start + time_between_suspensions - 1ns));
  CHECK(r.request(3, 1, start + time_between_suspensions));
  CHECK_FALSE(r.request(3, 1, start + 2 * time_between_suspensions));
  CHECK(r.suspended() == 2);
  r.end(*first, start + 3 * time_between_suspensions);
  CHECK(r.suspended() == 1);
  CHECK(r.request(3, 1, start + 3 * time_between_suspensions));
}

TEST_CASE("who has to go again soon stays longer", "[unit][retreat]") {
  suspensions r;
  auto now = start;
  for (const nanoseconds span :
       {shortest_suspension, 4 * shortest_suspension, longest_suspension, longest_suspension}) {
    const auto granted = r.request(2, 1, now);
    REQUIRE(granted);
    CHECK(granted->until - now == span);
    r.end(*granted, granted->until);
    now = granted->until + soon_after_suspension - 1ns;
  }
  const auto later = r.request(2, 1, now + 1ns);
  REQUIRE(later);
  CHECK(later->until == now + 1ns + shortest_suspension);
}

TEST_CASE("withdrawals have spans of their own, and retreats and withdrawals leave one worker together", "[unit][retreat]") {
  suspensions r;
  CHECK_FALSE(r.request_withdrawal(1, start));
  const auto out = r.request_withdrawal(3, start);
  REQUIRE(out);
  CHECK(out->until == start + shortest_withdrawal);
  CHECK_FALSE(r.request_withdrawal(3, start + time_between_withdrawals - 1ns));
  const auto crowded = r.request(3, 1, start);  // for another reason
  REQUIRE(crowded);
  CHECK(crowded->until == start + shortest_suspension);
  CHECK_FALSE(r.request_withdrawal(3, start + time_between_withdrawals));
  CHECK_FALSE(r.request(3, 1, start + time_between_suspensions));
  r.end(*crowded, crowded->until);
  auto now = out->until;
  r.end(*out, now);
  for (const nanoseconds span : {4 * shortest_withdrawal, 16 * shortest_withdrawal, longest_withdrawal}) {
    now += soon_after_withdrawal - 1ns;
    const auto again = r.request_withdrawal(2, now);
    REQUIRE(again);
    CHECK(again->until - now == std::min(span, longest_withdrawal));
    r.end(*again, now = again->until);
  }
  const auto later = r.request_withdrawal(2, now + soon_after_withdrawal);
  REQUIRE(later);
  CHECK(later->until == now + soon_after_withdrawal + shortest_withdrawal);
}

TEST_CASE("a worker is entangled that waits for locks for 30 % of two windows in a row", "[unit][retreat]") {
  entanglement e;
  auto now = start;
  (void)e.look(0ns, now);  // the first window begins here
  nanoseconds waited{0};
  const auto passes = [&](nanoseconds time, nanoseconds of_it_waited) {
    return e.look(waited += of_it_waited, now += time);
  };
  CHECK_FALSE(passes(10ms, 3ms));
  CHECK_FALSE(passes(10ms, 3ms - 1ns));
  CHECK_FALSE(passes(10ms, 3ms));
  CHECK(passes(10ms, 3ms));
  CHECK(passes(10ms, 3ms));
  CHECK_FALSE(passes(10ms, 0ms));  // what it waited before counts once
  CHECK_FALSE(passes(10ms, 10ms));
  CHECK_FALSE(passes(entanglement_window - 1ns, entanglement_window - 1ns));  // no window yet
  CHECK(passes(1ns, 0ns));
}

TEST_CASE("all are called back if the last one stays crowded", "[unit][retreat]") {
  suspensions r;
  const auto granted = r.request(2, 1, start);
  REQUIRE(granted);
  const auto now = start + 50ms;
  CHECK_FALSE(r.request(2, windows_before_recall - 1, now));
  CHECK_FALSE(r.is_recalled(*granted));
  CHECK_FALSE(r.request(2, windows_before_recall, now));
  CHECK(r.is_recalled(*granted));
  r.end(*granted, now);
  CHECK_FALSE(r.request(2, 1, now + longest_suspension - 1ns));
  const auto again = r.request(2, 1, now + longest_suspension);
  REQUIRE(again);
  CHECK_FALSE(r.is_recalled(*again));
}

TEST_CASE("others get on if they get through what they have", "[unit][retreat]") {
  progress_of_others o(100);
  CHECK(o.keep_up(110, 10));
  CHECK_FALSE(o.keep_up(110, 1));
  CHECK_FALSE(o.keep_up(115, 6));
  CHECK(o.keep_up(120, 0));
  for (unsigned i = 1; i < quiet_checks_before_return; ++i) CHECK(o.keep_up(120, 0));
  SECTION("or have nothing") { CHECK_FALSE(o.keep_up(120, 0)); }
  SECTION("for long") {
    CHECK(o.keep_up(121, 0));
    CHECK(o.keep_up(121, 0));
  }
}

TEST_CASE("the system tells what a thread has had", "[unit][retreat]") {
  ramie::platform::thread_meter meter;
  const auto before = meter.read();
  if (before.times == 0) LEFT_OUT("this system does not");
  volatile unsigned work = 0;
  test::until([&] {
    work = work + 1;
    return meter.read().ran > before.ran;
  });
  const auto after = meter.read();
  CHECK(after.waited >= before.waited);
  CHECK(after.times >= before.times);
  const auto descriptors = test::open_descriptors();
  meter.let_go();
  CHECK(test::open_descriptors() == descriptors - 1);
}

TEST_CASE("without a descriptor nothing is told", "[unit][retreat]") {
  rlimit whole{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &whole) == 0);
  rlimit none = whole;
  none.rlim_cur = 0;
  ramie::platform::thread_meter meter;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto used = meter.read();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &whole) == 0);
  CHECK(used.times == 0);
  CHECK(meter.read().times == 0);  // nor later: half of a figure is none
  crowding room;
  CHECK(room.measure(used, start) == 0);
}

}  // namespace unit_retreat
