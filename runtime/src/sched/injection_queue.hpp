// SPDX-License-Identifier: BSL-1.0
// The queue that all workers share: for fibers made runnable by plain threads, for what overflows a ring, and for the
// entries of retiring workers. A circular array under a mutex, with its length readable without it; pushes and pops
// move whole batches, so that the mutex is paid once per batch. (Not a list through the entries: it would be as long as
// the caches are small, and a worker that takes a batch would miss them once per entry, one after the other.)
//
// Growth is unbounded: a wake must never be refused. So there is always room for every entry there can be: every fiber,
// what is in the queue already (tasks among it), and a margin for tasks that are elsewhere and may come back. The code
// that makes fibers calls reserve() first, the code that moves tasks here try_reserve_for_tasks(); both may fail.
// injection_soft_capacity is a mark: the queue counts how often its length crosses it, and plain threads that spawn wait
// while the length is not below it (wait_for_capacity).
#pragma once

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

// How many entries one worker takes at a visit: its fair share, but so many that the lock pays, and so few that
// they do not pile up behind one worker.
[[nodiscard]] constexpr std::uint32_t fair_batch(std::size_t length, std::size_t workers) noexcept {
  const auto share = length / std::max<std::size_t>(workers, 1);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(share, min_injection_batch, max_injection_batch));
}

template <class T>
class injection_queue {
 public:
  // `margin`: how many tasks may be elsewhere, in rings or on their way to or from one.
  explicit injection_queue(std::size_t margin = 0) noexcept : margin_(margin) {}

  // There will be up to `fibers` in all. Throws std::bad_alloc.
  void reserve(std::size_t fibers) {
    std::lock_guard hold(mutex_);
    grow_to(length_.load(std::memory_order_relaxed) + fibers + margin_);
    fibers_ = std::max(fibers_, fibers);
  }
  // The caller is about to put up to `count` entries, tasks among them. False: there is no memory, and only fibers may
  // be put.
  [[nodiscard]] bool try_reserve_for_tasks(std::size_t count) noexcept {
    std::lock_guard hold(mutex_);
    try {
      grow_to(length_.load(std::memory_order_relaxed) + count + fibers_ + margin_);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void put(T* item) noexcept { put(&item, 1); }

  void put(T* const* items, std::uint32_t count) noexcept {
    std::lock_guard hold(mutex_);
    const std::size_t length = length_.load(std::memory_order_relaxed);
    if (length + count > capacity_) [[unlikely]]
      platform::fatal("more fibers are queued than there are: corruption of the runtime.");
    for (std::uint32_t i = 0; i < count; ++i) at(first_ + length + i) = items[i];
    grow(count);
  }

  // Takes up to `limit` entries, oldest first.
  [[nodiscard]] std::uint32_t take(T** out, std::uint32_t limit) noexcept {
    if (empty()) return 0;
    std::lock_guard hold(mutex_);
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(limit, length_.load(std::memory_order_relaxed)));
    for (std::uint32_t i = 0; i < count; ++i) out[i] = at(first_ + i);
    first_ += count;
    shrink(count);
    return count;
  }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return length_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t times_over_mark() const noexcept { return over_mark_.get(); }

  // Threads outside the runtime only: a worker that waited here could be the one that has to make room.
  void wait_for_capacity() {
    if (size() < injection_soft_capacity) return;
    std::unique_lock hold(mutex_);
    ++waiting_outside_;
    room_.wait(hold, [this] { return size() < injection_soft_capacity; });
    --waiting_outside_;
  }
  // How many threads are in wait_for_capacity.
  [[nodiscard]] std::uint32_t waiting_outside() {
    std::lock_guard hold(mutex_);
    return waiting_outside_;
  }

 private:
  T*& at(std::size_t index) noexcept { return items_[index & (capacity_ - 1)]; }

  void grow_to(std::size_t entries) {
    if (entries <= capacity_) return;
    const std::size_t larger_capacity = std::bit_ceil(std::max(entries, 2 * capacity_));
    auto larger = std::make_unique_for_overwrite<T*[]>(larger_capacity);
    const std::size_t length = length_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < length; ++i) larger[i] = at(first_ + i);
    items_ = std::move(larger);
    capacity_ = larger_capacity;
    first_ = 0;
  }

  void grow(std::uint32_t count) noexcept {
    const auto before = length_.load(std::memory_order_relaxed);
    length_.store(before + count, std::memory_order_release);
    if (before < injection_soft_capacity && before + count >= injection_soft_capacity) over_mark_.add(1);
  }
  void shrink(std::uint32_t count) noexcept {
    length_.store(length_.load(std::memory_order_relaxed) - count, std::memory_order_release);
    if (waiting_outside_ != 0 && size() < injection_soft_capacity) room_.notify_all();
  }

  platform::mutex mutex_;
  std::unique_ptr<T*[]> items_;
  std::size_t capacity_ = 0;  // a power of two
  std::size_t fibers_ = 0;    // announced by reserve
  const std::size_t margin_;
  std::size_t first_ = 0;     // never reduced: at() takes it modulo capacity_
  platform::condition_variable room_;
  std::uint32_t waiting_outside_ = 0;
  platform::atomic<std::size_t> length_{0};
  platform::owned<std::uint64_t> over_mark_{0};
};

}  // namespace ramie::runtime_internal
