// SPDX-License-Identifier: BSL-1.0
// The word of a latch and its queue. A leaf: the explorer runs it.
//
//   bit 0   waiting: a waiter is listed (wait_queue.hpp, M1)
//   others  the count
//
// Counting down is one RMW; only the last one, and only if a waiter is listed, locks the queue. At zero nobody is
// listed, and nobody lists itself any more.
#pragma once

#include <cstdint>

#include <ramie/latch.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct latch_word {
  using core = latch_core;
  using node = queue_waiter;
  static constexpr std::uint64_t waiting = latch_core::waiting;
  [[nodiscard]] static std::uint64_t count(std::uint64_t word) noexcept { return word >> 1; }

  [[nodiscard]] static bool is_open(const latch_core& l) noexcept {
    return count(l.word.load(std::memory_order_acquire)) == 0;  // pairs with the releases of count_down
  }

  [[nodiscard]] static bool try_complete(const latch_core& l, const queue_waiter&) noexcept { return is_open(l); }

  // False: it is open.
  [[nodiscard]] static bool publish(latch_core& l, queue_waiter& me) noexcept {
    queue_guard hold(l.waiters);
    auto seen = l.word.load(std::memory_order_acquire);
    do {
      if (count(seen) == 0) return false;
    } while (!l.word.compare_exchange_weak(seen, seen | waiting, std::memory_order_acq_rel, std::memory_order_acquire));
    hold.list(me);
    return true;
  }

  static void unpublish(latch_core& l, queue_waiter& me) noexcept { unlist(l, me, waiting); }

  // False: it would be below zero.
  [[nodiscard]] static bool count_down(latch_core& l, std::uint64_t by) noexcept {
    for (auto seen = l.word.load(std::memory_order_relaxed);;) {
      if (by > count(seen)) return false;
      if (by == count(seen) && (seen & waiting) != 0) {
        if (open(l)) return true;
        seen = l.word.load(std::memory_order_relaxed);
      } else if (l.word.compare_exchange_weak(seen, seen - (by << 1), std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  // The last of the count is ours. False: nobody waits any more (wait_queue.hpp, M4).
  static bool open(latch_core& l) noexcept {
    wake_batch wakes;
    queue_guard hold(l.waiters);
    if ((l.word.load(std::memory_order_relaxed) & waiting) == 0) return false;
    hold.release_all(wakes);
    l.word.exchange(0, std::memory_order_acq_rel);
    return true;
  }
};

using latch_waitable = waitable_of<latch_word>;

}  // namespace ramie::sync_internal
