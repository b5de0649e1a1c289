// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace test {

// Calls of operator new in this process so far. Constant in sanitizer builds, which bring their own.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace test
