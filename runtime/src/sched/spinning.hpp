// SPDX-License-Identifier: BSL-1.0
// Whether a thread that waits should spin before it sleeps. A sleep and the wake that ends it cost tens of microseconds
// where idle processors halt, and two of them are a blocking call's round trip: the worker sleeps until the call has
// ended, and the pool's thread until the next call. Spinning costs a processor. So a thread spins only
//
//   - if there is a processor for it, and for all others that are awake (spare_processors);
//   - if the thread that it waits for does not need the very processor on which it spins (its user compares the two);
//   - if spinning has paid lately (spin_forecast);
//   - for no longer than longest_spin.
//
// A thread that spins is awake like any other: whoever wakes it does what it would do if the thread slept, finds that it
// does not, and saves the system call. So nothing is said here about lost wakes.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/runtime/constants.hpp>

#include "idle_set.hpp"

namespace ramie::runtime_internal {

// Spinning in vain is left out the next time, then twice as often each time. So it costs longest_spin once in
// most_spins_left_out + 1 waits at most. One thread at a time.
class spin_forecast {
 public:
  // Asked once a wait, if nothing else is against spinning.
  [[nodiscard]] bool is_worthwhile() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void paid() noexcept { last_ = 0; }
  void did_not_pay() noexcept { left_ = last_ = std::clamp(2 * last_, 1u, most_spins_left_out); }

 private:
  std::uint32_t last_ = 0;  // so many were left out after it did not pay
  std::uint32_t left_ = 0;  // of them
};

// The processors of a runtime, less its workers that are awake. Only a hint: other programs want some, too.
class spare_processors {
 public:
  spare_processors(const idle_set& workers, std::uint32_t processors) noexcept
      : workers_(workers), processors_(processors) {}
  [[nodiscard]] bool suffice_for(std::uint32_t threads) const noexcept {
    return workers_.load().awake() + threads <= processors_;
  }

 private:
  const idle_set& workers_;
  const std::uint32_t processors_;
};

}  // namespace ramie::runtime_internal
