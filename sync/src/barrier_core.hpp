// SPDX-License-Identifier: BSL-1.0
// A barrier: all of it is under the lock of its queue. A leaf: the explorer runs it.
//
// A party that is listed has come, and is missing no more; one that leaves the queue without having been released is
// missing again.
#pragma once

#include <cstdint>

#include <ramie/barrier.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct barrier_waiter : queue_waiter {
  bool leads = false;
};

struct barrier_parties {
  using core = barrier_core;
  using node = barrier_waiter;

  [[nodiscard]] static bool try_complete(const barrier_core&, const barrier_waiter& me) noexcept { return me.released; }

  // False: all others had come, and we lead.
  [[nodiscard]] static bool publish(barrier_core& b, barrier_waiter& me) noexcept {
    wake_batch wakes;
    queue_guard hold(b.waiters);
    if (--b.missing != 0) {
      hold.list(me);
      return true;
    }
    me.leads = true;
    begin_next(b, hold, wakes);
    return false;
  }

  static void unpublish(barrier_core& b, barrier_waiter& me) noexcept {
    queue_guard hold(b.waiters);
    if (!me.listed) return;
    hold.remove(me);
    ++b.missing;
  }

  // Whether all have dropped out: nobody may come any more.
  [[nodiscard]] static bool are_gone(const barrier_core& b) noexcept {
    queue_guard hold(b.waiters);
    return b.parties == 0;
  }

  // False: there are no parties any more.
  [[nodiscard]] static bool arrive_and_drop(barrier_core& b) noexcept {
    wake_batch wakes;
    queue_guard hold(b.waiters);
    if (b.parties == 0) return false;
    --b.parties;
    if (--b.missing != 0) return true;
    if (auto* const first = hold.first<barrier_waiter>()) first->leads = true;
    begin_next(b, hold, wakes);
    return true;
  }

 private:
  // All have come.
  static void begin_next(barrier_core& b, queue_guard& hold, wake_batch& wakes) noexcept {
    hold.release_all(wakes);
    b.missing = b.parties;
    ++b.generation;
  }
};

using barrier_waitable = waitable_of<barrier_parties>;

}  // namespace ramie::sync_internal
