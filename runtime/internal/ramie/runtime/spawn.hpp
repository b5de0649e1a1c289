// SPDX-License-Identifier: BSL-1.0
// Making fibers, for the floors above: a fiber is a frame, three functions and a data pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ramie/source_location.hpp>

namespace ramie::detail {

class cancel_scope;
class fiber;
class scheduler;

enum class fiber_end : std::uint8_t { done, cancelled };

enum class discard_cause : std::uint8_t {
  cancelled,  // its scope was cancelled before it started
  no_stack,   // no stack could be had; see stack_exhausted
};

// Exactly one of run and discard is called, then retire, each with the data pointer. None may throw; run
// may wait, the others must not. After retire the runtime does not touch what `data` points to.
// `wanted`: somebody has set join_interest and waits to be told.
struct fiber_ops {
  fiber_end (*run)(void* data) noexcept;
  void (*discard)(void* data, discard_cause why) noexcept;
  void (*retire)(void* data, bool wanted) noexcept;
};

// Makes a fiber runnable in the scheduler of `scope`, which must outlive it. A stack size of 0 is the
// runtime's default. Any thread. Throws std::bad_alloc when no frame can be had, std::system_error when
// the very first worker can't be started; nothing is called then.
void spawn(const fiber_ops& ops, void* data, cancel_scope& scope, std::size_t stack_size = 0,
           source_location site = source_location::current());

}  // namespace ramie::detail
