// SPDX-License-Identifier: BSL-1.0
#include "stillness.hpp"

#include "../sched/scheduler.hpp"
#include "../wait/wake.hpp"
#include "director.hpp"

namespace ramie::detail {

namespace {
const wait_reason waits_for_stillness{"wait_all_blocked"};
}

void stillness::wait() {
  waiter node;
  (void)fiber_wait(*this, node, waits_for_stillness);
}

bool stillness::publish(waiter& node) {
  std::lock_guard hold(mutex_);
  waiters_.add(node);
  cares_.store(true, std::memory_order_seq_cst);
  (void)serve_waiters();  // the workers may all be asleep
  return true;
}

void stillness::unpublish(waiter& node) noexcept {
  std::lock_guard hold(mutex_);
  waiters_.remove(node);
  cares_.store(on_duty_ || !waiters_.empty(), std::memory_order_seq_cst);
}

// Again and again: a deadline may wake nobody, and a plain thread that is let go leaves all as still as it was. But not
// while a fiber waits for a blocking call: when that has ended, the fiber goes on, and whoever sleeps after it looks.
bool stillness::look() noexcept {
  std::lock_guard hold(mutex_);
  bool any = serve_waiters();
  while (on_duty_ && sched_.everybody_blocked() && !sched_.blocking.anybody_waits() && serve_others()) any = true;
  return any;
}

bool stillness::serve_waiters() noexcept {
  while (sched_.everybody_blocked()) {
    waiter* const next = waiters_.claim_first();
    cares_.store(on_duty_ || !waiters_.empty(), std::memory_order_seq_cst);
    if (next == nullptr) return false;
    fiber& who = *next->who;
    const bool ours = who.owner() == &sched_;
    next->outcome = 1;
    complete_from_scheduler(who);
    if (ours) return true;
  }
  return false;
}

bool stillness::serve_others() noexcept {
  if (sched_.deadlines.jump()) return true;
  return sched_.directed != nullptr && sched_.directed->standstill(sched_);
}

}  // namespace ramie::detail
