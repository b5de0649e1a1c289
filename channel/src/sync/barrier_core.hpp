// SPDX-License-Identifier: BSL-1.0
// A barrier, all of it under its line. A leaf: the explorer runs it.
//
// Who is listed has come, and is missing no more; who leaves the line without having passed is missing again.
#pragma once

#include <cstdint>

#include <ramie/barrier.hpp>

#include "line.hpp"

namespace ramie::detail {

struct barrier_waiter : line_waiter {
  bool leads = false;
};

struct barrier_line {
  // False: the others were waiting for us, and we lead.
  [[nodiscard]] static bool publish(barrier_core& b, barrier_waiter& me) noexcept {
    tell_later later;
    line_guard hold(b.waiters);
    if (--b.missing != 0) {
      hold.list(me);
      return true;
    }
    me.leads = true;
    begin_next(b, hold, later);
    return false;
  }

  static void unpublish(barrier_core& b, barrier_waiter& me) noexcept {
    line_guard hold(b.waiters);
    if (!me.listed) return;
    hold.remove(me);
    ++b.missing;
  }

  // False: there are no parties any more.
  [[nodiscard]] static bool arrive_and_drop(barrier_core& b) noexcept {
    tell_later later;
    line_guard hold(b.waiters);
    if (b.parties == 0) return false;
    --b.parties;
    if (--b.missing != 0) return true;
    if (auto* const first = hold.first<barrier_waiter>()) first->leads = true;
    begin_next(b, hold, later);
    return true;
  }

 private:
  // All are there.
  static void begin_next(barrier_core& b, line_guard& hold, tell_later& later) noexcept {
    later.let_all_pass(hold);
    b.missing = b.parties;
    ++b.generation;
  }
};

class barrier_waitable final : public waitable {
 public:
  explicit barrier_waitable(barrier_core& b) noexcept : barrier_(b) {}
  bool try_complete(waiter& node) override { return static_cast<barrier_waiter&>(node).passed; }
  bool publish(waiter& node) override { return barrier_line::publish(barrier_, static_cast<barrier_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override {
    barrier_line::unpublish(barrier_, static_cast<barrier_waiter&>(node));
  }

 private:
  barrier_core& barrier_;
};

}  // namespace ramie::detail
