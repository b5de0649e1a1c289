// SPDX-License-Identifier: BSL-1.0
#include "barrier_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_the_others{"barrier wait"};

}  // namespace

bool barrier_wait(barrier_core& b) {
  whereabouts at = look_around();
  begin_operation(at);
  barrier_waitable on(b);
  barrier_waiter node;
  (void)fiber_wait(on, node, waits_for_the_others);
  return node.leads;
}

void barrier_arrive_and_drop(barrier_core& b) noexcept {
  if (!barrier_line::arrive_and_drop(b)) [[unlikely]] {
    misused(look_around(), "drops out of a ramie::barrier without parties", "Drop out once a party.");
  }
}

std::uint64_t barrier_generation(barrier_core& b) noexcept {
  line_guard hold(b.waiters);
  return b.generation;
}

void barrier_destroyed(const barrier_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::barrier that others wait at", "It must outlive all who wait at it.");
  }
}

}  // namespace ramie::detail
