// SPDX-License-Identifier: BSL-1.0
// The counting allocator: global operator new, replaced.
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <ramie/platform/compiler.hpp>

namespace {
std::atomic<std::uint64_t> count{0};
std::atomic<int> until_failure{0};

[[maybe_unused]] void count_one() {
  count.fetch_add(1, std::memory_order_relaxed);
  if (until_failure.load(std::memory_order_relaxed) > 0 && until_failure.fetch_sub(1) == 1) throw std::bad_alloc();
}
}  // namespace

namespace test {
std::uint64_t allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}
void fail_allocation(int k) noexcept {
  until_failure.store(k);
}
}  // namespace test

#if !defined(RAMIE_TSAN) && !defined(RAMIE_ASAN)

void* operator new(std::size_t size) {
  count_one();
  if (void* const p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  count_one();
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
