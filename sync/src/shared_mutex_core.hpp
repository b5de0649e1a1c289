// SPDX-License-Identifier: BSL-1.0
// The word of a shared mutex and its queue. A leaf: the explorer runs it.
//
//   writer   somebody has it alone
//   waiting  a waiter is listed (wait_queue.hpp, M1)
//   others   how many share it
//
// Invariants
//   M17  Never a writer and readers.
//   M18  While `waiting` is set nobody gets in but from the queue, and the last holder leaves with the queue locked,
//        handing over to the first of the queue, and if that is a reader, to the readers right behind it.
//   M19  The first of the queue does not fit beside those who are inside.
#pragma once

#include <cstdint>

#include <ramie/shared_mutex.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct shared_mutex_waiter : queue_waiter {
  explicit shared_mutex_waiter(lock_kind how) noexcept : kind(how) {}
  explicit shared_mutex_waiter(const ready_source& from) noexcept
      : shared_mutex_waiter(static_cast<lock_kind>(from.number != 0)) {}
  const lock_kind kind;
};

struct shared_mutex_word {
  using core = shared_mutex_core;
  using node = shared_mutex_waiter;
  static constexpr std::uint32_t writer = 1, waiting = shared_mutex_core::waiting, reader = 4;

  [[nodiscard]] static constexpr std::uint32_t one_of(lock_kind how) noexcept {
    return how == lock_kind::alone ? writer : reader;
  }
  // Whether a lock of this kind can be held beside those that are held; waiters do not count.
  [[nodiscard]] static constexpr bool fits(std::uint32_t inside, lock_kind how) noexcept {
    return how == lock_kind::alone ? (inside & ~waiting) == 0 : (inside & writer) == 0;
  }

  [[nodiscard]] static bool try_lock(shared_mutex_core& m, lock_kind how) noexcept {
    auto seen = m.word.load(std::memory_order_relaxed);
    while ((seen & waiting) == 0 && fits(seen, how)) {
      if (m.word.compare_exchange_weak(seen, seen + one_of(how), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;  // pairs with the release of those who left
      }
    }
    return false;
  }

  // What was handed over, or else the lock if it is free and nobody waits.
  [[nodiscard]] static bool try_complete(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    return me.outcome != 0 || try_lock(m, me.kind);
  }

  [[nodiscard]] static bool publish(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    return list_and_serve(m, me, waiting, [&m](std::uint32_t seen, queue_guard& hold, wake_batch& wakes) {
      admit_beside(m, seen, hold, wakes);
    });
  }

  // Waiters that only `me` kept waiting go on: readers behind a writer.
  static void unpublish(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    wake_batch wakes;
    queue_guard hold(m.waiters);
    hold.remove(me);
    // Relaxed: what those inside have to see, they saw when they came.
    admit_beside(m, m.word.load(std::memory_order_relaxed), hold, wakes);
  }

  static void unlock(shared_mutex_core& m, lock_kind how) noexcept {
    for (auto seen = m.word.load(std::memory_order_relaxed);;) {
      if (seen == (one_of(how) | waiting)) {
        if (hand_over(m, how)) return;
        seen = m.word.load(std::memory_order_relaxed);
      } else if (m.word.compare_exchange_weak(seen, seen - one_of(how), std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return;
      }
    }
  }

 private:
  // From the front, as long as they fit. Returns who is in now.
  static std::uint32_t admit(std::uint32_t inside, queue_guard& hold, wake_batch& wakes) noexcept {
    std::uint32_t admitted = 0;
    while (auto* const first = hold.first<shared_mutex_waiter>()) {
      if (!fits(inside + admitted, first->kind)) break;
      if (!hold.claim_listed_first(*first)) continue;
      admitted += one_of(first->kind);
      wakes.add(*first, 1);
    }
    return admitted;
  }
  static void admit_beside(shared_mutex_core& m, std::uint32_t inside, queue_guard& hold, wake_batch& wakes) noexcept {
    if (const auto admitted = admit(inside & ~waiting, hold, wakes)) {
      m.word.fetch_add(admitted, std::memory_order_relaxed);
    }
    if (hold.empty()) m.word.fetch_and(~waiting, std::memory_order_relaxed);
  }
  // The last one inside leaves. False: it need not do so with the queue locked any more (wait_queue.hpp, M4).
  static bool hand_over(shared_mutex_core& m, lock_kind how) noexcept {
    wake_batch wakes;
    queue_guard hold(m.waiters);
    // Acquire: the next one in has to see what other readers did, too.
    if (m.word.load(std::memory_order_acquire) != (one_of(how) | waiting)) return false;
    const auto admitted = admit(0, hold, wakes);
    m.word.store(admitted | (hold.empty() ? 0 : waiting), std::memory_order_release);
    return true;
  }
};

using shared_mutex_wait = waitable_of<shared_mutex_word>;

}  // namespace ramie::sync_internal
