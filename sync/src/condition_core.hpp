// SPDX-License-Identifier: BSL-1.0
// The queue of a condition variable. A leaf: the explorer runs it.
//
// A waiter lists itself while it holds the mutex and unlocks it right after, in one publish; so whoever locks the mutex
// after that and notifies finds it listed. It is listed once: a wake without a notification ends the wait, because a
// notification that comes while it is not listed is another's, or nobody's.
#pragma once

#include <ramie/condition_variable.hpp>

#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

struct condition_waiter : queue_waiter {
  bool has_unlocked = false;  // the mutex
  // Otherwise it was woken for another reason.
  [[nodiscard]] bool was_notified() const noexcept { return outcome != 0 || released; }
};

struct condition_queue {
  static void list(condition_core& c, condition_waiter& me) noexcept {
    queue_guard hold(c.waiters);
    hold.list(me);
    c.waited_for.store(true, std::memory_order_relaxed);  // seen by whoever locks the mutex after us
  }

  static void unpublish(condition_core& c, condition_waiter& me) noexcept {
    queue_guard hold(c.waiters);
    hold.remove(me);
    if (hold.empty()) c.waited_for.store(false, std::memory_order_relaxed);
  }

  static void notify(condition_core& c, bool all) noexcept {
    wake_batch wakes;
    queue_guard hold(c.waiters);
    if (all) {
      hold.release_all(wakes);
    } else if (waiter* const first = hold.claim_first()) {
      wakes.add(*first, 1);
    }
    if (hold.empty()) c.waited_for.store(false, std::memory_order_relaxed);
  }
};

// `Unlock` is how its holder unlocks the mutex.
template <void (*Unlock)(mutex_core&) noexcept>
class condition_waitable final : public waitable {
 public:
  condition_waitable(condition_core& c, mutex_core& m) noexcept : condition_(c), mutex_(m) {}
  bool try_complete(waiter& node) override { return static_cast<condition_waiter&>(node).has_unlocked; }
  bool publish(waiter& node) override {
    auto& me = static_cast<condition_waiter&>(node);
    me.has_unlocked = true;
    condition_queue::list(condition_, me);
    Unlock(mutex_);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    condition_queue::unpublish(condition_, static_cast<condition_waiter&>(node));
  }

 private:
  condition_core& condition_;
  mutex_core& mutex_;
};

}  // namespace ramie::sync_internal
