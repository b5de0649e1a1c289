// SPDX-License-Identifier: BSL-1.0
#include "condition_core.hpp"

#include <ramie/cancel.hpp>
#include <ramie/runtime/budget.hpp>

#include "mutex_ops.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_condition{"condition variable wait"};
const wait_reason waits_for_condition_until{"condition variable wait, with a deadline"};

}  // namespace

bool condition_wait(condition_core& c, mutex_core& m, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  condition_waitable<mutex_unlock> on(c, m);
  condition_waiter node;
  // If these throw, they do so before they publish: the mutex is still ours.
  if (deadline == sync_time::max()) {
    (void)fiber_wait(on, node, waits_for_condition);
  } else {
    (void)fiber_wait_until(on, node, waits_for_condition_until, deadline);
  }
  mutex_lock_again(m);
  if (node.was_notified()) return true;
  check_cancelled();
  return deadline == sync_time::max() || now() < deadline;
}

void condition_notify(condition_core& c, bool all) noexcept {
  condition_line::notify(c, all);
}

void condition_destroyed(const condition_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::condition_variable that others wait for",
            "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
