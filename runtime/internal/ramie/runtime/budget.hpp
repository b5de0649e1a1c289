// SPDX-License-Identifier: BSL-1.0
// Cooperation of operations that do not wait: each takes one from the worker's budget, and when that is used up, the
// others have a turn. So two fibers that keep each other busy can't starve the rest.
#pragma once

#include <ramie/cancel.hpp>
#include <ramie/runtime/here.hpp>

namespace ramie::detail {

// Lets others go first, if there are any, with a full budget. Only as a fiber of that worker. Returns the worker it
// comes back on, whose budget is not used up. Not a cancellation point.
[[nodiscard]] worker_desk& step_aside(worker_desk& desk) noexcept;

// Of a budget that is not used up.
inline void spend_one(const whereabouts& at) noexcept {
  at.desk->budget.add(-1u);
}
// In a loop that waits for what a queued fiber, or another thread, is about to end: a turn for both. Not for the
// scheduler's own code alone: there it is one for other threads. May come back on another worker.
void let_others_pass() noexcept;

// An operation that may not switch has been carried out.
inline void spend_budget(const whereabouts& at) noexcept {
  if (at.self != nullptr && at.desk->budget.get() != 0) spend_one(at);
}

// Whether a fiber has nothing to look at before it goes on: no cancellation since it last looked, and budget left.
[[nodiscard]] inline bool quiet(const whereabouts& at) noexcept {
  return at.desk->cancel_epoch->load(std::memory_order_acquire) == face_of(*at.self).seen_epoch.get() &&
         at.desk->budget.get() != 0;
}

// An operation that may switch: a turn for others when the budget is used up. `at` is brought up to date. Nothing on a
// plain thread.
[[gnu::always_inline]] inline void keep_to_budget(whereabouts& at) noexcept {
  if (at.self == nullptr) return;
  if (at.desk->budget.get() == 0) [[unlikely]]
    at.desk = &step_aside(*at.desk);
  spend_one(at);
}

// The beginning of an operation that may wait: the same, and a cancellation point. Throws `cancelled`.
[[gnu::always_inline]] inline void begin_operation(whereabouts& at) {
  if (at.self == nullptr) return;
  if (at.desk->cancel_epoch->load(std::memory_order_acquire) != face_of(*at.self).seen_epoch.get()) [[unlikely]]
    check_cancelled();
  keep_to_budget(at);
}

}  // namespace ramie::detail
