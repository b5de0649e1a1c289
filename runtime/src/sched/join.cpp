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
  const fiber_end how = run_body(*f.record, wanted);
  worker* const w = this_worker();
  conclude(*w, *platform::launder_address(&f), how, &of);
  platform::annotate::end_fiber(&f, below);
  w->run.frames.give(&f, w->sched.frames);
  w->current.set(&joiner);
  return w;
}

// The child was away, or cancelled, or has left something behind: it ends like any fiber, and keeps the frame.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* runner::conclude_called(fiber& f, fiber_end how,
                                                                       counted_scope& of) noexcept {
  drop_extras(*f.record);  // the destructors may wait
  worker* const w = this_worker();
  conclude(*w, f, how, &of);
  w->run.frames.give(&f, w->sched.frames);
  w->current.set(of.owner());
  return w;
}

namespace {

// From here on the task has a frame. False: it was cancelled before it started. Mostly nothing was, and nobody comes
// here: the epoch is the one at which the joiner has found `of` clean, and the task is not targeted.
RAMIE_NOINLINE bool begin_slow(worker& w, fiber& f, std::uint64_t epoch) noexcept {
  fiber_record& task = *f.record;
  if ((task.marks.load(std::memory_order_relaxed) & fiber_record::targeted) != 0) {
    f.touched = true;
    ops_of(task).aimed_at(task, f);
  }
  if (cancel_scope::effective(f, epoch) != nullptr) {
    w.count.discarded.add(1);
    return false;
  }
  f.seen_epoch.set(epoch);
  w.count.started.add(1);
  return true;
}

// Null: there is no memory.
RAMIE_NOINLINE fiber* make_lendable(worker& w, counted_scope& of, std::uint64_t seen_epoch) noexcept {
  fiber* const f = runner::take_frame_if_any(w);
  if (f == nullptr) return nullptr;
  f->begin_life(of, w.sched.default_class, {});
  f->seen_epoch.set(seen_epoch);
  f->word.init_to_running(f->low_ticket());
  return f;
}

// A frame for the plain children that a join calls, one after the other. Null: there is no memory.
RAMIE_FLATTEN fiber* lend_frame(worker& w, counted_scope& of, const fiber& joiner) noexcept {
  const auto clean_at = joiner.seen_epoch.get();  // what the joiner has found clean is clean for a child of its innermost
  fiber* const f = w.run.lendable.take(of, clean_at);
  return f != nullptr ? f : make_lendable(w, of, clean_at);
}

}  // namespace

// The child has a frame that was lent to it, and may leave and come back on another worker. What the caller needs again is
// found from there, so that nothing is kept in registers over the call. True: the child has ended and left the frame as
// it was.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY bool runner::call_task(worker*& w, fiber_record& called, fiber*& frame,
                                                             counted_scope*& scope) noexcept {
  const auto below = platform::annotate::this_thread();
  platform::annotate::take_over(&called);  // from its spawner, perhaps a fiber of this very worker
  fiber& starting = *frame;
  starting.record = &called;
  starting.site.set(called.task_site());
  called.start_task(&starting);  // as in give_frame: 1
  platform::light_fence();       // 2
  const auto epoch = w->cancel_epoch->load(std::memory_order_acquire);
  w->current.set(&starting);
  bool wanted = true;
  if (starting.seen_epoch.get() != epoch || called.marks.load(std::memory_order_acquire) != 0) [[unlikely]] {  // 3
    wanted = begin_slow(*w, starting, epoch);
  } else {
    w->count.started.add(1);
  }
  platform::annotate::hand_over(&starting);
  platform::annotate::begin_fiber(&starting);
  const fiber_end how = run_code(called, wanted);
  w = this_worker();
  frame = w->current.get();
  fiber& lent = *frame;
  fiber_record& task = *lent.record;
  counted_scope& of = static_cast<counted_scope&>(*lent.home);
  scope = &of;
  if (lent.touched || lent.scope != &of || how != fiber_end::done) [[unlikely]] {
    w = conclude_called(lent, how, of);
    platform::annotate::end_fiber(&lent, below);
    return false;
  }
  w->count.finished_in_place.add(1);
  if (task.ends_plainly()) [[likely]] {
    of.unused.put(task);
    of.live.ended_in_place();
  } else {
    w->current.set(nullptr);
    ops_of(task).retire(task, of, &of);
  }
  platform::annotate::end_fiber(&lent, below);
  w->current.set(of.owner());
  return true;
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

// The joiner is unwinding, or in a catch block. What it calls must not see that.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY children_called call_above_exceptions(counted_scope& of, worker& w) noexcept {
  const auto put_aside = *w.exceptions.get();
  *w.exceptions.get() = {nullptr, 0};
  const auto called = call_children(of, w);
  *this_worker()->exceptions.get() = put_aside;
  return called;
}

}  // namespace

