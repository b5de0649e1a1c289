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
}

#else

#include <atomic>

namespace ramie::platform {
template <class T>
using atomic = std::atomic<T>;
}

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

  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T v) noexcept { value_.store(v, std::memory_order_relaxed); }
  void add(T d) noexcept { set(static_cast<T>(get() + d)); }

 private:
  std::atomic<T> value_{};
};

}  // namespace ramie::platform
