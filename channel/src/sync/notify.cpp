// SPDX-License-Identifier: BSL-1.0
#include "notify_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_notification{"notify wait"};
const wait_reason waits_for_notification_until{"notify wait, with a deadline"};

}  // namespace

void notify_wait(notify_core& n) {
  whereabouts at = look_around();
  begin_operation(at);
  if (notify_word::try_take(n)) return;
  notify_waitable on(n);
  line_waiter node;
  (void)fiber_wait(on, node, waits_for_notification);
}

bool notify_wait_until(notify_core& n, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (notify_word::try_take(n)) return true;
  notify_waitable on(n);
  line_waiter node;
  return fiber_wait_until(on, node, waits_for_notification_until, deadline) != wait_result::timed_out;
}

bool notify_try_wait(notify_core& n) noexcept {
  spend_budget(look_around());
  return notify_word::try_take(n);
}

void notify_one(notify_core& n) noexcept {
  notify_word::one(n);
}

void notify_all(notify_core& n) noexcept {
  notify_word::all(n);
}

void notify_destroyed(const notify_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::notify that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
