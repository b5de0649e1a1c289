// SPDX-License-Identifier: BSL-1.0
#include "once_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_the_first{"call_once"};

once_begun wait_for_the_first(once_core& o, sync_time until) {
  once_wait on(o);
  once_waiter node;
  if (park_until(on, node, waits_for_the_first, until) == wait_result::timed_out) return once_begun::too_late;
  return once_word::is_ours(node) ? once_begun::ours : once_begun::done;
}

}  // namespace

once_begun once_begin(once_core& o, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  if (!once_word::try_begin(o)) {
    if (owned_by(o.owner, at)) {
      misused(at, "waits in call_once or a once_cell for what it is doing itself",
              "What is done once must not ask for it again.");
    }
    const once_begun how = wait_for_the_first(o, until);
    if (how != once_begun::ours) return how;
  }
  set_owner(o.owner, at);
  return once_begun::ours;
}

void once_end(once_core& o, bool done) noexcept {
  clear_owner(o.owner);
  once_word::end(o, done);
}

}  // namespace ramie::sync_internal
