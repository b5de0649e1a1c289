// SPDX-License-Identifier: BSL-1.0
// The newest woken fiber of a worker, kept apart from the queue because its data is still in cache.
//
// Only the owner puts something in. Thieves may take it out only while the slot is open to them: the
// monitor opens the slot of a stalled worker, and the worker closes it when it is back. So the owner of a
// closed slot takes without an RMW, by an asymmetric handshake:
//
//       owner                                  monitor                      thief, after it
//       1. inside = true                       1. beware = true             1. open? else hands off
//       2. light fence                         2. heavy fence               2. inside? then hands off
//       3. beware? then exchange,              3. open = true               3. exchange
//          else plain take
//       4. inside = false
//
// Not both take the plain way past each other: an owner that did not see `beware` before the heavy fence is
// seen inside by every thief, because thieves only come after it; one that comes later sees it. Opening,
// stealing and closing exclude each other by a lock, so no thief is between its look and its exchange when
// the slot becomes the owner's again.
#pragma once

#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace ramie::detail {

template <class T>
class lifo_slot {
 public:
  // Owner only. Returns what had to make way, or null.
  [[nodiscard]] T* put(T* item) noexcept {
    T* const older = take();
    slot_.store(item, std::memory_order_release);  // pairs with the acquire of the takers
    return older;
  }

  // Owner only.
  [[nodiscard]] T* take() noexcept {
    if (empty()) return nullptr;
    inside_.store(true, std::memory_order_relaxed);  // 1
    platform::light_fence();                         // 2
    T* item = nullptr;
    if (beware_.load(std::memory_order_relaxed)) [[unlikely]] {  // 3
      item = slot_.exchange(nullptr, std::memory_order_acq_rel);
    } else {
      item = slot_.load(std::memory_order_acquire);  // of the same thread; but fibers are told apart by ThreadSanitizer
      slot_.store(nullptr, std::memory_order_relaxed);
    }
    inside_.store(false, std::memory_order_release);  // 4; pairs with the acquire in steal
    return item;
  }

  // Any other thread.
  [[nodiscard]] T* steal() noexcept {
    if (!open_.load(std::memory_order_acquire) || empty()) return nullptr;
    std::lock_guard one_thief(thieves_);
    if (!open_.load(std::memory_order_relaxed) || inside_.load(std::memory_order_acquire)) return nullptr;
    return slot_.exchange(nullptr, std::memory_order_acq_rel);
  }

  // The monitor.
  void open_to_thieves() noexcept {
    std::lock_guard no_thief(thieves_);
    beware_.store(true, std::memory_order_relaxed);
    platform::heavy_fence();
    open_.store(true, std::memory_order_release);
  }

  // Owner only.
  void close() noexcept {
    std::lock_guard no_thief(thieves_);
    open_.store(false, std::memory_order_relaxed);
    beware_.store(false, std::memory_order_relaxed);
  }

  [[nodiscard]] bool empty() const noexcept { return slot_.load(std::memory_order_relaxed) == nullptr; }
  [[nodiscard]] bool stealable() const noexcept { return open_.load(std::memory_order_acquire) && !empty(); }

 private:
  platform::atomic<T*> slot_{nullptr};
  platform::atomic<bool> inside_{false};
  platform::atomic<bool> beware_{false};
  platform::atomic<bool> open_{false};
  platform::spin_lock thieves_;
};

}  // namespace ramie::detail
