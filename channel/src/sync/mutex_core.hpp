// SPDX-License-Identifier: BSL-1.0
// The word of a mutex and the line behind it. A leaf: the explorer runs it.
//
//   locked   somebody holds it
//   waiting  somebody is listed (line.hpp, M1)
//   woken    somebody was listed, was woken to try again, and has not done so yet
//
// Invariants
//   M11  Only the holder clears `locked`.
//   M12  If somebody is listed, `locked` or `woken` is set. So whoever unlocks and finds somebody waiting and nobody
//        woken has to see to it. If there is a woken one, that one will: it takes the lock and unlocks it some time, or
//        finds it locked, and then the holder's unlock comes after it has cleared `woken`.
//   M13  A woken waiter tries, and so clears `woken`, before it can be cancelled, time out, or throw.
//
// Unlocking wakes the first of the line without reserving the lock: its fiber needs a while to run, and meanwhile the
// lock may change hands many times. With `woken` set all of those are one RMW. But a waiter that has come in vain
// `patience` times has the lock handed over: it stays locked and has another holder.
//
// Rejected: always handing over (a context switch for every critical section, as soon as two fibers meet once); a
// semaphore of one (seed 002), which is that.
#pragma once

#include <cstdint>

#include <ramie/mutex.hpp>

#include "line.hpp"

namespace ramie::detail {

struct mutex_waiter : line_waiter {
  std::uint32_t losses = 0;
  bool woken = false;  // the word's `woken` is ours to clear
};

// The outcome in a waiter's node.
enum class mutex_turn : std::uint32_t { none, try_again, holds };

struct mutex_word {
  static constexpr std::uint32_t locked = 1, waiting = 2, woken = 4;
  static constexpr std::uint32_t patience = 4;

  // Without a waiter's duties.
  [[nodiscard]] static bool try_lock(mutex_core& m) noexcept {
    auto seen = m.word.load(std::memory_order_relaxed);
    while ((seen & locked) == 0) {
      if (m.word.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;  // pairs with the release of the last holder
      }
    }
    return false;
  }

  // M13.
  [[nodiscard]] static bool try_lock(mutex_core& m, mutex_waiter& me) noexcept {
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

  // False: the lock is ours.
  [[nodiscard]] static bool publish(mutex_core& m, mutex_waiter& me) noexcept {
    line_guard hold(m.waiters);
    auto seen = m.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto wanted = seen | ((seen & locked) == 0 ? locked : waiting);
      if (m.word.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    if ((seen & locked) == 0) return false;
    hold.list(me);
    return true;
  }

  static void unpublish(mutex_core& m, mutex_waiter& me) noexcept {
    line_guard hold(m.waiters);
    hold.remove(me);
    if (hold.empty()) m.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

  // The holder. Its last touch is the RMW that lets go, or the end of the line's guard.
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
  // Sees to the first of the line. False: there was nobody.
  static bool pass_on(mutex_core& m) noexcept {
    fiber* who = nullptr;
    bool handed_over = false;
    {
      line_guard hold(m.waiters);
      if (auto* const first = hold.claim_first<mutex_waiter>()) {
        handed_over = first->losses >= patience;
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

class mutex_wait final : public waitable {
 public:
  explicit mutex_wait(mutex_core& m) noexcept : mutex_(m) {}
  bool try_complete(waiter& node) override { return mutex_word::try_lock(mutex_, static_cast<mutex_waiter&>(node)); }
  bool publish(waiter& node) override { return mutex_word::publish(mutex_, static_cast<mutex_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override { mutex_word::unpublish(mutex_, static_cast<mutex_waiter&>(node)); }

 private:
  mutex_core& mutex_;
};

}  // namespace ramie::detail
