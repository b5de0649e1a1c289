// SPDX-License-Identifier: BSL-1.0
// Joining runs work. The conditions, and what holds while a child runs in place: join.hpp.
#include <ramie/runtime/join.hpp>

#include <algorithm>

#include <ramie/runtime/budget.hpp>

#include "start.hpp"

namespace ramie::detail {

namespace {

// J5, J6, J7.
bool fits(const fiber& f, const cancel_scope& of, int largest) noexcept {
  if (f.stack.get() != nullptr || f.size_class > largest) return false;
  return f.home == &of || f.home->inside(of);
}

}  // namespace

// The ring is empty, or there is chaos.
fiber* scheduler::take_young_elsewhere(worker& w) noexcept {
  return chaotic ? take_young_in_chaos(w) : take_from_injection(w);
}

// The joiner is inside this call meanwhile. The child may leave and come back on another worker.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* scheduler::start_in_place(worker& at_start, fiber& f, fiber& joiner,
                                                                        const cancel_scope& of) noexcept {
  const auto below = platform::annotate::this_thread();
  platform::annotate::hand_over(&f);  // what the joiner has done happens before the child, truly
  const bool wanted = begin(at_start, f);
  platform::annotate::begin_fiber(&f);
  const fiber_end how = run_body(f, wanted);
  worker* const w = this_worker();
  const bool last = conclude(*w, *platform::launder_address(&f), how, &of);
  platform::annotate::end_fiber(&f, below);
  if (last) [[likely]]
    w->frames.give(&f, w->sched.frames);
  w->current.set(&joiner);
  return w;
}

// A tick has ended, or it is the injection queue's turn. Who should run now, or null: nobody in particular.
fiber* scheduler::whose_turn_in_join(worker& w) noexcept {
  if (directed != nullptr) return nullptr;                                 // take_young asks it each time
  if (fiber* const f = poll_is_due(w, w.count.polls.get() + 1)) return f;  // counted as a poll there
  fiber* f = w.newest.take();
  if (f == nullptr) {
    const fiber* const oldest = w.ring.peek_old();
    const auto now = w.tempo.tick_started();
    if (oldest == nullptr) return nullptr;
    if (oldest->stack.get() == nullptr) {
      if (now < w.next_way_given.get()) return nullptr;
      w.next_way_given.set(now + w.join_patience.get());
      w.join_patience.set(std::min(2 * w.join_patience.get(), longest_join_patience));
    }
    f = w.ring.pop_old();
  }
  if (f != nullptr) w.count.polls.add(1);
  return f;
}

// What a join takes when it is not simply the youngest of the ring, and whether others are to go first.
scheduler::taken_in_join scheduler::take_otherwise_in_join(worker& w) noexcept {
  if (w.tempo.due(w.count.polls.get() + 1)) {
    if (fiber* const f = whose_turn_in_join(w)) return {f, true};
  }
  return {take_young(w), false};
}

namespace {

// The joiner goes to the end of the ring. Not part of the loop, which would have no register left.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* go_to_the_end(worker& w, fiber& joiner, fiber* next) noexcept {
  return scheduler::leave_and_return(w, departure::step_aside, joiner, next);
}

// Nobody to call and nobody to wait for: no poll is counted, so it is an operation like any other that does not wait.
RAMIE_FLATTEN worker_desk& spend_on_empty_join(worker& w) noexcept {
  worker_desk* here = &w;
  if (here->budget.get() == 0) [[unlikely]]
    here = &step_aside(*here);
  here->budget.add(-1u);
  return *here;
}

// The joiner unwinds, or is in a catch block. What it calls must not see that.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY in_place_result run_above_exceptions(counted_scope& of) noexcept {
  worker* const w = this_worker();
  const auto put_aside = *w->exceptions;
  *w->exceptions = {nullptr, 0};
  const auto result = run_descendants(of);
  *this_worker()->exceptions = put_aside;
  return result;
}

}  // namespace

RAMIE_SWITCHES_IDENTITY in_place_result run_descendants(counted_scope& of) noexcept {
  worker* w = this_worker();
  const bool unwinding = w->exceptions->caught != nullptr || w->exceptions->uncaught != 0;
  if (unwinding) [[unlikely]]
    return run_above_exceptions(of);
  if (!of.live.any()) return {&spend_on_empty_join(*w), nullptr};
  fiber& joiner = *w->current.get();
  // J7. The same for all that is called from here: whichever worker they come back on, this stack is the joiner's.
  const int largest = platform::stack_pool::largest_call(*w->active.get(), platform::stack_pointer());
  // Laundered: else the compiler keeps the addresses of fields in registers, or rather in memory, for the next round.
  do {
    if ((w->attention.load(std::memory_order_relaxed) & ~worker::chaos) != 0) [[unlikely]] {
      // Marked stalled, or told to stop: its loop attends to that.
      w = go_to_the_end(*w, joiner, nullptr);
      continue;
    }
    const auto polls = w->count.polls.get() + 1;
    bool turn_of_others = false;
    fiber* f = w->tempo.due(polls) ? nullptr : w->ring.pop_young();
    if (f != nullptr) [[likely]] {
      w->count.polls.set(polls);
    } else {
      const auto other = w->sched.take_otherwise_in_join(*w);
      if (other.f == nullptr) return {nullptr, nullptr};
      f = other.f;
      turn_of_others = other.turn_of_others;
    }
    platform::annotate::take_over(f);  // from its spawner, perhaps a fiber of this very worker
    if (fits(*f, of, largest)) [[likely]] {
      w = scheduler::start_in_place(*w, *f, joiner, of);
      continue;
    }
    platform::annotate::hand_over(f);
    if (!turn_of_others) return {nullptr, f};
    w = go_to_the_end(*w, joiner, f);
  } while (platform::launder_address(&of)->live.any());
  return {w, nullptr};
}

void give_back(fiber& f) noexcept {
  worker* const w = this_worker();
  w->count.enqueued.add(1);  // it was counted as polled
  w->sched.push_in_turn(*w, f);
}

}  // namespace ramie::detail
