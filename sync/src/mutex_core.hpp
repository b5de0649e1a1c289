// SPDX-License-Identifier: BSL-1.0
// The word of a mutex and its queue. A leaf: the explorer runs it.
//
//   locked   somebody holds it
//   waiting  a waiter is listed (wait_queue.hpp, M1)
//   woken    a waiter was woken to try again, and has not done so yet
//
// Invariants
//   M11  Only the holder clears `locked`.
//   M12  If a waiter is listed, `locked` or `woken` is set. So whoever unlocks and finds `waiting` without `woken` has
//        to wake a waiter. If there is a woken one, that one will: it takes the lock and unlocks it some time, or finds
//        it locked, and then the holder's unlock comes after it has cleared `woken`.
//   M13  A woken waiter tries, and so clears `woken`, before it can be cancelled, time out, or throw.
//
// An unlock wakes the first of the queue without reserving the lock: the woken fiber needs a while to run, and
// meanwhile the lock may change hands many times. With `woken` set all of those are one RMW. But to a waiter that has
// tried in vain losses_before_handover times the lock is handed over: it stays locked and has another holder.
//
// Rejected: always handing over (a context switch for every critical section, as soon as two fibers meet once); a
// semaphore of one permit, which is the same.
#pragma once

#include <cstdint>
#include <utility>

#include <ramie/mutex.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct mutex_waiter : queue_waiter {
  std::uint32_t losses = 0;
  bool woken = false;  // this waiter has to clear the word's `woken`
};

// The outcome in a waiter's node.
enum class mutex_turn : std::uint32_t { none, try_again, holds };

struct mutex_word {
  using core = mutex_core;
  using node = mutex_waiter;
  static constexpr std::uint32_t locked = mutex_core::locked, waiting = 2, woken = 4;
  static constexpr std::uint32_t losses_before_handover = 4;

  // By somebody who is no waiter.
  [[nodiscard]] static bool try_lock(mutex_core& m) noexcept {
    auto seen = m.word.load(std::memory_order_relaxed);
    while ((seen & locked) == 0) {
      if (m.word.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;  // pairs with the release of the last holder
      }
    }
    return false;
  }

  // By a waiter that is not listed. M13.
  [[nodiscard]] static bool try_complete(mutex_core& m, mutex_waiter& me) noexcept {
    if (!me.woken) return try_lock(m);
    auto seen = m.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto wanted = (seen | locked) & ~woken;
      if (m.word.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    me.woken = false;
    if ((seen & locked) == 0) return true;
    ++me.losses;
    return false;
  }

  // By a waiter that was completed: the lock was handed over, or it tries again. False: it has to wait again.
  [[nodiscard]] static bool take_turn(mutex_core& m, mutex_waiter& me) noexcept {
    const auto turn = static_cast<mutex_turn>(std::exchange(me.outcome, 0));
    if (turn == mutex_turn::holds) return true;
    if (turn == mutex_turn::try_again) me.woken = true;
    return try_complete(m, me);
  }

  // False: the lock is ours.
  [[nodiscard]] static bool publish(mutex_core& m, mutex_waiter& me) noexcept {
    queue_guard hold(m.waiters);
    auto seen = m.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto wanted = seen | ((seen & locked) == 0 ? locked : waiting);
      if (m.word.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    if ((seen & locked) == 0) return false;
    hold.list(me);
    return true;
  }

  // For a select (case_of). False: it is free.
  [[nodiscard]] static bool publish_only(mutex_core& m, mutex_waiter& me) noexcept {
    queue_guard hold(m.waiters);
    auto seen = m.word.load(std::memory_order_relaxed);
    do {
      if ((seen & locked) == 0) return false;
    } while (!m.word.compare_exchange_weak(seen, seen | waiting, std::memory_order_relaxed, std::memory_order_relaxed));
    hold.list(me);
    return true;
  }

  static void unpublish(mutex_core& m, mutex_waiter& me) noexcept { unlist(m, me, waiting); }

  // The holder. Its last touch is the RMW that unlocks, or the end of the queue's guard.
  static void unlock(mutex_core& m) noexcept {
    for (auto seen = m.word.load(std::memory_order_relaxed);;) {
      if ((seen & (waiting | woken)) == waiting) {
        if (pass_on(m)) return;
        seen = m.word.load(std::memory_order_relaxed);
      } else if (m.word.compare_exchange_weak(seen, seen & ~locked, std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return;
      }
    }
  }

 private:
  // Unlocks and wakes the first of the queue, or hands the lock over to it. False: no waiter could be claimed, and it
  // is still locked.
  static bool pass_on(mutex_core& m) noexcept {
    fiber* who = nullptr;
    bool handed_over = false;
    {
      queue_guard hold(m.waiters);
      if (auto* const first = hold.claim_first<mutex_waiter>()) {
        handed_over = first->losses >= losses_before_handover;
        first->outcome = static_cast<std::uint32_t>(handed_over ? mutex_turn::holds : mutex_turn::try_again);
        who = first->who;
      }
      if (hold.empty()) m.word.fetch_and(~waiting, std::memory_order_relaxed);
    }
    if (who == nullptr) return false;
    if (!handed_over) m.word.fetch_add(woken - locked, std::memory_order_release);
    complete(*who);
    return true;
  }
};

using mutex_wait = waitable_of<mutex_word>;

// For a condition variable: locks again what its caller held and unlocked in order to wait. Not a cancellation point.
void mutex_lock_again(mutex_core& m) noexcept;

}  // namespace ramie::sync_internal
