// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace test {

// Calls of operator new in this process so far. Constant in sanitizer builds, which bring their own.
[[nodiscard]] std::uint64_t allocations() noexcept;

// The k-th call of operator new from now on throws std::bad_alloc, once; 0: none does.
void fail_allocation(int k) noexcept;

}  // namespace test
