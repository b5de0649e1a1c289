// SPDX-License-Identifier: BSL-1.0
// Chaos mode: what happens instead where the scheduler is `chaotic`. Under explore the director decides; otherwise
// dice.
//
// W3 of worker.hpp holds here too. What is runnable is in the injection queue or in a ring, where every worker sees it,
// at all times. A fiber that is held back is in the injection queue like any other; whoever takes it out before its
// time puts it back and takes another, and runs it if there is no other.

#include "../sched/hot.hpp"
#include "director.hpp"

namespace ramie::detail {

namespace {

// One in so many.
constexpr std::uint32_t yield_odds = 4;
constexpr std::uint32_t wake_yield_odds = 8;
constexpr std::uint32_t ring_odds = 2;  // queued in the worker's own ring, where it can be stolen
constexpr std::uint32_t steal_odds = 4;
constexpr std::uint32_t delay_odds = 8;
constexpr std::uint32_t scaling_odds = 256;

constexpr std::uint32_t longest_delay = 16;   // polls
constexpr std::uint32_t longest_budget = 16;  // operations

}  // namespace

void scheduler::put_in_chaos(worker& w, fiber& f) noexcept {
  const bool in_ring = directed == nullptr && unruly.steals && f.held_back.get() == 0 && w.whims.below(ring_odds) == 0;
  if (in_ring) {
    w.ring.push(&f, w.overflow);
  } else {
    injection.put(&f);
  }
  signal(&w);
}

void scheduler::put_woken_in_chaos(worker& w, fiber& f) noexcept {
  if (directed == nullptr && unruly.delays && w.whims.below(delay_odds) == 0) {
    f.held_back.set(static_cast<std::uint8_t>(1 + w.whims.below(longest_delay)));
    w.mischief.held_back.add(1);
  }
  put_in_chaos(w, f);
}

worker* scheduler::detour(worker& w) noexcept {
  const bool go = directed != nullptr ? directed->preempts(w) : unruly.yields && w.whims.below(yield_odds) == 0;
  if (!go) return &w;
  w.mischief.yields.add(1);
  return leave_and_return(w, departure::yield, *w.current.get(), nullptr);
}

// Wakes come from the scheduler too, and from fibers that are about to park.
worker* scheduler::detour_after_wake(worker& w) noexcept {
  fiber* const self = w.current.get();
  if (self == nullptr || self->word.load().state() != lifecycle::running) return &w;
  const bool go = directed != nullptr ? directed->preempts_after_wake(w)
                                      : unruly.wake_yields && w.whims.below(wake_yield_odds) == 0;
  if (!go) return &w;
  w.mischief.wake_yields.add(1);
  return leave_and_return(w, departure::yield, *self, nullptr);
}

std::uint32_t scheduler::budget_in_chaos(worker& w) noexcept {
  if (directed != nullptr) return 1;
  return unruly.yields ? 1 + w.whims.below(longest_budget) : budget_per_tick;
}

// Here it is the budget that is random.
worker* scheduler::end_budget_in_chaos(worker& at_end) noexcept {
  worker* w = &at_end;
  if (directed != nullptr) {
    w = detour(*w);
  } else {
    if (unruly.yields) w->mischief.yields.add(1);
    w = leave_and_return(*w, departure::yield, *w->current.get(), nullptr);
  }
  w->budget.set(budget_in_chaos(*w));
  return w;
}

void scheduler::yields_in_chaos(fiber& f) noexcept {
  if (directed != nullptr) directed->yields(f);
}

fiber* scheduler::take_young_in_chaos(worker& w) noexcept {
  if (directed != nullptr) return directed->next(w);
  fiber* f = nullptr;
  if (injection.take(&f, 1) == 0) return nullptr;
  f->held_back.set(0);
  f->last_worker.set(static_cast<std::uint16_t>(w.index + 1));
  w.count.polls.add(1);
  return f;
}

// Who steals here need not be searching: nobody relies on it to look after the rest, which was in no ring for a moment.
fiber* scheduler::steal_in_chaos(worker& w) noexcept {
  fiber* const f = steal_somewhere(w);
  if (f != nullptr && !w.ring.empty()) signal(&w);
  return f;
}

// Something to run, from anywhere.
fiber* scheduler::pick_in_chaos(worker& w) noexcept {
  const bool forced = unruly.steals && w.ring.empty() && !injection.empty() && w.whims.below(steal_odds) == 0;
  if (forced) {
    if (fiber* const f = steal_in_chaos(w)) {
      w.mischief.steals.add(1);
      return f;
    }
  }
  if (injection.empty() && w.ring.empty()) return steal_in_chaos(w);
  const bool ring_first = w.whims.below(2) == 0;
  fiber* f = ring_first ? w.ring.pop_old() : nullptr;
  if (f == nullptr && injection.take(&f, 1) == 0) f = nullptr;
  if (f == nullptr) f = w.ring.pop_old();
  if (f == nullptr) f = steal_in_chaos(w);
  return f;
}

// A fiber that is held back, and one that comes back to the worker it left, goes round again, as long as somebody else
// may take its place. Not for ever: the others may all be busy, waiting for this very fiber.
fiber* scheduler::next_in_chaos(worker& w) noexcept {
  if (directed != nullptr) return directed->next(w);
  const auto& clock = platform::steady_clock::instance();
  const auto give_up = clock.now() + chaos_patience;
  const auto me = static_cast<std::uint16_t>(w.index + 1);
  for (;;) {
    fiber* const f = pick_in_chaos(w);
    if (f == nullptr) return nullptr;
    platform::annotate::take_over(f);  // from a fiber of this very worker, perhaps
    const bool too_early = f->held_back.get() != 0 && (!injection.empty() || !w.ring.empty());
    const bool moved = f->last_worker.get() != me;
    const bool stays = !moved && unruly.migrations && live.load(std::memory_order_relaxed) > 1 && clock.now() < give_up;
    if (too_early) {
      f->held_back.add(static_cast<std::uint8_t>(-1));
    } else if (!stays) {
      if (moved && f->last_worker.get() != 0) w.count.migrations.add(1);
      f->last_worker.set(me);
      f->held_back.set(0);
      w.count.polls.add(1);
      return f;
    }
    injection.put(f);
    signal(&w);
    if (!too_early) platform::yield_thread();
  }
}

bool scheduler::rescale_in_chaos(worker& w) noexcept {
  if (!elastic || !unruly.scaling || directed != nullptr) return false;
  const auto dice = w.whims.below(scaling_odds);
  if (dice == 0 && promote_one()) w.mischief.promoted.add(1);
  if (dice != 1 || !may_retire(w)) return false;
  w.mischief.retired.add(1);
  drain(w);
  return true;
}

}  // namespace ramie::detail
