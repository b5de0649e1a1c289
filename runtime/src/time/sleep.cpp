// SPDX-License-Identifier: BSL-1.0
#include <ramie/time.hpp>

#include <algorithm>

#include <ramie/error.hpp>
#include <ramie/this_fiber.hpp>

namespace ramie::runtime_internal {

namespace {

using steady = std::chrono::steady_clock;

// The end of time stays the end of time.
steady::time_point moved(steady::time_point t, steady::duration by) noexcept {
  return by < steady::time_point::max() - t ? t + by : steady::time_point::max();
}

// The first multiple of the period beyond `passed`.
steady::duration whole(steady::duration passed, steady::duration period) noexcept {
  return (passed / period + 1) * period;
}

}  // namespace

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

void sleep_until(deadline until) {
  const auto when = until.when();
  const auto from = now();
  if (when <= from) return yield();
  runtime_internal::sleep_on(when, from);
}

interval::interval(std::chrono::steady_clock::duration period, missed_ticks missed)
    : interval(runtime_internal::time_after(period), period, missed) {}

interval::interval(std::chrono::steady_clock::time_point first, std::chrono::steady_clock::duration period,
                   missed_ticks missed)
    : period_(period),
      next_(std::max(first, runtime_internal::steady::time_point())),  // now is never before that
      missed_(missed) {
  if (period <= std::chrono::steady_clock::duration::zero()) {
    throw usage_error("ramie: interval::interval: the period is not above zero. Give it a longer one.");
  }
}

// A tick is missed if the caller did not wait for it when its time came; a caller that waited and was woken late has
// missed nothing.
std::chrono::steady_clock::time_point interval::tick() {
  const auto came = now();
  sleep_until(next_);
  return take(came);
}

std::chrono::steady_clock::time_point interval::take(std::chrono::steady_clock::time_point came) noexcept {
  const auto due = next_;
  next_ = runtime_internal::moved(due, period_);
  if (came <= due) return due;
  switch (missed_) {
    case missed_ticks::burst: break;
    case missed_ticks::delay: next_ = runtime_internal::time_after(period_); break;
    case missed_ticks::skip:
      if (const auto after = now(); next_ <= after) {
        next_ = runtime_internal::moved(next_, runtime_internal::whole(after - next_, period_));
      }
      break;
  }
  return due;
}

void interval::reset() noexcept {
  next_ = runtime_internal::time_after(period_);
}

std::chrono::steady_clock::duration deadline::remaining() const noexcept {
  using duration = std::chrono::steady_clock::duration;
  if (when_ == std::chrono::steady_clock::time_point::max()) return duration::max();
  const auto at = now();
  return when_ > at ? when_ - at : duration::zero();
}

}  // namespace ramie::inline v0
