// SPDX-License-Identifier: BSL-1.0
// How long a worker may go on before it looks around: the budget of a tick, and how often it visits the
// injection queue. One clock read per tick, none per fiber. Owner only.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::detail {

[[nodiscard]] constexpr std::uint32_t interval_for(std::int64_t average_ns) noexcept {
  const auto per_target = target_global_latency.count() / std::max<std::int64_t>(average_ns, 1);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(per_target, min_global_interval, max_global_interval));
}

class pace {
 public:
  // Counts one poll. True: the tick is over and its maintenance is due.
  [[nodiscard]] bool spend() noexcept {
    const auto left = budget_.get() - 1;
    budget_.set(left);
    return left == 0;
  }

  // True every `interval()` polls: look at the injection queue before the local one.
  [[nodiscard]] bool global_turn() noexcept {
    const auto left = until_global_.get() - 1;
    until_global_.set(left != 0 ? left : interval_.get());
    return left == 0;
  }

  // A tick begins; what happened since the last one (sleep, say) is nobody's running time.
  void restart(platform::time_point now) noexcept {
    started_.set(now);
    budget_.set(budget_per_tick);
  }

  // A tick ended after `budget_per_tick` polls.
  void end_tick(platform::time_point now) noexcept {
    const auto sample = static_cast<double>((now - started_.get()).count()) / budget_per_tick;
    const auto blended = ewma_alpha * sample + (1.0 - ewma_alpha) * static_cast<double>(average_ns_.get());
    average_ns_.set(std::max<std::int64_t>(1, static_cast<std::int64_t>(blended)));
    interval_.set(interval_for(average_ns_.get()));
    restart(now);
  }

  [[nodiscard]] std::uint32_t interval() const noexcept { return interval_.get(); }
  [[nodiscard]] std::uint32_t budget() const noexcept { return budget_.get(); }

 private:
  platform::owned<std::uint32_t> budget_{budget_per_tick};
  platform::owned<std::uint32_t> interval_{interval_for(initial_task_estimate.count())};
  platform::owned<std::uint32_t> until_global_{interval_for(initial_task_estimate.count())};
  platform::owned<std::int64_t> average_ns_{initial_task_estimate.count()};
  platform::owned<platform::time_point> started_{};
};

}  // namespace ramie::detail
