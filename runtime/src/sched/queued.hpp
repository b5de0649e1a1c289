// SPDX-License-Identifier: BSL-1.0
// An entry of a run queue: a RUNNABLE fiber, or a task, which is the record of a fiber that has not started and has no
// frame yet. One pointer, whose lowest bit says which; it has a type of its own, so that nobody takes it for a fiber.
#pragma once

#include <cstdint>

#include "../task/frame.hpp"

namespace ramie::runtime_internal {

class queued;  // never defined

[[nodiscard]] inline queued* as_entry(fiber& f) noexcept {
  return reinterpret_cast<queued*>(&f);
}
[[nodiscard]] inline queued* as_entry(fiber_record& task) noexcept {
  return reinterpret_cast<queued*>(reinterpret_cast<std::uintptr_t>(&task) | 1);
}
[[nodiscard]] inline bool is_task(const queued* entry) noexcept {
  return (reinterpret_cast<std::uintptr_t>(entry) & 1) != 0;
}
// Which of the two it is must be known.
[[nodiscard]] inline fiber& fiber_in(queued* entry) noexcept {
  return *reinterpret_cast<fiber*>(entry);
}
[[nodiscard]] inline fiber_record& task_in(queued* entry) noexcept {
  return *reinterpret_cast<fiber_record*>(reinterpret_cast<std::uintptr_t>(entry) - 1);
}

// Of the fiber or the record.
[[nodiscard]] inline const void* address_of(const queued* entry) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(entry) & ~std::uintptr_t{1});
}

// The fiber has started: it has a stack of its own.
[[nodiscard]] inline bool has_started(const queued* entry) noexcept {
  return !is_task(entry) && reinterpret_cast<const fiber*>(entry)->stack.get() != nullptr;
}

}  // namespace ramie::runtime_internal
