// SPDX-License-Identifier: BSL-1.0
// The word of a semaphore and its queue. A leaf: the explorer runs it.
//
//   bit 0   waiting: a waiter is listed (wait_queue.hpp, M1)
//   others  permits
//
// Invariants
//   M23  While `waiting` is set, the word is changed only with the queue locked.
//   M24  The first of the queue wants more than there is. So nobody is passed over: whoever comes while somebody waits
//        lists itself, and whatever is released, or left by a waiter that goes, is dealt out from the front.
#pragma once

#include <cstdint>

#include <ramie/semaphore.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct semaphore_waiter : queue_waiter {
  explicit semaphore_waiter(std::uint64_t count) noexcept : wanted(count) {}
  explicit semaphore_waiter(const ready_source& from) noexcept : semaphore_waiter(from.number) {}
  const std::uint64_t wanted;
};

struct semaphore_word {
  using core = semaphore_core;
  using node = semaphore_waiter;
  static constexpr std::uint64_t waiting = semaphore_core::waiting;
  [[nodiscard]] static std::uint64_t permits(std::uint64_t word) noexcept { return word >> 1; }

  [[nodiscard]] static bool try_acquire(semaphore_core& s, std::uint64_t count) noexcept {
    auto seen = s.word.load(std::memory_order_relaxed);
    while ((seen & waiting) == 0 && permits(seen) >= count) {
      if (s.word.compare_exchange_weak(seen, seen - (count << 1), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;  // pairs with the release of what it takes
      }
    }
    return false;
  }

  // What was handed over, or else what is there while nobody waits.
  [[nodiscard]] static bool try_complete(semaphore_core& s, semaphore_waiter& me) noexcept {
    return me.outcome != 0 || try_acquire(s, me.wanted);
  }

  [[nodiscard]] static bool publish(semaphore_core& s, semaphore_waiter& me) noexcept {
    return list_and_serve(s, me, waiting, [&s](std::uint64_t seen, queue_guard& hold, wake_batch& wakes) {
      const auto left = deal_out(permits(seen), hold, wakes);
      if (left != permits(seen) || hold.empty()) settle(s, hold, left);
    });
  }

  static void unpublish(semaphore_core& s, semaphore_waiter& me) noexcept {
    wake_batch wakes;
    queue_guard hold(s.waiters);
    hold.remove(me);
    const auto seen = s.word.load(std::memory_order_relaxed);
    if ((seen & waiting) != 0) settle(s, hold, deal_out(permits(seen), hold, wakes));
  }

  // False: it would be too many.
  [[nodiscard]] static bool release(semaphore_core& s, std::uint64_t count) noexcept {
    constexpr auto most = static_cast<std::uint64_t>(max_count);
    for (auto seen = s.word.load(std::memory_order_relaxed);;) {
      if (permits(seen) + count > most || count > most) return false;
      if ((seen & waiting) != 0) {
        if (release_to_queue(s, count)) return true;
        seen = s.word.load(std::memory_order_relaxed);
      } else if (s.word.compare_exchange_weak(seen, seen + (count << 1), std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  // From the front, as far as they go. Returns what is left.
  [[nodiscard]] static std::uint64_t deal_out(std::uint64_t there, queue_guard& hold, wake_batch& wakes) noexcept {
    while (auto* const first = hold.first<semaphore_waiter>()) {
      if (first->wanted > there) break;
      if (!hold.claim_listed_first(*first)) continue;
      there -= first->wanted;
      wakes.add(*first, 1);
    }
    return there;
  }
  // M23. Release: what is left was released by others. Whoever set `waiting` has acquired from them, and the queue's
  // lock passes it on; hence the relaxed loads.
  static void settle(semaphore_core& s, const queue_guard& hold, std::uint64_t left) noexcept {
    s.word.store(left << 1 | (hold.empty() ? 0 : waiting), std::memory_order_release);
  }
  // False: nobody waits any more (wait_queue.hpp, M4).
  static bool release_to_queue(semaphore_core& s, std::uint64_t count) noexcept {
    wake_batch wakes;
    queue_guard hold(s.waiters);
    const auto seen = s.word.load(std::memory_order_relaxed);
    if ((seen & waiting) == 0) return false;
    settle(s, hold, deal_out(permits(seen) + count, hold, wakes));
    return true;
  }
};

using semaphore_wait = waitable_of<semaphore_word>;

}  // namespace ramie::sync_internal
