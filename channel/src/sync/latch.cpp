// SPDX-License-Identifier: BSL-1.0
#include "latch_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_latch{"latch wait"};
const wait_reason waits_for_latch_until{"latch wait, with a deadline"};

}  // namespace

void latch_count_down(latch_core& l, std::uint64_t by) noexcept {
  if (!latch_word::count_down(l, by)) [[unlikely]] {
    misused(look_around(), "counts a ramie::latch down below zero", "Make it with as many as will count down.");
  }
}

void latch_wait(latch_core& l) {
  whereabouts at = look_around();
  begin_operation(at);
  if (latch_word::is_open(l)) return;
  latch_waitable on(l);
  line_waiter node;
  (void)fiber_wait(on, node, waits_for_latch);
}

bool latch_wait_until(latch_core& l, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (latch_word::is_open(l)) return true;
  latch_waitable on(l);
  line_waiter node;
  return fiber_wait_until(on, node, waits_for_latch_until, deadline) != wait_result::timed_out;
}

void latch_destroyed(const latch_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::latch that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
