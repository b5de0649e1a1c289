// SPDX-License-Identifier: BSL-1.0
#include "condition_core.hpp"

#include <ramie/cancel.hpp>

#include "mutex_core.hpp"
#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_condition{"condition variable wait"};

}  // namespace

bool condition_wait(condition_core& c, mutex_core& m, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  condition_waitable<mutex_unlock> on(c, m);
  condition_waiter node;
  (void)park_until(on, node, waits_for_condition, until);  // if it throws, nothing is published, and we hold the mutex
  mutex_lock_again(m);
  if (node.was_notified()) return true;
  check_cancelled();
  return until == never || now() < until;
}

void condition_notify(condition_core& c, bool all) noexcept {
  condition_queue::notify(c, all);
}

}  // namespace ramie::sync_internal
