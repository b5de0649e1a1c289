// SPDX-License-Identifier: BSL-1.0
#include "notify_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_notification{"notify wait"};

}  // namespace

bool notify_wait(notify_core& n, sync_time until) {
  return wait_for<notify_word>(n, waits_for_notification, until, [&n] { return notify_word::try_take(n); });
}

bool notify_try_wait(notify_core& n) noexcept {
  spend_budget(current_context());
  return notify_word::try_take(n);
}

void notify_one(notify_core& n) noexcept {
  notify_word::one(n);
}

void notify_all(notify_core& n) noexcept {
  notify_word::all(n);
}

ready_source notify_source(notify_core& n) noexcept {
  return source_of<notify_word>(n);
}

}  // namespace ramie::sync_internal
