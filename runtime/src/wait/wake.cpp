// SPDX-License-Identifier: BSL-1.0
#include "wake.hpp"

#include <ramie/platform/held_locks.hpp>

#include "../sched/run_queues.hpp"
#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

[[gnu::noinline]] void enqueue_from_outside(fiber& f) noexcept {
  if (f.is_proxy()) return static_cast<proxy_fiber&>(f).parker.unpark();
  scheduler& home = *f.owner();
  platform::annotate::hand_over(&f);  // what was read of the frame and its scope, to the fiber itself
  home.queues.push_from_outside(home.pool, f);
}

RAMIE_FLATTEN void enqueue_at_once(fiber& f, bool may_preempt = false) noexcept {
  worker* const w = this_worker();
  if (w == nullptr || &w->sched != f.owner()) [[unlikely]]
    return enqueue_from_outside(f);
  platform::annotate::hand_over(&f);  // what was read of the frame, to whoever has it next on this worker
  run_queues::push_woken(*w, f, may_preempt);
}

}  // namespace

void enqueue(fiber& f) noexcept {
  enqueue_at_once(f);
}

bool claim(waiter& node) noexcept {
  return node.who->word.claim(static_cast<std::uint16_t>(node.ticket)) == claim_result::won;
}

void complete(fiber& who) noexcept {
  if constexpr (platform::debug_checks) platform::check_no_lock_held("a fiber is completed");
  if (who.word.complete() == complete_result::must_enqueue) enqueue_at_once(who, true);
}

void complete_from_scheduler(fiber& who) noexcept {
  if (who.word.complete() == complete_result::must_enqueue) enqueue(who);
}

void fiber_wake(fiber& f, std::uint64_t ticket) noexcept {
  // The 64-bit ticket first: 16 bits alone come round again within milliseconds.
  if (f.wait_ticket.load(std::memory_order_acquire) != ticket) return;
  if (f.word.wake(static_cast<std::uint16_t>(ticket)) == wake_result::must_enqueue) enqueue(f);
}

void waker::wake() const noexcept {
  if (who_ != nullptr) fiber_wake(*who_, ticket_);
}

void wake_for_cancel(fiber& f) noexcept {
  const auto now = f.word.load();
  if (f.word.wake(now.ticket()) == wake_result::must_enqueue) enqueue(f);
}

}  // namespace ramie::runtime_internal
