// SPDX-License-Identifier: BSL-1.0
// The two calls of a futex. The explorer has its own (tests/explore/futex.cpp).
#pragma once

#include <cstdint>
#include <ctime>

#include <ramie/platform/atomic.hpp>

namespace ramie::platform {

// Blocks while `word` is `expected`, until somebody wakes it, until that moment of the steady clock (null: for ever),
// or for no reason: callers look again.
void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* until) noexcept;
// `word` may be gone: waking an address nobody waits on is harmless.
void futex_wake_one(atomic<std::uint32_t>* word) noexcept;

}  // namespace ramie::platform
