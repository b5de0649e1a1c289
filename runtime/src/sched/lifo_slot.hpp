// SPDX-License-Identifier: BSL-1.0
// The newest woken fiber of a worker, kept apart from the queue because its data is still in cache.
//
// Only the owner puts something in; anybody may take it out. So an owner that sees the slot empty is
// alone with it and stores plainly; everything else is an exchange.
#pragma once

#include <ramie/platform/atomic.hpp>

namespace ramie::detail {

template <class T>
class lifo_slot {
 public:
  // Owner only. Returns what had to make way, or null.
  [[nodiscard]] T* put(T* item) noexcept {
    if (slot_.load(std::memory_order_relaxed) == nullptr) {
      slot_.store(item, std::memory_order_release);  // pairs with the acquire in take
      return nullptr;
    }
    return slot_.exchange(item, std::memory_order_acq_rel);
  }

  // Any thread.
  [[nodiscard]] T* take() noexcept {
    if (empty()) return nullptr;
    return slot_.exchange(nullptr, std::memory_order_acquire);
  }

  [[nodiscard]] bool empty() const noexcept { return slot_.load(std::memory_order_relaxed) == nullptr; }

 private:
  platform::atomic<T*> slot_{nullptr};
};

}  // namespace ramie::detail
