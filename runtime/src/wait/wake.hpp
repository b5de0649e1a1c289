// SPDX-License-Identifier: BSL-1.0
// Inside the runtime: waking, and looking at one's own cancellation.
#pragma once

#include <cstdint>

#include "../task/frame.hpp"

namespace ramie::runtime_internal {

// A fiber that has just become RUNNABLE, into its scheduler's queues; a proxy, to its thread.
void enqueue(fiber& f) noexcept;

// complete() for scheduler code, which never yields.
void complete_from_scheduler(fiber& who) noexcept;

// Plain wake under a 64-bit ticket. Any thread; needs no lock.
void fiber_wake(fiber& f, std::uint64_t ticket) noexcept;

// Whatever it waits for now, it should look at its scopes. The frame must be known to be alive.
void wake_for_cancel(fiber& f) noexcept;

// `epoch` was read from the fiber's scheduler just before. Only the fiber itself.
void throw_if_scope_cancelled(fiber& f, std::uint64_t epoch);  // throws `cancelled`
inline void throw_if_cancelled(fiber& f, std::uint64_t epoch) {
  if (f.seen_epoch.get() != epoch) [[unlikely]]
    throw_if_scope_cancelled(f, epoch);
}

// Whether throw_if_scope_cancelled would throw; and throw_if_cancelled.
[[nodiscard]] bool cancellation_awaits(fiber& f, std::uint64_t epoch) noexcept;
[[nodiscard]] inline bool is_cancelled(fiber& f, std::uint64_t epoch) noexcept {
  return f.seen_epoch.get() != epoch && cancellation_awaits(f, epoch);
}

}  // namespace ramie::runtime_internal
