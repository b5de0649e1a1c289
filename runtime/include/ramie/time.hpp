// SPDX-License-Identifier: BSL-1.0
// Waiting for a time. Fibers go by the clock of their runtime (`options.clock`, or the machine's steady clock); plain
// threads by std::chrono::steady_clock.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/deadline.hpp>
#include <ramie/version.hpp>

namespace ramie::runtime_internal {

// Sleeps until a time that has not come yet; `now` is the current time.
void sleep_on(std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point now);
struct tick_access;

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Waits until then, never less; a deadline that never comes is until cancelled. A time that has passed lets others go
// first. A cancellation point: throws `cancelled`, and std::bad_alloc or std::system_error if there is no timer for it.
// For fibers and plain threads.
void sleep_until(deadline until);

// The same for a duration from now; zero and less is a time that has passed. A cancellation point.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> time) {
  if (time > std::chrono::duration<Rep, Period>::zero()) {
    const auto from = now();
    ::ramie::runtime_internal::sleep_on(::ramie::runtime_internal::time_after(time, from), from);
  } else {
    sleep_until(deadline(std::chrono::steady_clock::time_point::min()));
  }
}

// What an interval does about ticks whose time passed before tick() was called. The first of them is handed out
// at once; then
enum class missed_ticks : std::uint8_t {
  burst,  // so are the others, one after the other, until it has caught up
  delay,  // the next one is a period from now: the rhythm has moved
  skip,   // the others are left out: the next one is the next one of the original rhythm
};

// Ticks at equal distances. Used by one fiber or plain thread at a time, of any runtime; it goes by the clock of
// whoever calls. A case of select: on_tick (select.hpp).
class interval {
 public:
  // The first tick is one period from now, or at `first`. Any fiber or plain thread. Not a cancellation point. Throws
  // usage_error unless the period is positive.
  explicit interval(std::chrono::steady_clock::duration period, missed_ticks missed = missed_ticks::burst);
  interval(std::chrono::steady_clock::time_point first, std::chrono::steady_clock::duration period,
           missed_ticks missed = missed_ticks::burst);

  // Waits for the next tick and returns the time it was due. A cancellation point, like sleep_until: throws
  // `cancelled`, and std::bad_alloc or std::system_error if there is no timer for it. A tick that was not waited for to
  // its end is still the next one.
  std::chrono::steady_clock::time_point tick();

  // The next tick is one period from now. Not a cancellation point.
  void reset() noexcept;
  // The distance of the ticks. Its user. Not a cancellation point.
  [[nodiscard]] std::chrono::steady_clock::duration period() const noexcept { return period_; }
  // When the next tick is due; it may have passed. Its user. Not a cancellation point.
  [[nodiscard]] std::chrono::steady_clock::time_point next() const noexcept { return next_; }

 private:
  friend struct ::ramie::runtime_internal::tick_access;
  // The tick that is due has been waited for, by a caller who came at that time.
  std::chrono::steady_clock::time_point take(std::chrono::steady_clock::time_point came) noexcept;

  std::chrono::steady_clock::duration period_;
  std::chrono::steady_clock::time_point next_;
  missed_ticks missed_;
};

}  // namespace ramie::inline v0

namespace ramie::runtime_internal {

// For select, which waits for ticks.
struct tick_access {
  static std::chrono::steady_clock::time_point take(interval& of, std::chrono::steady_clock::time_point came) noexcept {
    return of.take(came);
  }
};

}  // namespace ramie::runtime_internal
