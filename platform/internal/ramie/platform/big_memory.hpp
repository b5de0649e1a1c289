// SPDX-License-Identifier: BSL-1.0
// Memory in pieces of a huge page, for pools of small things that have grown large: the first touch of a page costs
// more than most of what is done with it, and a huge page is touched once for 512 of them.
#pragma once

#include <cstddef>

namespace ramie::platform {

inline constexpr std::size_t huge_page = 2 * 1024 * 1024;

// A piece of huge_page bytes, aligned to its size, zeroed; huge where the system agrees. Throws std::bad_alloc.
[[nodiscard]] void* take_huge_page();
void give_huge_page(void* piece) noexcept;

}  // namespace ramie::platform
