// SPDX-License-Identifier: BSL-1.0
// Cooperation of operations that do not wait: each takes one from the worker's budget, and when that is used up, the
// others have a turn. So two fibers that keep each other busy can't starve the rest.
#pragma once

#include <ramie/cancel.hpp>
#include <ramie/runtime/current.hpp>

namespace ramie::runtime_internal {

// Lets others go first, if there are any, with a full budget. Only as a fiber of that worker. Returns the worker it
// comes back on, whose budget is not used up. Not a cancellation point.
[[nodiscard]] worker_local& yield_at_budget_end(worker_local& local) noexcept;

// Of a budget that is not used up.
inline void spend_one(const call_context& at) noexcept {
  at.local->budget.add(-1u);
}
// In a loop that waits for what a queued fiber, or another thread, is about to end: lets both run. Scheduler code lets
// only other threads run. May come back on another worker.
void spin_yield() noexcept;

// An operation that may not switch has been performed.
inline void spend_budget(const call_context& at) noexcept {
  if (at.self != nullptr && at.local->budget.get() != 0) spend_one(at);
}

// Whether a fiber has nothing to do before it goes on: no cancellation since it last checked its scopes, and budget
// left.
[[nodiscard]] inline bool nothing_pending(const call_context& at) noexcept {
  return at.local->cancel_epoch->load(std::memory_order_acquire) == head_of(*at.self).seen_epoch.get() &&
         at.local->budget.get() != 0;
}

// An operation that may switch: a turn for others when the budget is used up. `at` is brought up to date. Nothing on a
// plain thread.
[[gnu::always_inline]] inline void keep_to_budget(call_context& at) noexcept {
  if (at.self == nullptr) return;
  if (at.local->budget.get() == 0) [[unlikely]]
    at.local = &yield_at_budget_end(*at.local);
  spend_one(at);
}

// The beginning of an operation that may wait: keep_to_budget, and a cancellation point. Throws `cancelled`.
[[gnu::always_inline]] inline void begin_operation(call_context& at) {
  if (at.self == nullptr) return;
  if (at.local->cancel_epoch->load(std::memory_order_acquire) != head_of(*at.self).seen_epoch.get()) [[unlikely]]
    check_cancelled();
  keep_to_budget(at);
}

}  // namespace ramie::runtime_internal
