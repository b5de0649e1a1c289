// SPDX-License-Identifier: BSL-1.0
// The word of an event and its queue. A leaf: the explorer runs it.
//
//   happened  nobody need wait
//   waiting   a waiter is listed (wait_queue.hpp, M1)
//
// Never both.
#pragma once

#include <cstdint>

#include <ramie/event.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct event_word {
  using core = event_core;
  using node = queue_waiter;
  static constexpr std::uint32_t happened = event_core::happened, waiting = event_core::waiting;

  [[nodiscard]] static bool has_happened(const event_core& e) noexcept {
    return (e.word.load(std::memory_order_acquire) & happened) != 0;  // pairs with the releases of `set`
  }

  [[nodiscard]] static bool try_complete(const event_core& e, const queue_waiter& me) noexcept {
    return me.released || has_happened(e);
  }

  // False: it has happened.
  [[nodiscard]] static bool publish(event_core& e, queue_waiter& me) noexcept {
    queue_guard hold(e.waiters);
    auto seen = e.word.load(std::memory_order_acquire);
    do {
      if ((seen & happened) != 0) return false;
    } while (!e.word.compare_exchange_weak(seen, waiting, std::memory_order_acquire, std::memory_order_acquire));
    hold.list(me);
    return true;
  }

  static void unpublish(event_core& e, queue_waiter& me) noexcept { unlist(e, me, waiting); }

  static void set(event_core& e) noexcept {
    for (auto seen = e.word.load(std::memory_order_relaxed);;) {
      if (seen == waiting) {
        if (release_waiters(e)) return;
        seen = e.word.load(std::memory_order_relaxed);
      } else if (e.word.compare_exchange_weak(seen, happened, std::memory_order_release, std::memory_order_relaxed)) {
        return;  // also if it is set already: whoever waits sees what all who set it did
      }
    }
  }

  // Whoever resets it sees what was done before it was set.
  static void reset(event_core& e) noexcept { e.word.fetch_and(~happened, std::memory_order_acq_rel); }

 private:
  // False: nobody waits any more (wait_queue.hpp, M4).
  static bool release_waiters(event_core& e) noexcept {
    wake_batch wakes;
    queue_guard hold(e.waiters);
    if (e.word.load(std::memory_order_relaxed) != waiting) return false;
    hold.release_all(wakes);
    e.word.store(happened, std::memory_order_release);
    return true;
  }
};

using event_waitable = waitable_of<event_word>;

}  // namespace ramie::sync_internal
