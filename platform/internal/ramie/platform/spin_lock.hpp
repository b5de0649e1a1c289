// SPDX-License-Identifier: BSL-1.0
// A lock for critical sections of a few dozen instructions that never switch fibers. One RMW to
// take, a plain store to give back: half the price of a mutex, which is why waitables use it. While
// a holder is preempted its waiters yield their time slices instead of spinning.
#pragma once

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/held_locks.hpp>
#include <ramie/platform/thread.hpp>

namespace ramie::platform {

// Waiting for what must come soon: a little spinning, then the rest of the time slice.
class backoff {
 public:
  void wait() noexcept {
    if (spins_ == spins_before_yield) {
      yield_thread();
    } else {
      ++spins_;
      cpu_pause();
    }
  }

 private:
  static constexpr int spins_before_yield = spinning_helps ? 64 : 0;
  int spins_ = 0;
};

// The same for what many may wait for: each look of each of them takes the cache line from the one who has to come by it.
// So they look less and less often.
class growing_backoff {
 public:
  void wait() noexcept {
    if (spins_ >= spins_before_yield) return yield_thread();
    for (int i = 0; i < pauses_; ++i) cpu_pause();
    spins_ += pauses_;
    if (pauses_ < longest) pauses_ *= 2;
  }

 private:
  static constexpr int spins_before_yield = spinning_helps ? 64 : 0, longest = 16;
  int spins_ = 0, pauses_ = 1;
};

class spin_lock {
 public:
  spin_lock() noexcept = default;
  spin_lock(const spin_lock&) = delete;
  spin_lock& operator=(const spin_lock&) = delete;

  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) {  // pairs with the release in unlock
      for (growing_backoff turn; held_.load(std::memory_order_relaxed);) turn.wait();
    }
    lock_taken();
  }

  [[nodiscard]] bool try_lock() noexcept {
    if (held_.load(std::memory_order_relaxed) || held_.exchange(true, std::memory_order_acquire)) return false;
    lock_taken();
    return true;
  }

  void unlock() noexcept {
    lock_left();
    held_.store(false, std::memory_order_release);
  }

 private:
  atomic<bool> held_{false};
};

}  // namespace ramie::platform
