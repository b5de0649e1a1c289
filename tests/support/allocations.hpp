// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace test {

// Calls of operator new in this process so far. In sanitizer builds only those of our own code.
[[nodiscard]] std::uint64_t allocations() noexcept;

// The k-th call of operator new from now on throws std::bad_alloc, once; 0: none does.
void fail_allocation(int k) noexcept;
// The k-th and all that follow.
void fail_allocations_from(int k) noexcept;

// What the test itself needs meanwhile is neither counted nor refused: on this thread, while it lives. Not across a
// wait.
class spared_allocations {
 public:
  spared_allocations() noexcept;
  ~spared_allocations();
  spared_allocations(const spared_allocations&) = delete;
  spared_allocations& operator=(const spared_allocations&) = delete;
};

}  // namespace test
