// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/biased_lock.hpp>

#include <atomic>

#include <ramie/platform/fatal.hpp>

namespace ramie::platform {

std::uint64_t lock_party::new_id() noexcept {
  static std::atomic<std::uint64_t> given{0};
  return given.fetch_add(1, std::memory_order_relaxed) + 1;
}

void biased_lock::taken_twice() noexcept {
  fatal("a lock is taken twice by one thread: moving or destroying a channel's element uses that channel, or waits.");
}

// Returns holding the spin lock, granted to nobody.
void biased_lock::lock_spin(const lock_party* me) noexcept {
  spin_.lock();
  if (granted_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    granted_.store(0, std::memory_order_relaxed);                                             // 1
    heavy_fence();                                                                            // 2
    for (backoff turn; inside_[granted_cell_].load(std::memory_order_acquire);) turn.wait();  // 3
    if (wanted_ < longest_run) wanted_ *= 2;
  }
  const auto id = me != nullptr ? me->id : 0;
  run_ = id == last_ ? run_ + 1 : 1;
  last_ = id;
}

// Holding the spin lock, about to leave.
void biased_lock::grant(const lock_party* me) noexcept {
  run_ = 0;
  if (!asymmetric() || me == nullptr || me->cell >= cells || (family_ != nullptr && family_ != me->family)) return;
  family_ = me->family;
  granted_cell_ = me->cell;
  granted_.store(me->id, std::memory_order_release);
}

}  // namespace ramie::platform
