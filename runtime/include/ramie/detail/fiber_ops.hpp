// SPDX-License-Identifier: BSL-1.0
// What a fiber runs, as the runtime sees it: a record, and functions over it. Not part of the API; templates
// of the public headers make these.
#pragma once

#include <cstdint>

#include <ramie/detail/atomic.hpp>

namespace ramie::runtime_internal {

class cancel_scope;
class fiber;
struct fiber_extras;  // its name and its fiber-local values; most fibers have neither

struct fiber_record {
  fiber_extras* extras = nullptr;  // the fiber's own; freed by the runtime when it ends
  atomic<fiber*> frame{nullptr};   // set by spawn, the fiber's until retire
};

enum class fiber_end : std::uint8_t { done, cancelled };

enum class discard_cause : std::uint8_t {
  cancelled,  // its scope was cancelled before it started
  no_stack,   // no stack could be had; see stack_exhausted
};

// Exactly one of run and discard is called, as the fiber (discard for want of a stack: as the scheduler), then retire,
// as the scheduler. None may throw. The scheduler's own code must not wait.
// After retire the runtime does not touch the record. `home` is the scope the fiber was spawned into;
// `joiner` is the scope whose join called the fiber in place, or null: if both are one, the owner of that
// scope is the caller of retire, below the fiber on the same stack.
struct fiber_ops {
  fiber_end (*run)(fiber_record& self) noexcept;
  void (*discard)(fiber_record& self, discard_cause why) noexcept;
  void (*retire)(fiber_record& self, cancel_scope& home, const cancel_scope* joiner) noexcept;
};

}  // namespace ramie::runtime_internal
