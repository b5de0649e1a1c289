// SPDX-License-Identifier: BSL-1.0
// What few fibers have: a name, fiber-local values. Owned by the fiber's record; touched by the fiber itself,
// and by its spawner before it is spawned. The name is set once and may be read by others while the fiber lives.
#pragma once

#include <string>

#include <ramie/detail/fiber_ops.hpp>
#include <ramie/fiber_local.hpp>
#include <ramie/platform/atomic.hpp>

namespace ramie::runtime_internal {

struct fiber_extras {
  std::string name;
  local_node* locals = nullptr;
};

// Copies of the inheritable values of `parent`, for a fiber that is about to be spawned. Throws what copying throws.
void inherit_locals(const fiber_record& parent, fiber_record& child);

// Whether inherit_locals would copy anything.
[[nodiscard]] bool has_inheritable(const fiber_extras& extras) noexcept;

// A fiber is about to be spawned with a record that has extras.
void announce_extras(fiber& f) noexcept;

// describe() for a thread that can't keep the fiber from ending: only if it is what `place` says from beginning to
// end, else "". The frame must be one that was there when the caller last held the frame pool's lock.
[[nodiscard]] std::string describe_if_at(const platform::owned<fiber*>& place, const fiber& f);

// The fiber's name, or "".
[[nodiscard]] const char* name_in(const fiber_record* record) noexcept;

}  // namespace ramie::runtime_internal
