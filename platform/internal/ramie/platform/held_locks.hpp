// SPDX-License-Identifier: BSL-1.0
// In builds with checks: how many spin locks the calling thread holds. No code switches fibers while it holds one, so
// the count belongs to the thread.
#pragma once

#include <ramie/platform/compiler.hpp>

namespace ramie::platform {

void count_held_lock(int by) noexcept;

RAMIE_ALWAYS_INLINE void lock_taken() noexcept {
  if constexpr (debug_checks) count_held_lock(1);
}
RAMIE_ALWAYS_INLINE void lock_left() noexcept {
  if constexpr (debug_checks) count_held_lock(-1);
}
// Ends the program if a lock is held; `what` says what must not be done under one.
void check_no_lock_held(const char* what) noexcept;

}  // namespace ramie::platform
