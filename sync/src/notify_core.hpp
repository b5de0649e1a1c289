// SPDX-License-Identifier: BSL-1.0
// The word of a notify and its queue. A leaf: the explorer runs it.
//
//   permit   one notification that nobody has taken
//   waiting  a waiter is listed (wait_queue.hpp, M1)
//
// Never both. While `waiting` is set, the word is changed only with the queue locked.
#pragma once

#include <cstdint>

#include <ramie/notify.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct notify_word {
  using core = notify_core;
  using node = queue_waiter;
  static constexpr std::uint32_t permit = 1, waiting = notify_core::waiting;

  [[nodiscard]] static bool try_take(notify_core& n) noexcept {
    std::uint32_t seen = permit;
    if (n.word.load(std::memory_order_relaxed) != permit) return false;
    return n.word.compare_exchange_strong(seen, 0, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // What was handed over, or else the permit.
  [[nodiscard]] static bool try_complete(notify_core& n, const queue_waiter& me) noexcept {
    return me.outcome != 0 || me.released || try_take(n);
  }

  // False: we have taken the permit.
  [[nodiscard]] static bool publish(notify_core& n, queue_waiter& me) noexcept {
    queue_guard hold(n.waiters);
    auto seen = n.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto wanted = seen == permit ? 0 : waiting;
      if (n.word.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    if (seen == permit) return false;
    hold.list(me);
    return true;
  }

  // For a select (case_of). False: there is a permit.
  [[nodiscard]] static bool publish_only(notify_core& n, queue_waiter& me) noexcept {
    queue_guard hold(n.waiters);
    auto seen = n.word.load(std::memory_order_relaxed);
    do {
      if (seen == permit) return false;
    } while (!n.word.compare_exchange_weak(seen, waiting, std::memory_order_relaxed, std::memory_order_relaxed));
    hold.list(me);
    return true;
  }

  static void unpublish(notify_core& n, queue_waiter& me) noexcept { unlist(n, me, waiting); }

  static void one(notify_core& n) noexcept {
    for (auto seen = n.word.load(std::memory_order_relaxed);;) {
      if (seen == waiting) {
        if (wake_first(n)) return;
        seen = n.word.load(std::memory_order_relaxed);
      } else if (n.word.compare_exchange_weak(seen, permit, std::memory_order_release, std::memory_order_relaxed)) {
        return;  // also over a permit: whoever takes it sees what all who gave it did
      }
    }
  }

  static void all(notify_core& n) noexcept {
    if (n.word.load(std::memory_order_acquire) != waiting) return;
    wake_batch wakes;
    queue_guard hold(n.waiters);
    hold.release_all(wakes);
    n.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

 private:
  // False: nobody waits any more (wait_queue.hpp, M4).
  static bool wake_first(notify_core& n) noexcept {
    wake_batch wakes;
    queue_guard hold(n.waiters);
    if (n.word.load(std::memory_order_relaxed) != waiting) return false;
    waiter* const first = hold.claim_first();
    if (first != nullptr) wakes.add(*first, 1);
    if (hold.empty()) n.word.store(first != nullptr ? 0 : permit, std::memory_order_release);
    return true;
  }
};

using notify_waitable = waitable_of<notify_word>;

}  // namespace ramie::sync_internal
