// SPDX-License-Identifier: BSL-1.0
// The word of a shared mutex and the line behind it.
//
//   writer   somebody has it alone
//   waiting  somebody is listed (line.hpp, M1)
//   others   how many share it
//
// Invariants
//   M17  Never a writer and readers.
//   M18  While `waiting` is set nobody gets in but from the line, and its last holder leaves with the line held,
//   handing
//        over to the first of the line, and if that is a reader, to the readers right behind it.
//   M19  Who is listed first does not fit beside those who are inside.
#pragma once

#include <cstdint>

#include <ramie/shared_mutex.hpp>

#include "line.hpp"

namespace ramie::detail {

struct shared_mutex_waiter : line_waiter {
  explicit shared_mutex_waiter(lock_kind how) noexcept : kind(how) {}
  const lock_kind kind;
};

struct shared_mutex_word {
  static constexpr std::uint32_t writer = 1, waiting = 2, reader = 4;

  [[nodiscard]] static constexpr std::uint32_t one_of(lock_kind how) noexcept {
    return how == lock_kind::alone ? writer : reader;
  }
  // Beside those inside, whoever waits.
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

  // False: it is ours.
  [[nodiscard]] static bool publish(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    line_guard hold(m.waiters);
    const auto seen = m.word.fetch_or(waiting, std::memory_order_acquire);
    hold.list(me);
    if (hold.first() != &me || !fits(seen, me.kind)) return true;
    hold.remove(me);
    m.word.fetch_add(one_of(me.kind), std::memory_order_relaxed);
    forget_line_if_empty(m, hold);
    return false;
  }

  // Whoever was kept waiting by it alone goes on: readers behind a writer.
  static void unpublish(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    tell_later later;
    line_guard hold(m.waiters);
    hold.remove(me);
    const auto inside = m.word.load(std::memory_order_relaxed) & ~waiting;  // what it has to see, it saw when it came
    m.word.fetch_add(admit(inside, hold, later), std::memory_order_relaxed);
    forget_line_if_empty(m, hold);
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
  static std::uint32_t admit(std::uint32_t inside, line_guard& hold, tell_later& later) noexcept {
    std::uint32_t admitted = 0;
    while (auto* const first = hold.first<shared_mutex_waiter>()) {
      if (!fits(inside + admitted, first->kind)) break;
      if (!hold.claim_listed_first(*first)) continue;
      admitted += one_of(first->kind);
      later.add(*first);
    }
    return admitted;
  }
  static void forget_line_if_empty(shared_mutex_core& m, const line_guard& hold) noexcept {
    if (hold.empty()) m.word.fetch_and(~waiting, std::memory_order_relaxed);
  }
  // The last one inside leaves. False: it need not do so with the line any more (line.hpp, M4).
  static bool hand_over(shared_mutex_core& m, lock_kind how) noexcept {
    tell_later later;
    line_guard hold(m.waiters);
    // Acquire: the next one in has to see what other readers did, too.
    if (m.word.load(std::memory_order_acquire) != (one_of(how) | waiting)) return false;
    const auto admitted = admit(0, hold, later);
    m.word.store(admitted | (hold.empty() ? 0 : waiting), std::memory_order_release);
    return true;
  }
};

class shared_mutex_wait final : public waitable {
 public:
  explicit shared_mutex_wait(shared_mutex_core& m) noexcept : mutex_(m) {}
  bool try_complete(waiter&) override { return false; }  // publish does, in its turn
  bool publish(waiter& node) override {
    return shared_mutex_word::publish(mutex_, static_cast<shared_mutex_waiter&>(node));
  }
  void unpublish(waiter& node) noexcept override {
    shared_mutex_word::unpublish(mutex_, static_cast<shared_mutex_waiter&>(node));
  }

 private:
  shared_mutex_core& mutex_;
};

}  // namespace ramie::detail
