// SPDX-License-Identifier: BSL-1.0
// Waiting for a time. Fibers go by the clock of their runtime (`options.clock`, or the machine's steady clock); plain
// threads by std::chrono::steady_clock.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

// Until a time that is yet to come; it is `now`.
void sleep_on(std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point now);

}  // namespace ramie::detail

namespace ramie::inline v0 {

// Waits until that time, never less; time_point::max() is until cancelled. A time that has passed lets others go first.
// A cancellation point: throws `cancelled`, and std::bad_alloc or std::system_error if the deadline can't be kept. By
// fibers and plain threads.
void sleep_until(std::chrono::steady_clock::time_point when);

// The same for a duration from now; zero and less is a time that has passed.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> time) {
  if (time > std::chrono::duration<Rep, Period>::zero()) {
    const auto from = now();
    ::ramie::detail::sleep_on(::ramie::detail::time_after(time, from), from);
  } else {
    sleep_until(std::chrono::steady_clock::time_point::min());
  }
}

// What an interval does about ticks whose time passed before anybody waited for them. The first of them is handed out
// at once; then
enum class missed_ticks : std::uint8_t {
  burst,  // so are the others, one after the other, until it has caught up
  delay,  // the next one is a period from now: the rhythm has moved
  skip,   // the others are left out: the next one is the next one of the original rhythm
};

// Ticks at equal distances. Used by one fiber or thread at a time.
class interval {
 public:
  // The first tick is one period from now, or at `first`. Throws usage_error unless the period is positive.
  explicit interval(std::chrono::steady_clock::duration period, missed_ticks missed = missed_ticks::burst);
  interval(std::chrono::steady_clock::time_point first, std::chrono::steady_clock::duration period,
           missed_ticks missed = missed_ticks::burst);

  // Waits for the next tick and returns the time it was due. A cancellation point, like sleep_until; a tick that was
  // not waited for to its end is still the next one.
  std::chrono::steady_clock::time_point tick();

  // The next tick is one period from now. Not a cancellation point.
  void reset() noexcept;
  [[nodiscard]] std::chrono::steady_clock::duration period() const noexcept { return period_; }
  [[nodiscard]] std::chrono::steady_clock::time_point next() const noexcept { return next_; }

 private:
  std::chrono::steady_clock::duration period_;
  std::chrono::steady_clock::time_point next_;
  missed_ticks missed_;
};

// A time by which something has to be done, to be handed from one operation to the next: each gets what is left.
class deadline {
 public:
  deadline() noexcept = default;  // never
  explicit deadline(std::chrono::steady_clock::time_point when) noexcept : when_(when) {}
  template <class Rep, class Period>
  [[nodiscard]] static deadline after(std::chrono::duration<Rep, Period> time) noexcept {
    return deadline(::ramie::detail::time_after(time));
  }

  [[nodiscard]] std::chrono::steady_clock::time_point when() const noexcept { return when_; }
  // By the caller's clock. Not cancellation points.
  [[nodiscard]] bool expired() const noexcept { return remaining() == std::chrono::steady_clock::duration::zero(); }
  // Zero if it has expired; duration::max() if it never does.
  [[nodiscard]] std::chrono::steady_clock::duration remaining() const noexcept;

 private:
  std::chrono::steady_clock::time_point when_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace ramie::inline v0
