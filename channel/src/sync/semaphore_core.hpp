// SPDX-License-Identifier: BSL-1.0
// The word of a semaphore and the line behind it. A leaf: the explorer runs it.
//
//   bit 0   waiting: somebody is listed (line.hpp, M1)
//   others  permits
//
// Invariants
//   M23  While `waiting` is set, the word is changed only with the line held.
//   M24  The first of the line wants more than there is. So nobody is passed over: who comes while somebody waits lists
//        itself, and whatever is released, or left by a waiter that goes, is dealt out from the front.
#pragma once

#include <cstdint>

#include <ramie/semaphore.hpp>

#include "line.hpp"

namespace ramie::detail {

struct semaphore_waiter : line_waiter {
  explicit semaphore_waiter(std::uint64_t count) noexcept : wanted(count) {}
  const std::uint64_t wanted;
};

struct semaphore_word {
  static constexpr std::uint64_t waiting = 1;
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

  // False: the permits are ours.
  [[nodiscard]] static bool publish(semaphore_core& s, semaphore_waiter& me) noexcept {
    line_guard hold(s.waiters);
    const auto seen = s.word.fetch_or(waiting, std::memory_order_acquire);
    hold.list(me);
    if (hold.first() != &me || permits(seen) < me.wanted) return true;
    hold.remove(me);
    settle(s, hold, permits(seen) - me.wanted);
    return false;
  }

  static void unpublish(semaphore_core& s, semaphore_waiter& me) noexcept {
    tell_later later;
    line_guard hold(s.waiters);
    hold.remove(me);
    const auto seen = s.word.load(std::memory_order_relaxed);
    if ((seen & waiting) != 0) settle(s, hold, deal_out(permits(seen), hold, later));
  }

  // False: it would be too many.
  [[nodiscard]] static bool release(semaphore_core& s, std::uint64_t count) noexcept {
    for (auto seen = s.word.load(std::memory_order_relaxed);;) {
      if (permits(seen) + count > semaphore::max() || count > semaphore::max()) return false;
      if ((seen & waiting) != 0) {
        if (release_to_line(s, count)) return true;
        seen = s.word.load(std::memory_order_relaxed);
      } else if (s.word.compare_exchange_weak(seen, seen + (count << 1), std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  // From the front, as far as they go. Returns what is left.
  [[nodiscard]] static std::uint64_t deal_out(std::uint64_t there, line_guard& hold, tell_later& later) noexcept {
    while (auto* const first = hold.first<semaphore_waiter>()) {
      if (first->wanted > there) break;
      if (!hold.claim_listed_first(*first)) continue;
      there -= first->wanted;
      later.add(*first);
    }
    return there;
  }
  // M23. Release: what is left was released by others. Whoever set `waiting` has acquired from them, and the line
  // passes it on; hence the relaxed loads.
  static void settle(semaphore_core& s, const line_guard& hold, std::uint64_t left) noexcept {
    s.word.store(left << 1 | (hold.empty() ? 0 : waiting), std::memory_order_release);
  }
  // False: nobody waits any more (line.hpp, M4).
  static bool release_to_line(semaphore_core& s, std::uint64_t count) noexcept {
    tell_later later;
    line_guard hold(s.waiters);
    const auto seen = s.word.load(std::memory_order_relaxed);
    if ((seen & waiting) == 0) return false;
    settle(s, hold, deal_out(permits(seen) + count, hold, later));
    return true;
  }
};

class semaphore_wait final : public waitable {
 public:
  explicit semaphore_wait(semaphore_core& s) noexcept : semaphore_(s) {}
  bool try_complete(waiter&) override { return false; }  // publish does, in its turn
  bool publish(waiter& node) override {
    return semaphore_word::publish(semaphore_, static_cast<semaphore_waiter&>(node));
  }
  void unpublish(waiter& node) noexcept override {
    semaphore_word::unpublish(semaphore_, static_cast<semaphore_waiter&>(node));
  }

 private:
  semaphore_core& semaphore_;
};

}  // namespace ramie::detail
