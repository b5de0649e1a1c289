// SPDX-License-Identifier: BSL-1.0
#include <ramie/time.hpp>

#include <algorithm>

#include <ramie/error.hpp>
#include <ramie/this_fiber.hpp>

namespace ramie::detail {

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

}  // namespace ramie::detail

namespace ramie::inline v0 {

void sleep_until(std::chrono::steady_clock::time_point when) {
  const auto from = now();
  if (when <= from) return yield();
  detail::sleep_on(when, from);
}

interval::interval(std::chrono::steady_clock::duration period, missed_ticks missed)
    : interval(detail::time_after(period), period, missed) {}

interval::interval(std::chrono::steady_clock::time_point first, std::chrono::steady_clock::duration period,
                   missed_ticks missed)
    : period_(period),
      next_(std::max(first, detail::steady::time_point())),  // now is never before that
      missed_(missed) {
  if (period <= std::chrono::steady_clock::duration::zero()) {
    throw usage_error("ramie: the period of an interval must be longer than nothing.");
  }
}

// A tick is late if nobody waited for it when its time came; who waited and was woken late has missed nothing.
std::chrono::steady_clock::time_point interval::tick() {
  const auto due = next_;
  const auto came = now();
  sleep_until(due);
  next_ = detail::moved(due, period_);
  if (came <= due) return due;
  switch (missed_) {
    case missed_ticks::burst: break;
    case missed_ticks::delay: next_ = detail::time_after(period_); break;
    case missed_ticks::skip:
      if (const auto after = now(); next_ <= after) next_ = detail::moved(next_, detail::whole(after - next_, period_));
      break;
  }
  return due;
}

void interval::reset() noexcept {
  next_ = detail::time_after(period_);
}

std::chrono::steady_clock::duration deadline::remaining() const noexcept {
  using duration = std::chrono::steady_clock::duration;
  if (when_ == std::chrono::steady_clock::time_point::max()) return duration::max();
  const auto at = now();
  return when_ > at ? when_ - at : duration::zero();
}

}  // namespace ramie::inline v0
