// SPDX-License-Identifier: BSL-1.0
// An asymmetric StoreLoad fence. The side that runs often calls light_fence(), the side that runs
// rarely heavy_fence(); together they order like two sequentially consistent fences:
//
//   often                          rarely
//   1. store X                     1. store Y
//   2. light_fence                 2. heavy_fence
//   3. load Y                      3. load X
//
// and not both loads miss the other's store. Where the kernel grants membarrier(2), light_fence is a
// compiler barrier and heavy_fence interrupts every running thread of the process; elsewhere both
// are full fences. choose_fences() decides once, before there is anything to order.
//
// Code that knows that membarrier was granted (asymmetric()) calls free_fence(), which is light_fence() without the
// check.
//
// full_fence() orders by itself, against another full fence or a seq_cst RMW.
#pragma once

#include <ramie/platform/atomic.hpp>

namespace ramie::platform {

// Idempotent; any thread. Until it has been called both fences are full.
void choose_fences() noexcept;

#if defined(RAMIE_MODEL)

inline void full_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::fence(explore::order_at(at, explore::access_kind::fence, std::memory_order_seq_cst));
}
inline void light_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::light_fence(explore::order_at(at, explore::access_kind::fence, std::memory_order_seq_cst));
}
// Whether or not there is membarrier.
inline void free_fence(std::source_location at = std::source_location::current()) noexcept {
  (void)explore::order_at(at, explore::access_kind::fence, std::memory_order_seq_cst);
}
[[nodiscard]] inline bool asymmetric() noexcept {
  return explore::has_membarrier();
}
inline void heavy_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::heavy_fence(explore::order_at(at, explore::access_kind::fence, std::memory_order_seq_cst));
}

#else

namespace detail {
extern constinit bool membarrier_granted [[gnu::visibility("hidden")]];
void membarrier_all_threads() noexcept;
}  // namespace detail

inline void full_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
[[nodiscard]] inline bool asymmetric() noexcept {
  return detail::membarrier_granted;
}
inline void free_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
inline void light_fence() noexcept {
  if (asymmetric()) [[likely]] {
    free_fence();
  } else {
    full_fence();
  }
}
inline void heavy_fence() noexcept {
  full_fence();
  if (asymmetric()) detail::membarrier_all_threads();
}

#endif

}  // namespace ramie::platform
