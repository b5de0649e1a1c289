// SPDX-License-Identifier: BSL-1.0
// The word of what is done once. A leaf: the explorer runs it.
//
//   0        nobody does it
//   running  somebody does; perhaps with `waiting`: a waiter is listed (wait_queue.hpp, M1)
//   done     for good
//
// Whoever does it and fails hands `running` to the first of the queue, if there is one: so a failure wakes one waiter,
// a success all.
#pragma once

#include <cstdint>

#include <ramie/once.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct once_waiter : queue_waiter {
  bool ours = false;  // no caller was doing it when this waiter wanted to list itself: so this one does it
};

// The outcome in a waiter's node.
enum class once_turn : std::uint32_t { none, done, ours };

struct once_word {
  using core = once_core;
  using node = once_waiter;
  static constexpr std::uint32_t running = once_core::running, waiting = once_core::waiting, done = once_core::done;

  // True: it is ours to do.
  [[nodiscard]] static bool try_begin(once_core& o) noexcept {
    std::uint32_t free = 0;
    return o.word.compare_exchange_strong(free, running, std::memory_order_acquire, std::memory_order_relaxed);
  }
  [[nodiscard]] static bool is_ours(const once_waiter& me) noexcept {
    return me.ours || me.outcome == static_cast<std::uint32_t>(once_turn::ours);
  }

  [[nodiscard]] static bool try_complete(const once_core& o, const once_waiter&) noexcept { return o.is_done(); }

  // False: it is done, or ours.
  [[nodiscard]] static bool publish(once_core& o, once_waiter& me) noexcept {
    queue_guard hold(o.waiters);
    auto seen = o.word.load(std::memory_order_acquire);
    do {
      if (seen == done) return false;
    } while (!o.word.compare_exchange_weak(seen, seen == 0 ? running : seen | waiting, std::memory_order_acquire,
                                           std::memory_order_acquire));
    me.ours = seen == 0;
    if (!me.ours) hold.list(me);
    return !me.ours;
  }

  static void unpublish(once_core& o, once_waiter& me) noexcept { unlist(o, me, waiting); }

  // The caller that does it.
  static void end(once_core& o, bool succeeded) noexcept {
    for (std::uint32_t alone = running;;) {
      if (o.word.compare_exchange_weak(alone, succeeded ? done : 0, std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
      if (alone == (running | waiting) && (succeeded ? finish(o) : pass_on(o))) return;
      alone = running;
    }
  }

 private:
  // Both: false if nobody waits any more (wait_queue.hpp, M4).
  static bool finish(once_core& o) noexcept {
    wake_batch wakes;
    queue_guard hold(o.waiters);
    if (hold.empty()) return false;
    hold.release_all(wakes);
    o.word.store(done, std::memory_order_release);
    return true;
  }
  static bool pass_on(once_core& o) noexcept {
    wake_batch wakes;
    queue_guard hold(o.waiters);
    if (hold.empty()) return false;
    waiter* const next = hold.claim_first();
    if (next != nullptr) wakes.add(*next, static_cast<std::uint32_t>(once_turn::ours));
    if (hold.empty()) o.word.store(next != nullptr ? running : 0, std::memory_order_release);
    return true;
  }
};

using once_wait = waitable_of<once_word>;

}  // namespace ramie::sync_internal
