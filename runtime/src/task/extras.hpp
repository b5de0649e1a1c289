// SPDX-License-Identifier: BSL-1.0
// What few fibers have: a name, fiber-local values. Owned by the fiber's record; touched by the fiber itself,
// and by its spawner before it is spawned. The name is set once and may be read by others while the fiber lives.
#pragma once

#include <string>

#include <ramie/detail/fiber_ops.hpp>
#include <ramie/fiber_local.hpp>

namespace ramie::detail {

struct fiber_extras {
  std::string name;
  local_node* locals = nullptr;
};

// Copies of the inheritable values of `parent`, for a fiber that is about to be spawned. Throws what copying throws.
void inherit_locals(const fiber_record& parent, fiber_record& child);

// The fiber's name, or "".
[[nodiscard]] const char* name_in(const fiber_record* record) noexcept;

}  // namespace ramie::detail
