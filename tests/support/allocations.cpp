// SPDX-License-Identifier: BSL-1.0
// The counting allocator: global operator new, replaced; or, where a sanitizer brings its own, which checks more than
// ours would, calls of it led through here by the linker (--wrap, see tests/meson.build).
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <ramie/platform/compiler.hpp>

namespace {
std::atomic<std::uint64_t> count{0};
std::atomic<int> until_failure{0};
std::atomic<bool> for_good{false};
constinit thread_local int spared = 0;

[[nodiscard]] bool refused() noexcept {
  if (spared != 0) return false;
  count.fetch_add(1, std::memory_order_relaxed);
  if (until_failure.load(std::memory_order_relaxed) <= 0) return false;
  if (until_failure.fetch_sub(1) != 1) return false;
  if (for_good.load()) until_failure.store(1);
  return true;
}
void count_one() {
  if (refused()) throw std::bad_alloc();
}
}  // namespace

namespace test {
std::uint64_t allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}
void fail_allocation(int k) noexcept {
  until_failure.store(0);
  for_good.store(false);
  until_failure.store(k);
}
void fail_allocations_from(int k) noexcept {
  until_failure.store(0);
  for_good.store(true);
  until_failure.store(k);
}
spared_allocations::spared_allocations() noexcept {
  ++spared;
}
spared_allocations::~spared_allocations() {
  --spared;
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

#else

namespace {
using aligned = std::align_val_t;
using silent = const std::nothrow_t&;
}  // namespace

void* real_new(std::size_t) asm("__real__Znwm");
void* real_new_array(std::size_t) asm("__real__Znam");
void* real_aligned_new(std::size_t, aligned) asm("__real__ZnwmSt11align_val_t");
void* real_silent_new(std::size_t, aligned, silent) noexcept asm("__real__ZnwmSt11align_val_tRKSt9nothrow_t");
void* our_new(std::size_t) asm("__wrap__Znwm");
void* our_new_array(std::size_t) asm("__wrap__Znam");
void* our_aligned_new(std::size_t, aligned) asm("__wrap__ZnwmSt11align_val_t");
void* our_silent_new(std::size_t, aligned, silent) noexcept asm("__wrap__ZnwmSt11align_val_tRKSt9nothrow_t");

void* our_new(std::size_t size) {
  count_one();
  return real_new(size);
}
void* our_new_array(std::size_t size) {
  count_one();
  return real_new_array(size);
}
void* our_aligned_new(std::size_t size, aligned alignment) {
  count_one();
  return real_aligned_new(size, alignment);
}
void* our_silent_new(std::size_t size, aligned alignment, silent quietly) noexcept {
  return refused() ? nullptr : real_silent_new(size, alignment, quietly);
}

#endif
