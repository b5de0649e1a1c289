// SPDX-License-Identifier: BSL-1.0
// A condition variable. A waiter lists itself while it holds the mutex and lets go of it right after, in one publish;
// so whoever locks the mutex after that and notifies finds it listed. It is listed once: a wake for nothing ends the
// wait, because a notification that comes while it is not listed is another's, or nobody's.
#include <ramie/condition_variable.hpp>

#include <ramie/cancel.hpp>
#include <ramie/runtime/budget.hpp>

#include "line.hpp"
#include "mutex_ops.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_condition{"condition variable wait"};
const wait_reason waits_for_condition_until{"condition variable wait, with a deadline"};

struct condition_waiter : line_waiter {
  bool has_let_go = false;  // of the mutex
};

class condition_waitable final : public waitable {
 public:
  condition_waitable(condition_core& c, mutex_core& m) noexcept : condition_(c), mutex_(m) {}
  bool try_complete(waiter& node) override { return static_cast<condition_waiter&>(node).has_let_go; }
  bool publish(waiter& node) override {
    auto& me = static_cast<condition_waiter&>(node);
    me.has_let_go = true;
    {
      line_guard hold(condition_.waiters);
      hold.list(me);
      condition_.waited_for.store(true, std::memory_order_relaxed);  // seen by who locks the mutex after us
    }
    mutex_unlock(mutex_);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    line_guard hold(condition_.waiters);
    hold.remove(node);
    if (hold.empty()) condition_.waited_for.store(false, std::memory_order_relaxed);
  }

 private:
  condition_core& condition_;
  mutex_core& mutex_;
};

}  // namespace

bool condition_wait(condition_core& c, mutex_core& m, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  condition_waitable on(c, m);
  condition_waiter node;
  // If these throw, they do so before they publish: the mutex is still ours.
  if (deadline == sync_time::max()) {
    (void)fiber_wait(on, node, waits_for_condition);
  } else {
    (void)fiber_wait_until(on, node, waits_for_condition_until, deadline);
  }
  mutex_lock_again(m);
  if (node.outcome != 0 || node.passed) return true;
  check_cancelled();
  return deadline == sync_time::max() || now() < deadline;
}

void condition_notify(condition_core& c, bool all) noexcept {
  tell_later later;
  line_guard hold(c.waiters);
  if (all) {
    later.let_all_pass(hold);
  } else if (waiter* const first = hold.claim_first()) {
    later.add(*first);
  }
  if (hold.empty()) c.waited_for.store(false, std::memory_order_relaxed);
}

void condition_destroyed(const condition_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::condition_variable that others wait for",
            "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
