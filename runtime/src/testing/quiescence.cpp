// SPDX-License-Identifier: BSL-1.0
#include "quiescence.hpp"

#include "../sched/scheduler.hpp"
#include "../wait/wake.hpp"

namespace ramie::runtime_internal {

namespace {
const wait_reason waits_for_quiescence{"wait_all_blocked"};
}

void quiescence::wait() {
  waiter node;
  (void)fiber_wait(*this, node, waits_for_quiescence);
}

bool quiescence::publish(waiter& node) {
  std::lock_guard hold(mutex_);
  waiters_.add(node);
  has_waiters_.store(true, std::memory_order_seq_cst);
  (void)serve_waiters();  // the workers may all be asleep
  return true;
}

void quiescence::unpublish(waiter& node) noexcept {
  std::lock_guard hold(mutex_);
  waiters_.remove(node);
  has_waiters_.store(serves_clock_or_director_ || !waiters_.empty(), std::memory_order_seq_cst);
}

// Whether no fiber can run before something from outside comes: the three steps of quiescence.hpp.
bool quiescence::everybody_blocked() noexcept {
  for (;;) {
    const auto seen = sched_.pool.idle().load_ordered();                        // 1
    if (!seen.all_parked() || sched_.queues.anything_queued()) return false;    // 2
    if (sched_.pool.idle().load_ordered().nobody_ran_since(seen)) return true;  // 3
  }
}

// In a loop: a deadline may wake no fiber, and after a plain thread was served all fibers are still blocked. The clock
// and the director are not served while a fiber waits for a blocking call: when that has ended, the fiber goes on, and
// the worker that sleeps after it checks again.
bool quiescence::check() noexcept {
  std::lock_guard hold(mutex_);
  bool any = serve_waiters();
  while (serves_clock_or_director_ && everybody_blocked() && !sched_.blocking.anybody_waits() && serve_others())
    any = true;
  return any;
}

bool quiescence::serve_waiters() noexcept {
  while (everybody_blocked()) {
    waiter* const next = waiters_.claim_first();
    has_waiters_.store(serves_clock_or_director_ || !waiters_.empty(), std::memory_order_seq_cst);
    if (next == nullptr) return false;
    fiber& who = *next->who;
    const bool ours = who.owner() == &sched_;
    next->outcome = 1;
    complete_from_scheduler(who);
    if (ours) return true;
  }
  return false;
}

bool quiescence::serve_others() noexcept {
  if (sched_.deadlines.jump()) return true;
  return sched_.policy != nullptr && sched_.policy->standstill(sched_);
}

}  // namespace ramie::runtime_internal