namespace {

RAMIE_FLATTEN bool handles_exceptions(const worker& w) noexcept {
  const auto& exceptions = *w.exceptions.get();
  return exceptions.caught != nullptr || exceptions.uncaught != 0;
}

// Children of `of` from the young end of the ring: there are some, and the caller handles no exception.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY children_called call_youngest(counted_scope* of, worker* w,
                                                                    const fiber& joiner) noexcept {
  // J7: this stack is the joiner's, whichever worker the children come back on.
  if (!platform::stack_pool::may_call(runner::active_stack(*w), platform::stack_pointer(), w->run.default_promise))
    return {nullptr, nullptr};
  fiber* lent = lend_frame(*w, *of, joiner);
  if (lent == nullptr) [[unlikely]]
    return {nullptr, nullptr};
  for (;;) {
    const auto polls = w->count.polls.get() + 1;
    if (w->is_stalled_or_stopped() || dispatcher::is_due(*w, polls)) [[unlikely]]
      break;
    queued* const entry = run_queues::pop_youngest_entry(*w);
    if (entry == nullptr) [[unlikely]]
      break;
    w->count.polls.set(polls);
    if (!is_task(entry) || !task_in(entry).is_task_of(*of)) [[unlikely]] {
      w->run.lendable.give(lent);
      return {nullptr, entry};
    }
    if (!runner::call_task(w, task_in(entry), lent, of)) [[unlikely]]
      return {of->live.any() ? nullptr : w, nullptr};
    if (of->live.any()) continue;
    w->run.lendable.give(lent);
    return {w, nullptr};
  }
  w->run.lendable.give(lent);
  return {nullptr, nullptr};
}

}  // namespace

RAMIE_SWITCHES_IDENTITY children_called call_children(counted_scope& of, worker_local& local) noexcept {
  auto* const w = static_cast<worker*>(&local);
  if (handles_exceptions(*w)) [[unlikely]]
    return call_above_exceptions(of, *w);
  if (!of.live.any()) [[unlikely]]
    return {&spend_on_empty_join(*w), nullptr};
  return call_youngest(&of, w, *w->current.get());
}

RAMIE_SWITCHES_IDENTITY void join_in_place(counted_scope& scope) {
  worker_local& at_start = this_worker_local_or_none();
  fiber* const caller = at_start.current.get();
  if (!scope.is_open_to(caller) || caller->scope != &scope) [[unlikely]]
    return scope.finish_join(scope, join_so_far::nothing, nullptr);
  worker* w = static_cast<worker*>(&at_start);
  counted_scope* of = &scope;
  if (of->live.any()) [[likely]] {
    if (handles_exceptions(*w)) [[unlikely]]
      return of->finish_join(*of, join_so_far::nothing, nullptr);
    const auto called = call_youngest(of, w, *caller);
    of = platform::launder_address(of);
    if (called.local == nullptr) [[unlikely]]
      return of->finish_join(*of, join_so_far::stuck, called.other);
    w = static_cast<worker*>(called.local);
  } else {
    w = static_cast<worker*>(&spend_on_empty_join(*w));
  }
  fiber& joiner = *of->owner();
  of->opener.add(counted_scope::joined);
  const bool quiet = w->cancel_epoch->load(std::memory_order_acquire) == joiner.seen_epoch.get();
  if (!quiet || !of->untouched() || (of->notes.load(std::memory_order_relaxed) & counted_scope::needs_more) != 0)
      [[unlikely]]
    return of->finish_join(*of, join_so_far::all_ended, nullptr);
  of->close_untouched(joiner);
}

namespace {

struct after_one {
  worker* w;     // of the moment; null: the join must wait
  fiber* unfit;  // with this, or null
};

// What a join does that is not simply to call its youngest children. `entry` was taken from the ring, or is null.
RAMIE_SWITCHES_IDENTITY after_one run_other(worker& w, fiber& joiner, counted_scope& of, queued* entry) noexcept {
  // Marked stalled, or told to stop: its loop attends to that.
  if (entry == nullptr && w.is_stalled_or_stopped()) return {yield_joiner(w, joiner, nullptr), nullptr};
  dispatcher::for_join next{nullptr, false};
  if (entry == nullptr) {
    next = w.sched.dispatch.next_for_join(w);
    if (next.f == nullptr) return {nullptr, nullptr};
  } else {
    next.f = run_queues::fiber_of(w, entry);
    if (next.f == nullptr) return {&w, nullptr};  // there was no memory for its frame: it has failed
  }
  fiber& f = *next.f;
  platform::annotate::take_over(&f);  // from its spawner, perhaps a fiber of this very worker
  // J7.
  const int largest = platform::stack_pool::largest_call(runner::active_stack(w), platform::stack_pointer());
  if (fits(f, of, largest)) [[likely]]
    return {runner::start_in_place(w, f, joiner, of), nullptr};
  platform::annotate::hand_over(&f);
  if (!next.others_turn) return {nullptr, &f};
  return {yield_joiner(w, joiner, &f), nullptr};
}

}  // namespace

RAMIE_SWITCHES_IDENTITY in_place_result run_others(counted_scope& of, queued* other) noexcept {
  worker* const w = this_worker();
  fiber& joiner = *w->current.get();
  const auto put_aside = *w->exceptions.get();  // as in call_above_exceptions
  *w->exceptions.get() = {nullptr, 0};
  in_place_result result{nullptr, nullptr};
  for (children_called called{nullptr, other}; called.local == nullptr; result.local = called.local) {
    const auto after = run_other(*this_worker(), joiner, of, called.other);
    result = {after.w, after.unfit};
    if (after.w == nullptr || !of.live.any()) break;
    called = call_children(of, *after.w);
  }
  *this_worker()->exceptions.get() = put_aside;
  return result;
}

void give_back(fiber& f) noexcept {
  worker* const w = this_worker();
  w->count.enqueued.add(1);  // it was counted as polled
  run_queues::push_back(*w, f);
}

}  // namespace ramie::runtime_internal
