// SPDX-License-Identifier: BSL-1.0
#include "event_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_event{"event wait"};
const wait_reason waits_for_event_until{"event wait, with a deadline"};

}  // namespace

void event_set(event_core& e) noexcept {
  event_word::set(e);
}

void event_reset(event_core& e) noexcept {
  event_word::reset(e);
}

void event_wait(event_core& e) {
  whereabouts at = look_around();
  begin_operation(at);
  if (event_word::has_happened(e)) return;
  event_waitable on(e);
  line_waiter node;
  (void)fiber_wait(on, node, waits_for_event);
}

bool event_wait_until(event_core& e, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (event_word::has_happened(e)) return true;
  event_waitable on(e);
  line_waiter node;
  return fiber_wait_until(on, node, waits_for_event_until, deadline) != wait_result::timed_out;
}

void event_destroyed(const event_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::event that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
