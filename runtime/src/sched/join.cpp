// SPDX-License-Identifier: BSL-1.0
// Joining runs work. The conditions, and what holds while a child runs in place: join.hpp.
#include <ramie/runtime/join.hpp>

#include <ramie/runtime/budget.hpp>

#include "runner.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

// J5, J6, J7.
bool fits(const fiber& f, const cancel_scope& of, int largest) noexcept {
  if (f.stack.get() != nullptr || f.size_class > largest) return false;
  return f.home == &of || f.home->inside(of);
}

}  // namespace

// The joiner is inside this call meanwhile. The child may leave and come back on another worker.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* runner::start_in_place(worker& at_start, fiber& f, fiber& joiner,
                                                                     const cancel_scope& of) noexcept {
  const auto below = platform::annotate::this_thread();
  platform::annotate::hand_over(&f);  // what the joiner has done happens before the child, truly
  const bool wanted = begin(at_start, f);
  platform::annotate::begin_fiber(&f);
  const fiber_end how = run_body(f, wanted);
  worker* const w = this_worker();
  conclude(*w, *platform::launder_address(&f), how, &of);
  platform::annotate::end_fiber(&f, below);
  w->run.frames.give(&f, w->sched.frames);
  w->current.set(&joiner);
  return w;
}

namespace {

// The joiner goes to the end of the ring. Not part of the loop, which would have no register left.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* yield_joiner(worker& w, fiber& joiner, fiber* next) noexcept {
  return runner::leave_and_return(w, departure::yield_locally, joiner, next);
}

// There is no child to call or to wait for. No poll is counted, so the join costs budget, like any operation that does
// not wait.
RAMIE_FLATTEN worker_local& spend_on_empty_join(worker& w) noexcept {
  worker_local* here = &w;
  if (here->budget.get() == 0) [[unlikely]]
    here = &yield_at_budget_end(*here);
  here->budget.add(-1u);
  return *here;
}

// The joiner unwinds, or is in a catch block. What it calls must not see that.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY in_place_result run_above_exceptions(counted_scope& of) noexcept {
  worker* const w = this_worker();
  const auto put_aside = *w->exceptions.get();
  *w->exceptions.get() = {nullptr, 0};
  const auto result = run_descendants(of);
  *this_worker()->exceptions.get() = put_aside;
  return result;
}

}  // namespace

RAMIE_SWITCHES_IDENTITY in_place_result run_descendants(counted_scope& of) noexcept {
  worker* w = this_worker();
  const auto& exceptions = *w->exceptions.get();
  const bool unwinding = exceptions.caught != nullptr || exceptions.uncaught != 0;
  if (unwinding) [[unlikely]]
    return run_above_exceptions(of);
  if (!of.live.any()) return {&spend_on_empty_join(*w), nullptr};
  fiber& joiner = *w->current.get();
  // J7. The same for all that is called from here: whichever worker they come back on, this stack is the joiner's.
  const int largest = platform::stack_pool::largest_call(runner::active_stack(*w), platform::stack_pointer());
  // Laundered: else the compiler keeps the addresses of fields in registers, or rather in memory, for the next round.
  do {
    if (w->is_stalled_or_stopped()) [[unlikely]] {
      // Marked stalled, or told to stop: its loop attends to that.
      w = yield_joiner(*w, joiner, nullptr);
      continue;
    }
    const auto polls = w->count.polls.get() + 1;
    bool others_turn = false;
    fiber* f = dispatcher::is_due(*w, polls) ? nullptr : run_queues::pop_youngest(*w);
    if (f != nullptr) [[likely]] {
      w->count.polls.set(polls);
    } else {
      const auto other = w->sched.dispatch.next_for_join(*w);
      if (other.f == nullptr) return {nullptr, nullptr};
      f = other.f;
      others_turn = other.others_turn;
    }
    platform::annotate::take_over(f);  // from its spawner, perhaps a fiber of this very worker
    if (fits(*f, of, largest)) [[likely]] {
      w = runner::start_in_place(*w, *f, joiner, of);
      continue;
    }
    platform::annotate::hand_over(f);
    if (!others_turn) return {nullptr, f};
    w = yield_joiner(*w, joiner, f);
  } while (platform::launder_address(&of)->live.any());
  return {w, nullptr};
}

void give_back(fiber& f) noexcept {
  worker* const w = this_worker();
  w->count.enqueued.add(1);  // it was counted as polled
  run_queues::push_back(*w, f);
}

}  // namespace ramie::runtime_internal
