// SPDX-License-Identifier: BSL-1.0
// The line of a condition variable. A leaf: the explorer runs it.
//
// A waiter lists itself while it holds the mutex and lets go of it right after, in one publish; so whoever locks the
// mutex after that and notifies finds it listed. It is listed once: a wake for nothing ends the wait, because a
// notification that comes while it is not listed is another's, or nobody's.
#pragma once

#include <ramie/condition_variable.hpp>

#include "line.hpp"

namespace ramie::detail {

struct condition_waiter : line_waiter {
  bool has_let_go = false;  // of the mutex
  // Otherwise it was woken for nothing.
  [[nodiscard]] bool was_notified() const noexcept { return outcome != 0 || passed; }
};

struct condition_line {
  static void list(condition_core& c, condition_waiter& me) noexcept {
    line_guard hold(c.waiters);
    hold.list(me);
    c.waited_for.store(true, std::memory_order_relaxed);  // seen by who locks the mutex after us
  }

  static void unpublish(condition_core& c, condition_waiter& me) noexcept {
    line_guard hold(c.waiters);
    hold.remove(me);
    if (hold.empty()) c.waited_for.store(false, std::memory_order_relaxed);
  }

  static void notify(condition_core& c, bool all) noexcept {
    tell_later later;
    line_guard hold(c.waiters);
    if (all) {
      later.let_all_pass(hold);
    } else if (waiter* const first = hold.claim_first()) {
      later.add(*first);
    }
    if (hold.empty()) c.waited_for.store(false, std::memory_order_relaxed);
  }
};

// `Unlock` is how its holder lets go of the mutex.
template <void (*Unlock)(mutex_core&) noexcept>
class condition_waitable final : public waitable {
 public:
  condition_waitable(condition_core& c, mutex_core& m) noexcept : condition_(c), mutex_(m) {}
  bool try_complete(waiter& node) override { return static_cast<condition_waiter&>(node).has_let_go; }
  bool publish(waiter& node) override {
    auto& me = static_cast<condition_waiter&>(node);
    me.has_let_go = true;
    condition_line::list(condition_, me);
    Unlock(mutex_);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    condition_line::unpublish(condition_, static_cast<condition_waiter&>(node));
  }

 private:
  condition_core& condition_;
  mutex_core& mutex_;
};

}  // namespace ramie::detail
