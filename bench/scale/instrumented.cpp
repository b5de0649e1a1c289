// SPDX-License-Identifier: BSL-1.0
// The functions that -fsanitize=thread has compiled code call: for every load and store that is not atomic, and for
// atomics of the standard library, which are not the model's. Ours tell the simulator; ThreadSanitizer itself is not linked.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simulator.hpp"

namespace {

std::uintptr_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

#define RAMIE_HERE number_of(__builtin_return_address(0))
#define RAMIE_ACCESS(name, writes) \
  void name(void* at) noexcept { scale::access_plain(number_of(at), writes, RAMIE_HERE); }
#define RAMIE_ACCESSES(size)                     \
  RAMIE_ACCESS(__tsan_read##size, false)         \
  RAMIE_ACCESS(__tsan_write##size, true)         \
  RAMIE_ACCESS(__tsan_volatile_read##size, false)\
  RAMIE_ACCESS(__tsan_volatile_write##size, true)\
  RAMIE_ACCESS(__tsan_unaligned_read##size, false)\
  RAMIE_ACCESS(__tsan_unaligned_write##size, true)\
  RAMIE_ACCESS(__tsan_read_write##size, true)    \
  RAMIE_ACCESS(__tsan_unaligned_read_write##size, true)

// Seldom used, and of no runtime's hot path: done, and counted as a plain access.
#define RAMIE_FETCH(size, type, name, expression)                                       \
  type __tsan_atomic##size##_fetch_##name(volatile type* at, type v, int) noexcept {    \
    scale::access_plain(number_of(const_cast<type*>(at)), true, RAMIE_HERE);            \
    const type old = *at;                                                               \
    *at = static_cast<type>(expression);                                                \
    return old;                                                                         \
  }
#define RAMIE_ATOMICS(size, type)                                                                                 \
  type __tsan_atomic##size##_load(const volatile type* at, int) noexcept {                                        \
    scale::access_plain(number_of(const_cast<type*>(at)), false, RAMIE_HERE);                                     \
    return *at;                                                                                                   \
  }                                                                                                               \
  void __tsan_atomic##size##_store(volatile type* at, type v, int) noexcept {                                     \
    scale::access_plain(number_of(const_cast<type*>(at)), true, RAMIE_HERE);                                      \
    *at = v;                                                                                                      \
  }                                                                                                               \
  type __tsan_atomic##size##_exchange(volatile type* at, type v, int) noexcept {                                  \
    scale::access_plain(number_of(const_cast<type*>(at)), true, RAMIE_HERE);                                      \
    const type old = *at;                                                                                         \
    *at = v;                                                                                                      \
    return old;                                                                                                   \
  }                                                                                                               \
  int __tsan_atomic##size##_compare_exchange_strong(volatile type* at, type* expected, type v, int, int) noexcept { \
    scale::access_plain(number_of(const_cast<type*>(at)), true, RAMIE_HERE);                                      \
    const type old = *at;                                                                                         \
    if (old == *expected) {                                                                                       \
      *at = v;                                                                                                    \
      return 1;                                                                                                   \
    }                                                                                                             \
    *expected = old;                                                                                              \
    return 0;                                                                                                     \
  }                                                                                                               \
  int __tsan_atomic##size##_compare_exchange_weak(volatile type* at, type* expected, type v, int s, int f) noexcept { \
    return __tsan_atomic##size##_compare_exchange_strong(at, expected, v, s, f);                                  \
  }                                                                                                               \
  type __tsan_atomic##size##_compare_exchange_val(volatile type* at, type expected, type v, int s, int f) noexcept { \
    (void)__tsan_atomic##size##_compare_exchange_strong(at, &expected, v, s, f);                                  \
    return expected;                                                                                              \
  }                                                                                                               \
  RAMIE_FETCH(size, type, add, old + v)                                                                           \
  RAMIE_FETCH(size, type, sub, old - v)                                                                           \
  RAMIE_FETCH(size, type, and, old& v)                                                                            \
  RAMIE_FETCH(size, type, or, old | v)                                                                            \
  RAMIE_FETCH(size, type, xor, old ^ v)

extern "C" {

RAMIE_ACCESSES(1)
RAMIE_ACCESSES(2)
RAMIE_ACCESSES(4)
RAMIE_ACCESSES(8)
RAMIE_ACCESSES(16)
RAMIE_ATOMICS(8, std::uint8_t)
RAMIE_ATOMICS(16, std::uint16_t)
RAMIE_ATOMICS(32, std::uint32_t)
RAMIE_ATOMICS(64, std::uint64_t)

void __tsan_init() noexcept {}
void __tsan_func_entry(void*) noexcept {}
void __tsan_func_exit(void*) noexcept {}
void __tsan_ignore_thread_begin() noexcept {}
void __tsan_ignore_thread_end() noexcept {}
void __tsan_atomic_thread_fence(int) noexcept {}
void __tsan_atomic_signal_fence(int) noexcept {}
void __tsan_vptr_read(void** at) noexcept { scale::access_plain(number_of(at), false, RAMIE_HERE); }
void __tsan_vptr_update(void** at, void*) noexcept { scale::access_plain(number_of(at), true, RAMIE_HERE); }
void __tsan_read_range(void* at, std::size_t bytes) noexcept {
  scale::access_range(number_of(at), bytes, false, RAMIE_HERE);
}
void __tsan_write_range(void* at, std::size_t bytes) noexcept {
  scale::access_range(number_of(at), bytes, true, RAMIE_HERE);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) noexcept {
  scale::access_range(number_of(from), bytes, false, RAMIE_HERE);
  scale::access_range(number_of(to), bytes, true, RAMIE_HERE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) noexcept {
  scale::access_range(number_of(from), bytes, false, RAMIE_HERE);
  scale::access_range(number_of(to), bytes, true, RAMIE_HERE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) noexcept {
  scale::access_range(number_of(to), bytes, true, RAMIE_HERE);
  return std::memset(to, value, bytes);
}

}  // extern "C"
