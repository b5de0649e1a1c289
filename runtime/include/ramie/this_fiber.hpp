// SPDX-License-Identifier: BSL-1.0
// The calling fiber.
#pragma once

#include <cstdint>

#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Lets other runnable fibers go first, if there are any. A cancellation point: throws `cancelled`. On a
// plain thread it yields the thread.
void yield();

namespace this_fiber {

// Whether the caller runs as a fiber. Not a cancellation point.
[[nodiscard]] bool exists() noexcept;

// The fiber's number, unique among the live fibers of its runtime and shown in messages; 0 on a plain
// thread. Not a cancellation point.
[[nodiscard]] std::uint32_t number();

}  // namespace this_fiber

}  // namespace ramie::inline v0
