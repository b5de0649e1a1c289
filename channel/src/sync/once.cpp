// SPDX-License-Identifier: BSL-1.0
#include "once_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_the_first{"call_once"};

// True: it is ours to do.
bool wait_for_the_first(once_core& o) {
  once_wait on(o);
  once_waiter node;
  (void)fiber_wait(on, node, waits_for_the_first);
  return node.ours || node.outcome == static_cast<std::uint32_t>(once_turn::ours);
}

}  // namespace

bool once_begin(once_core& o) {
  whereabouts at = look_around();
  begin_operation(at);
  if (!once_word::try_begin(o)) {
    if (owned_by(o.owner, at)) {
      misused(at, "waits in call_once or a once_cell for what it is doing itself",
              "What is done once must not ask for it again.");
    }
    if (!wait_for_the_first(o)) return false;
  }
  set_owner(o.owner, at);
  return true;
}

void once_end(once_core& o, bool done) noexcept {
  clear_owner(o.owner);
  once_word::end(o, done);
}

void once_destroyed(const once_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::once_flag or once_cell that somebody is just initialising",
            "It must outlive all who use it.");
  }
}

}  // namespace ramie::detail
