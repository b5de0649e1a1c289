// SPDX-License-Identifier: BSL-1.0
// The word of a latch: the count, and in bit 0 `waiting` (line.hpp, M1). Counting down is one RMW; only the last one,
// and only if somebody is listed, takes the line.
#include <ramie/latch.hpp>

#include <ramie/runtime/budget.hpp>

#include "line.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_latch{"latch wait"};
const wait_reason waits_for_latch_until{"latch wait, with a deadline"};

constexpr std::uint64_t waiting = 1;

bool is_open(const latch_core& l) noexcept {
  return l.word.load(std::memory_order_acquire) >> 1 == 0;  // pairs with the releases of latch_count_down
}

class latch_waitable final : public waitable {
 public:
  explicit latch_waitable(latch_core& l) noexcept : latch_(l) {}
  bool try_complete(waiter&) override { return is_open(latch_); }
  bool publish(waiter& node) override {
    line_guard hold(latch_.waiters);
    auto seen = latch_.word.load(std::memory_order_acquire);
    do {
      if (seen >> 1 == 0) return false;
    } while (
        !latch_.word.compare_exchange_weak(seen, seen | waiting, std::memory_order_acq_rel, std::memory_order_acquire));
    hold.list(static_cast<line_waiter&>(node));
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    line_guard hold(latch_.waiters);
    hold.remove(node);
    if (hold.empty()) latch_.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

 private:
  latch_core& latch_;
};

// The last of the count is ours. False: nobody waits any more (line.hpp, M4).
bool open(latch_core& l) noexcept {
  tell_later later;
  line_guard hold(l.waiters);
  if ((l.word.load(std::memory_order_relaxed) & waiting) == 0) return false;
  later.let_all_pass(hold);
  l.word.exchange(0, std::memory_order_acq_rel);
  return true;
}

}  // namespace

void latch_count_down(latch_core& l, std::uint64_t by) noexcept {
  for (auto seen = l.word.load(std::memory_order_relaxed);;) {
    if (by > seen >> 1) {
      misused(look_around(), "counts a ramie::latch down below zero", "Make it with as many as will count down.");
    }
    if (by == seen >> 1 && (seen & waiting) != 0) {
      if (open(l)) return;
      seen = l.word.load(std::memory_order_relaxed);
    } else if (l.word.compare_exchange_weak(seen, seen - (by << 1), std::memory_order_release,
                                            std::memory_order_relaxed)) {
      return;
    }
  }
}

void latch_wait(latch_core& l) {
  whereabouts at = look_around();
  begin_operation(at);
  if (is_open(l)) return;
  latch_waitable on(l);
  line_waiter node;
  (void)fiber_wait(on, node, waits_for_latch);
}

bool latch_wait_until(latch_core& l, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (is_open(l)) return true;
  latch_waitable on(l);
  line_waiter node;
  return fiber_wait_until(on, node, waits_for_latch_until, deadline) != wait_result::timed_out;
}

void latch_destroyed(const latch_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::latch that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
