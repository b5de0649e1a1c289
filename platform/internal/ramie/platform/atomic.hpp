// SPDX-License-Identifier: BSL-1.0
// The one alias for atomics. A model build (-DRAMIE_MODEL) swaps it for an atomic that hands control
// to an explorer before every operation, so that the real protocol code is run over every
// interleaving (tests/explore).
#pragma once

#if defined(RAMIE_MODEL)

#include <explore/model_atomic.hpp>

namespace ramie::platform {
template <class T>
using atomic = explore::model_atomic<T>;

// No scheduling point: its owner is ordered by something else, and if it is not, it may read an old value.
namespace detail {
template <class T>
T read_owned(const atomic<T>& a) noexcept {
  return a.quiet_load();
}
template <class T>
void write_owned(atomic<T>& a, T v) noexcept {
  a.quiet_store(v);
}
template <class T>
void add_owned(atomic<T>& a, T d) noexcept {
  a.quiet_store(static_cast<T>(a.quiet_load() + d));
}
template <class T>
bool add_owned_is_positive(atomic<T>& a, T d) noexcept {
  add_owned(a, d);
  return read_owned(a) > 0;
}
}  // namespace detail
inline void add_one_by_owner(atomic<std::uint64_t>& a) noexcept {
  a.store(a.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}
}  // namespace ramie::platform

#else

#include <atomic>
#include <cstdint>
#include <type_traits>

#include <ramie/platform/compiler.hpp>

namespace ramie::platform {
template <class T>
using atomic = std::atomic<T>;

namespace detail {
template <class T>
T read_owned(const atomic<T>& a) noexcept {
  return a.load(std::memory_order_relaxed);
}
template <class T>
void write_owned(atomic<T>& a, T v) noexcept {
  a.store(v, std::memory_order_relaxed);
}
template <class T>
void add_owned(atomic<T>& a, T d) noexcept {
  // One instruction instead of three: compilers don't join a load, an addition and a store of an atomic.
#if defined(__x86_64__) && !defined(RAMIE_TSAN)
  if constexpr (sizeof(T) == 8) {
    asm("addq %1, %0" : "+m"(reinterpret_cast<T&>(a)) : "er"(d) : "cc");
    return;
  } else if constexpr (sizeof(T) == 4) {
    asm("addl %1, %0" : "+m"(reinterpret_cast<T&>(a)) : "ir"(d) : "cc");
    return;
  }
#endif
  a.store(static_cast<T>(a.load(std::memory_order_relaxed) + d), std::memory_order_relaxed);
}
// The same, and whether the sum is positive.
template <class T>
bool add_owned_is_positive(atomic<T>& a, T d) noexcept {
#if defined(__x86_64__) && !defined(RAMIE_TSAN)
  if constexpr (sizeof(T) == 8) {
    bool positive = false;
    asm("addq %2, %1" : "=@ccg"(positive), "+m"(reinterpret_cast<T&>(a)) : "er"(d));
    return positive;
  }
#endif
  add_owned(a, d);
  return read_owned(a) > 0;
}
}  // namespace detail

// For the only thread that writes it, but no RMW: a load and a store with release.
inline void add_one_by_owner(atomic<std::uint64_t>& a) noexcept {
#if defined(__x86_64__) && !defined(RAMIE_TSAN)
  asm volatile("addq $1, %0" : "+m"(reinterpret_cast<std::uint64_t&>(a)) : : "cc", "memory");
#else
  a.store(a.load(std::memory_order_relaxed) + 1, std::memory_order_release);
#endif
}
}  // namespace ramie::platform

#endif

namespace ramie::platform {

// A field that one thread at a time owns but that fibers with different sanitizer identities, or a
// statistics reader, look at. Plain loads and stores in machine code; never an RMW.
template <class T>
class owned {
 public:
  constexpr owned() noexcept = default;
  constexpr explicit owned(T v) noexcept : value_(v) {}
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;

  T get() const noexcept { return detail::read_owned(value_); }
  void set(T v) noexcept { detail::write_owned(value_, v); }
  void add(T d) noexcept { detail::add_owned(value_, d); }
  [[nodiscard]] bool add_is_positive(T d) noexcept { return detail::add_owned_is_positive(value_, d); }

 private:
  atomic<T> value_{};
};

}  // namespace ramie::platform
