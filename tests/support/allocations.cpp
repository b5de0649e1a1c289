// SPDX-License-Identifier: BSL-1.0
// The counting allocator: global operator new, replaced.
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <ramie/platform/compiler.hpp>

namespace {
std::atomic<std::uint64_t> count{0};
}

namespace test {
std::uint64_t allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}
}  // namespace test

#if !defined(RAMIE_TSAN) && !defined(RAMIE_ASAN)

void* operator new(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* const p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<std::size_t>(alignment);
  if (void* const p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

#endif
