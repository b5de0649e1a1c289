// SPDX-License-Identifier: BSL-1.0
// For tests of programs made of fibers: time that passes by itself, a point at which nothing moves any more, and a
// search through the schedules of a program. See docs/testing.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <ramie/source_location.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ramie/clock.hpp>
#include <ramie/runtime.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0::testing {

// A clock that stands still while any fiber of its runtime can run, and moves on to the next deadline when all are
// blocked: a test that sleeps for an hour takes no time. It serves one runtime at a time, as `options.clock`, and must
// outlive it; the runtime's constructor throws usage_error for a second one. It may be advanced by hand, too.
//
// It knows of fibers, deadlines and blocking() only: while a fiber waits for such a call it stands still, but one that
// waits for a plain thread, or for anything else outside the runtime, counts as blocked.
class virtual_clock final : public manual_clock {
 public:
  // Throws std::bad_alloc.
  virtual_clock() : manual_clock(true) {}
};

// Returns when every other fiber of the runtime is blocked, that is, waits for anything, also for a time that has not
// come. Nothing that happened before can then make one of them run. A wake that a plain thread is about to make is not
// waited for. Several fibers may call it: they return one by one, in the order of their calls, each when all others are
// blocked again.
// A cancellation point. Without an argument: of the calling fiber's runtime; throws usage_error on a plain thread.
void wait_all_blocked();
// The same for any fiber and any thread. The runtime must outlive the call.
void wait_all_blocked(runtime& of);

// How explore() chooses what runs next.
enum class strategy : std::uint8_t {
  mixed,        // by seed: odd ones walk at random, even ones are PCT
  random_walk,  // at every step each runnable fiber is as likely as the others
  pct,          // random priorities, which change at a few random steps: finds what takes few but rare switches
};

// When every fiber is blocked and no timer is pending, the blocked fibers are cancelled (cancel_kind::deadlock), and
enum class on_deadlock : std::uint8_t {
  fails,    // the schedule has failed
  unwinds,  // that is all: programs that are meant to be left waiting
};

// What explore() does when a schedule fails.
enum class on_failure : std::uint8_t {
  throws,   // explore_failure
  returns,  // the report says so
};

// How explore() searches.
struct explore_options {
  unsigned schedules = 1000;        // at least 1
  std::uint64_t seed = 1;           // of the first schedule; the others' follow by one
  strategy how = strategy::mixed;
  unsigned change_points = 3;       // of PCT, 1 to 64: how many switches at bad moments the bug takes, at most
  std::size_t max_steps = 100'000;  // of one schedule, at least 1: more is a livelock, and a failure
  bool wake_switches = true;        // also after spawns and wakes: not for tests that hold a std::mutex over those
  on_deadlock deadlock = on_deadlock::fails;
  on_failure failure = on_failure::throws;
};

// What explore() found.
struct explore_report {
  unsigned schedules = 0;  // run, the failed one included
  bool failed = false;
  std::uint64_t seed = 0;            // of the schedule that failed, or of the last one
  std::string failure;               // what went wrong, for people; "" if nothing did
  std::exception_ptr cause;          // what the test threw, if it is that
  std::size_t steps = 0;             // decisions in that schedule
  std::vector<std::uint32_t> trace;  // the fibers that ran, in order; numbered as they appeared
};

// A schedule has failed. what() names the seed and how to replay it.
class explore_failure : public std::runtime_error {
 public:
  explore_failure(const std::string& text, explore_report found)
      : std::runtime_error(text), report_(std::make_shared<const explore_report>(std::move(found))) {}
  // What was found, with the seed and the trace. Valid while this object, or a copy of it, lives.
  [[nodiscard]] const explore_report& report() const noexcept { return *report_; }

 private:
  std::shared_ptr<const explore_report> report_;
};

// Thrown by check().
class check_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ramie::inline v0::testing

namespace ramie::runtime_internal {

[[noreturn]] void check_has_failed(std::string_view what, source_location where);
// `exactly`: RAMIE_EXPLORE_SEED is not looked at.
testing::explore_report explore_by(const testing::explore_options& wanted, void (*call)(void*), void* data,
                                   bool exactly);

template <class F>
testing::explore_report explore_calls(const testing::explore_options& wanted, F& test, bool exactly = false) {
  auto once = [&test] { static_cast<void>(std::invoke(test)); };
  return explore_by(
      wanted, [](void* call) { (*static_cast<decltype(once)*>(call))(); }, &once, exactly);
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0::testing {

// Throws check_failed if it does not hold. Under explore() the schedule has failed then, even if the exception is
// caught on its way. Any fiber or thread; not a cancellation point.
inline void check(bool holds, std::string_view what = {}, source_location where = source_location::current()) {
  if (!holds) [[unlikely]]
    ::ramie::runtime_internal::check_has_failed(what, where);
}

// Runs test() again and again, each time as the only fiber of a fresh runtime with one worker and a virtual_clock, and
// each time with other decisions: who runs next, whether a fiber lets another run at a yield, wait, wake, spawn or
// channel operation, which case of a select is tried first. Stops at the first schedule that fails: test() threw, a
// check() failed, all fibers were blocked for good, or it did not end within max_steps.
//
// A schedule is determined by its seed and the options, in every process, as long as the test does the same whenever
// the same fibers run in the same order: no plain threads, no I/O, no real time, no addresses. If the environment has
// RAMIE_EXPLORE_SEED, only the schedule with that seed is run.
//
// Plain threads only. Throws explore_failure unless told otherwise, usage_error inside a fiber, for options that can't
// work and for a RAMIE_EXPLORE_SEED that is not a number, and what making a runtime throws. Ends the program if fibers
// can't be unwound after a failure because they are shielded.
template <class F>
explore_report explore(const explore_options& wanted, F&& test) {
  return ::ramie::runtime_internal::explore_calls(wanted, test);
}
template <class F>
requires std::invocable<F&> explore_report explore(F&& test) {
  return ::ramie::runtime_internal::explore_calls(explore_options{}, test);
}

// Runs the one schedule with that seed; `wanted` as it was when the seed was found. Throws as explore() does.
template <class F>
explore_report replay(std::uint64_t seed, F&& test, explore_options wanted = {}) {
  wanted.seed = seed;
  wanted.schedules = 1;
  return ::ramie::runtime_internal::explore_calls(wanted, test, true);
}

}  // namespace ramie::inline v0::testing
