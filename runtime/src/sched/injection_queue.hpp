// SPDX-License-Identifier: BSL-1.0
// The global queue: where work from outside, from full rings and from retiring workers meets the
// workers. An intrusive list under a mutex, with its length readable without it; pushes and pops move
// whole batches, so that the mutex is paid once per batch.
//
// Growth is unbounded: a wake must never be refused. global_queue_soft_capacity is a mark: crossings are
// counted, and threads outside the runtime that spawn wait below it (wait_for_room).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::detail {

// How many entries one worker takes at a visit: its fair share, within the seeds' bounds.
[[nodiscard]] constexpr std::uint32_t fair_batch(std::size_t length, std::size_t workers) noexcept {
  const auto share = length / std::max<std::size_t>(workers, 1);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(share, min_global_batch, max_global_batch));
}

// T has `platform::owned<T*> next`, free for the queue's use while the entry is in it.
template <class T>
class injection_queue {
 public:
  void put(T* item) noexcept { put(&item, 1); }

  void put(T* const* items, std::uint32_t count) noexcept {
    if (count == 0) return;
    for (std::uint32_t i = 0; i + 1 < count; ++i) items[i]->next.set(items[i + 1]);
    items[count - 1]->next.set(nullptr);
    std::lock_guard hold(mutex_);
    if (last_ == nullptr) {
      first_ = items[0];
    } else {
      last_->next.set(items[0]);
    }
    last_ = items[count - 1];
    grow(count);
  }

  // Takes up to `limit` entries, oldest first.
  [[nodiscard]] std::uint32_t take(T** out, std::uint32_t limit) noexcept {
    if (empty()) return 0;
    std::lock_guard hold(mutex_);
    std::uint32_t count = 0;
    while (count < limit && first_ != nullptr) {
      out[count++] = first_;
      first_ = first_->next.get();
    }
    if (first_ == nullptr) last_ = nullptr;
    shrink(count);
    return count;
  }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return length_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t times_over_mark() const noexcept { return over_mark_.get(); }

  // Threads outside the runtime only: a worker that waited here could be the one that has to make room.
  void wait_for_room() {
    if (size() < global_queue_soft_capacity) return;
    std::unique_lock hold(mutex_);
    ++waiting_outside_;
    room_.wait(hold, [this] { return size() < global_queue_soft_capacity; });
    --waiting_outside_;
  }

 private:
  void grow(std::uint32_t count) noexcept {
    const auto before = length_.load(std::memory_order_relaxed);
    length_.store(before + count, std::memory_order_release);
    if (before < global_queue_soft_capacity && before + count >= global_queue_soft_capacity) over_mark_.add(1);
  }
  void shrink(std::uint32_t count) noexcept {
    length_.store(length_.load(std::memory_order_relaxed) - count, std::memory_order_release);
    if (waiting_outside_ != 0 && size() < global_queue_soft_capacity) room_.notify_all();
  }

  platform::mutex mutex_;
  T* first_ = nullptr;
  T* last_ = nullptr;
  platform::condition_variable room_;
  std::uint32_t waiting_outside_ = 0;
  platform::atomic<std::size_t> length_{0};
  platform::owned<std::uint64_t> over_mark_{0};
};

}  // namespace ramie::detail
