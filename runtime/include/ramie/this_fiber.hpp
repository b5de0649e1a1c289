// SPDX-License-Identifier: BSL-1.0
// The calling fiber.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

// The name given by spawn or set_name, or "". Not a cancellation point. Of the calling fiber or plain thread. Throws
// std::bad_alloc.
[[nodiscard]] std::string name();

// Names the calling fiber or plain thread, for messages and reports. Not a cancellation point. Throws std::bad_alloc.
void set_name(std::string_view name);

}  // namespace this_fiber

}  // namespace ramie::inline v0
