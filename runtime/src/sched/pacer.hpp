// SPDX-License-Identifier: BSL-1.0
// How many polls a worker may make before it does maintenance (the budget of a tick), and before it visits the
// injection queue. Both are numbers of polls, so one comparison per poll decides: the clock is read once per tick, not
// once per fiber. Owner only.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

[[nodiscard]] constexpr std::uint32_t interval_for(std::int64_t average_ns) noexcept {
  const auto per_target = target_injection_latency.count() / std::max<std::int64_t>(average_ns, 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(per_target, min_injection_interval, max_injection_interval));
}

class pacer {
 public:
  // Is anything due at this poll?
  [[nodiscard]] bool due(std::uint64_t polls) const noexcept { return polls >= next_.get(); }

  // The budget of this tick is used up.
  [[nodiscard]] bool tick_ended(std::uint64_t polls) const noexcept { return polls >= tick_end_.get(); }

  // Every `interval()` polls the injection queue comes before the local ones.
  [[nodiscard]] bool injection_turn(std::uint64_t polls) noexcept {
    if (polls < injection_at_.get()) return false;
    injection_at_.set(polls + interval_.get());
    plan();
    return true;
  }

  // A tick begins. The time since the last one ended (sleep, say) counts as running time of no fiber.
  void restart(std::uint64_t polls, platform::time_point now) noexcept {
    started_.set(now);
    tick_end_.set(polls + budget_per_tick);
    plan();
  }

  // A tick ended after budget_per_tick polls.
  void end_tick(std::uint64_t polls, platform::time_point now) noexcept {
    if (adapts_.get()) adapt(now);
    restart(polls, now);
  }

  // From here on the interval stays as it is, however long fibers run.
  void keep_interval() noexcept { adapts_.set(false); }

  [[nodiscard]] platform::time_point tick_started() const noexcept { return started_.get(); }
  [[nodiscard]] std::uint32_t interval() const noexcept { return interval_.get(); }

 private:
  void adapt(platform::time_point now) noexcept {
    const auto sample = static_cast<double>((now - started_.get()).count()) / budget_per_tick;
    const auto blended = ewma_alpha * sample + (1.0 - ewma_alpha) * static_cast<double>(average_ns_.get());
    average_ns_.set(std::max<std::int64_t>(1, static_cast<std::int64_t>(blended)));
    interval_.set(interval_for(average_ns_.get()));
  }
  void plan() noexcept { next_.set(std::min(tick_end_.get(), injection_at_.get())); }

  static constexpr std::uint32_t first_interval = interval_for(initial_task_estimate.count());

  platform::owned<std::uint64_t> next_{first_interval};
  platform::owned<std::uint64_t> tick_end_{budget_per_tick};
  platform::owned<std::uint64_t> injection_at_{first_interval};
  platform::owned<std::uint32_t> interval_{first_interval};
  platform::owned<std::int64_t> average_ns_{initial_task_estimate.count()};
  platform::owned<platform::time_point> started_{};
  platform::owned<bool> adapts_{true};
};

}  // namespace ramie::runtime_internal
