// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/biased_lock.hpp>

#include <ramie/platform/fatal.hpp>

namespace ramie::platform {

void biased_lock::taken_twice() noexcept {
  fatal("a channel is used by the move constructor of one of its own elements. Moving an element must not wait.");
}

// Returns holding the spin lock, granted to nobody.
void biased_lock::lock_spin(const lock_party* me) noexcept {
  spin_.lock();
  if (granted_.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    granted_.store(nullptr, std::memory_order_relaxed);                                     // 1
    heavy_fence();                                                                          // 2
    for (int spins = 0; inside_[granted_cell_].load(std::memory_order_acquire); ++spins) {  // 3
      if (spins < 64) {
        cpu_pause();
      } else {
        ::sched_yield();
      }
    }
    if (wanted_ < longest_run) wanted_ *= 2;
  }
  run_ = me == last_ ? run_ + 1 : 1;
  last_ = me;
}

// Holding the spin lock, about to leave.
void biased_lock::grant(const lock_party* me) noexcept {
  run_ = 0;
  if (me == nullptr || me->number >= cells || (family_ != nullptr && family_ != me->family)) return;
  family_ = me->family;
  granted_cell_ = me->number;
  granted_.store(me, std::memory_order_release);
}

}  // namespace ramie::platform
