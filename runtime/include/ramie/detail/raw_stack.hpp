// SPDX-License-Identifier: BSL-1.0
// What <ramie/stack_allocator.hpp> stands on, without Boost.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::runtime_internal {

struct raw_stack {
  void* top;
  std::size_t bytes;
};

[[nodiscard]] std::uint8_t class_of_raw_stack(std::size_t bytes);  // throws usage_error
[[nodiscard]] raw_stack take_raw_stack(std::uint8_t size_class);   // throws std::bad_alloc
void give_raw_stack(void* top) noexcept;

}  // namespace ramie::runtime_internal
