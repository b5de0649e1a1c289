// SPDX-License-Identifier: BSL-1.0
// A barrier: who is listed has come, and is missing no more; who leaves the line without having passed is missing
// again.
#include <ramie/barrier.hpp>

#include <ramie/runtime/budget.hpp>

#include "line.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_the_others{"barrier wait"};

struct barrier_waiter : line_waiter {
  bool leads = false;
};

// All are there.
void begin_next(barrier_core& b, line_guard& hold, tell_later& later) noexcept {
  later.let_all_pass(hold);
  b.missing = b.parties;
  ++b.generation;
}

class barrier_waitable final : public waitable {
 public:
  explicit barrier_waitable(barrier_core& b) noexcept : barrier_(b) {}
  bool try_complete(waiter& node) override { return static_cast<barrier_waiter&>(node).passed; }
  bool publish(waiter& node) override {
    auto& me = static_cast<barrier_waiter&>(node);
    tell_later later;
    line_guard hold(barrier_.waiters);
    if (--barrier_.missing != 0) {
      hold.list(me);
      return true;
    }
    me.leads = true;
    begin_next(barrier_, hold, later);
    return false;
  }
  void unpublish(waiter& node) noexcept override {
    line_guard hold(barrier_.waiters);
    if (!node.listed) return;
    hold.remove(node);
    ++barrier_.missing;
  }

 private:
  barrier_core& barrier_;
};

}  // namespace

bool barrier_wait(barrier_core& b) {
  whereabouts at = look_around();
  begin_operation(at);
  barrier_waitable on(b);
  barrier_waiter node;
  (void)fiber_wait(on, node, waits_for_the_others);
  return node.leads;
}

void barrier_arrive_and_drop(barrier_core& b) noexcept {
  tell_later later;
  line_guard hold(b.waiters);
  if (b.parties == 0) misused(look_around(), "drops out of a ramie::barrier without parties", "Drop out once a party.");
  --b.parties;
  if (--b.missing != 0) return;
  if (auto* const first = hold.first<barrier_waiter>()) first->leads = true;
  begin_next(b, hold, later);
}

std::uint64_t barrier_generation(barrier_core& b) noexcept {
  line_guard hold(b.waiters);
  return b.generation;
}

void barrier_destroyed(const barrier_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::barrier that others wait at", "It must outlive all who wait at it.");
  }
}

}  // namespace ramie::detail
