// SPDX-License-Identifier: BSL-1.0
// The newest woken fiber of a worker, kept apart from the queue because its data is still in cache.
//
// Only the owner puts something in. Thieves may take it out only while the slot is open to them: the
// monitor opens the slot of a stalled worker, and the worker closes it when it is back. So the owner of a
// closed slot takes without an RMW, by an asymmetric handshake:
//
//       owner                                  monitor                      thief, after it
//       1. inside = true                       1. must_exchange = true      1. open? else give up
//       2. light fence                         2. heavy fence               2. inside? then give up
//       3. must_exchange? then exchange,       3. open = true               3. exchange
//          else plain take
//       4. inside = false
//
// Owner and thief never both take the same entry: an owner that did not see `must_exchange` before the heavy fence is
// seen inside by every thief, because thieves only come after the fence; an owner that comes later sees it. Opening,
// stealing and closing exclude each other by a lock, so no thief is between its look and its exchange when
// the slot becomes the owner's again.
#pragma once

#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace ramie::runtime_internal {

template <class T>
class lifo_slot {
 public:
  // Owner only. Returns what was displaced, or null.
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
    if (must_exchange_.load(std::memory_order_relaxed)) [[unlikely]] {  // 3
      item = slot_.exchange(nullptr, std::memory_order_acq_rel);
    } else {
      item = slot_.load(std::memory_order_acquire);  // the same thread stored it, but ThreadSanitizer sees its fibers
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
    must_exchange_.store(true, std::memory_order_relaxed);
    platform::heavy_fence();
    open_.store(true, std::memory_order_release);
  }

  // Owner only.
  void close() noexcept {
    std::lock_guard no_thief(thieves_);
    open_.store(false, std::memory_order_relaxed);
    must_exchange_.store(false, std::memory_order_relaxed);
  }

  [[nodiscard]] bool empty() const noexcept { return slot_.load(std::memory_order_relaxed) == nullptr; }
  [[nodiscard]] bool stealable() const noexcept { return open_.load(std::memory_order_acquire) && !empty(); }

 private:
  platform::atomic<T*> slot_{nullptr};
  platform::atomic<bool> inside_{false};
  platform::atomic<bool> must_exchange_{false};
  // Every thief looks here: not where the owner writes.
  alignas(platform::cache_line) platform::atomic<bool> open_{false};
  platform::spin_lock thieves_;
};

}  // namespace ramie::runtime_internal
