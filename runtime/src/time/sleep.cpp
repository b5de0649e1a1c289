// SPDX-License-Identifier: BSL-1.0
#include <ramie/time.hpp>

#include <ramie/error.hpp>
#include <ramie/runtime/wait.hpp>
#include <ramie/this_fiber.hpp>

namespace ramie::detail {

namespace {

const wait_reason sleeps{"sleep"};

// Nothing ever comes but the time.
class nothing final : public waitable {
 public:
  bool try_complete(waiter&) override { return false; }
  bool publish(waiter&) override { return true; }
  void unpublish(waiter&) noexcept override {}
};

}  // namespace

void sleep_on(std::chrono::steady_clock::time_point until) {
  nothing waited_for;
  waiter node;
  (void)fiber_wait_until(waited_for, node, sleeps, until);
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

void sleep_until(std::chrono::steady_clock::time_point when) {
  if (when <= now()) return yield();
  detail::sleep_on(when);
}

interval::interval(std::chrono::steady_clock::duration period, missed_ticks missed)
    : interval(detail::time_after(period), period, missed) {}

interval::interval(std::chrono::steady_clock::time_point first, std::chrono::steady_clock::duration period,
                   missed_ticks missed)
    : period_(period), next_(first), missed_(missed) {
  if (period <= std::chrono::steady_clock::duration::zero()) {
    throw usage_error("ramie: the period of an interval must be longer than nothing.");
  }
}

std::chrono::steady_clock::time_point interval::tick() {
  sleep_until(next_);
  const auto due = next_;
  const auto late = now() - due;
  switch (missed_) {
    case missed_ticks::burst: next_ = due + period_; break;
    case missed_ticks::delay:
      next_ = due + (late > period_ ? late : std::chrono::steady_clock::duration::zero()) + period_;
      break;
    case missed_ticks::skip: next_ = due + (late / period_ + 1) * period_; break;
  }
  return due;
}

void interval::reset() noexcept {
  next_ = detail::time_after(period_);
}

std::chrono::steady_clock::duration deadline::remaining() const noexcept {
  using duration = std::chrono::steady_clock::duration;
  if (when_ == std::chrono::steady_clock::time_point::max()) return duration::max();
  const auto left = when_ - now();
  return left > duration::zero() ? left : duration::zero();
}

}  // namespace ramie::inline v0
