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
  {
    std::lock_guard hold(mutex_);
    waiters_.add(node);
    cares_.store(true, std::memory_order_seq_cst);
  }
  (void)serve_waiters();  // the workers may all be asleep
  return true;
}

void stillness::unpublish(waiter& node) noexcept {
  std::lock_guard hold(mutex_);
  waiters_.remove(node);
  cares_.store(on_duty_ || !waiters_.empty(), std::memory_order_seq_cst);
}

bool stillness::look() noexcept {
  switch (serve_waiters()) {
    case served::somebody_runs: return false;
    case served::let_a_fiber_go: return true;
    case served::nobody_left: break;
  }
  return serve_others();
}

stillness::served stillness::serve_waiters() noexcept {
  for (;;) {
    waiter* next = nullptr;
    {
      std::lock_guard hold(mutex_);
      if (!sched_.everybody_blocked()) return served::somebody_runs;
      next = waiters_.claim_first();
      cares_.store(on_duty_ || !waiters_.empty(), std::memory_order_seq_cst);
    }
    if (next == nullptr) return served::nobody_left;
    fiber& who = *next->who;
    const bool ours = who.owner == &sched_;
    next->outcome = 1;
    complete_from_scheduler(who);
    if (ours) return served::let_a_fiber_go;
  }
}

bool stillness::serve_others() noexcept {
  std::lock_guard hold(one_at_a_time_);
  if (!on_duty_ || !sched_.everybody_blocked()) return false;
  if (sched_.deadlines.jump()) return true;
  return sched_.directed != nullptr && sched_.directed->standstill(sched_);
}

}  // namespace ramie::detail
