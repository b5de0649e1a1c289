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
    f.touched = true;
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

}  // namespace

// A child is about to run under a frame that is lent to it, above the owner of its home. False: not simply that; begin_slow
// decides.
RAMIE_FLATTEN bool runner::enter_task(worker& w, fiber_record& task, fiber& lent) noexcept {
  platform::annotate::take_over(&task);  // from its spawner, perhaps a fiber of this very worker
  lent.record = &task;
  lent.site.set(task.task_site());
  task.start_task(&lent);   // as in give_frame: 1
  platform::light_fence();  // 2
  const auto epoch = w.cancel_epoch->load(std::memory_order_acquire);
  w.current.set(&lent);
  if (lent.seen_epoch.get() != epoch || task.marks.load(std::memory_order_acquire) != 0) [[unlikely]]  // 3
    return false;
  w.count.started.add(1);
  platform::annotate::hand_over(&lent);
  platform::annotate::begin_fiber(&lent);
  return true;
}

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY fiber_end runner::run_task_slow(worker& w, fiber& lent) noexcept {
  const bool wanted = begin_slow(w, lent, w.cancel_epoch->load(std::memory_order_acquire));
  platform::annotate::hand_over(&lent);
  platform::annotate::begin_fiber(&lent);
  return run_code(*lent.record, wanted);
}

// Has the child ended as done, and left the frame as it was?
RAMIE_FLATTEN bool runner::left_as_it_was(const fiber& lent, const cancel_scope& of) noexcept {
  return !(lent.touched || lent.scope != &of);
}

// It was away, or cancelled, or has left something behind: it ends like any fiber, and keeps the frame. Returns where the
// joiner is then.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* runner::end_touched_task(fiber& lent, fiber_end how,
                                                                         platform::annotate::thread_note below) noexcept {
  drop_extras(*lent.record);  // the destructors may wait
  worker* const w = this_worker();
  counted_scope& of = static_cast<counted_scope&>(*lent.home);
  conclude(*w, lent, how, &of);
  platform::annotate::end_fiber(&lent, below);
  w->run.frames.give(&lent, w->sched.frames);
  w->current.set(of.owner());
  return w;
}

namespace {

// A task that has ended leaves something. Returns the frame.
RAMIE_NOINLINE fiber* retire_task(worker& w, fiber& lent) noexcept {
  counted_scope& of = static_cast<counted_scope&>(*lent.home);
  fiber_record& task = *lent.record;
  w.current.set(nullptr);
  ops_of(task).retire(task, of, &of);
  w.current.set(of.owner());
  return &lent;
}

struct popped {
  queued* entry;
  fiber* lent;  // as it was given
};
RAMIE_NOINLINE popped pop_for_join(worker& w, fiber* lent, bool has_lowered) noexcept {
  return {run_queues::pop_youngest_rest(w, has_lowered), lent};
}

}  // namespace

namespace {

// The joiner goes to the end of the ring. Not part of the loop, which would have no register left.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* yield_joiner(worker& w, fiber& joiner, fiber* next) noexcept {
  return runner::leave_and_return(w, departure::yield_locally, joiner, next);
}

// There is no child to call or to wait for. No poll is counted, so the join costs budget, like any operation that does
// not wait.
RAMIE_FLATTEN void spend_on_empty_join(worker_local& here) noexcept {
  here.budget.add(-1u);
}
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker_local& spend_on_empty_join_slow(worker_local& at_start) noexcept {
  worker_local* here = &at_start;
  if (here->budget.get() == 0) here = &yield_at_budget_end(*here);
  spend_on_empty_join(*here);
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
  return (reinterpret_cast<std::uintptr_t>(exceptions.caught) | exceptions.uncaught) != 0;
}

// J7: this stack is the joiner's, whichever worker the children come back on.
RAMIE_FLATTEN bool has_room(const worker& w) noexcept {
  return platform::stack_pool::may_call(runner::active_stack(w), platform::stack_pointer(), w.run.default_promise);
}

// A poll of a join's. Null: none is to be taken now, or there is none.
RAMIE_FLATTEN queued* poll_youngest(worker*& w, fiber*& lent) noexcept {
  const auto polls = w->count.polls.get() + 1;
  if (w->is_stalled_or_stopped() || dispatcher::is_due(*w, polls)) [[unlikely]]
    return nullptr;
  queued* entry = nullptr;
  bool has_lowered = false;
  if (!run_queues::pop_youngest_quick(*w, entry, has_lowered)) [[unlikely]] {
    const auto found = pop_for_join(*w, lent, has_lowered);
    lent = found.lent;
    if (found.entry == nullptr) return nullptr;
    entry = found.entry;
    w = this_worker();
  } else if (entry == nullptr) {
    __builtin_unreachable();
  }
  w->count.polls.add(1);
  return entry;
}

struct calls_made {
  worker* w;      // of the moment
  fiber* lent;    // null: the last child kept it
  queued* other;  // what was taken and is no plain child; or null
  bool any_left;
};

// Calls children from the young end of the ring, of which there are some. Nothing is kept in registers while one runs:
// what is needed then is found from the worker, whose current fiber is the child that has just ended.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY calls_made call_youngest(worker* w, fiber* lent) noexcept {
  for (;;) {
    queued* const entry = poll_youngest(w, lent);
    if (entry == nullptr) [[unlikely]]
      return {w, lent, nullptr, true};
    if (!is_task(entry) || !task_in(entry).is_task_of(*lent->home)) [[unlikely]]
      return {w, lent, entry, true};
    const auto below = platform::annotate::this_thread();
    fiber_end how = fiber_end::done;
    if (runner::enter_task(*w, task_in(entry), *lent)) [[likely]] {
      how = ops_of(task_in(entry)).run(task_in(entry));
    } else {
      how = runner::run_task_slow(*w, *lent);
    }
    w = this_worker();
    lent = w->current.get();
    counted_scope* const of = static_cast<counted_scope*>(lent->home);
    if (!runner::left_as_it_was(*lent, *of)) [[unlikely]] {
      w = runner::end_touched_task(*lent, how, below);
      return {w, nullptr, nullptr, true};
    }
    w->count.finished_in_place.add(1);
    fiber_record& task = *lent->record;
    if (task.ends_plainly()) [[likely]] {
      of->unused.put(task);
      w->current.set(of->owner());
      platform::annotate::end_fiber(lent, below);
      if (of->live.ended_in_place_of_many() || of->live.any_shared()) continue;
      return {w, lent, nullptr, false};
    }
    lent = retire_task(*w, *lent);
    w = this_worker();
    platform::annotate::end_fiber(lent, below);
    if (!static_cast<counted_scope*>(lent->home)->live.any()) return {w, lent, nullptr, false};
  }
}

// A frame for the plain children that a join calls, one after the other. Null: there is no memory.
RAMIE_FLATTEN fiber* lend_frame(worker& w, counted_scope& of, const fiber& joiner) noexcept {
  const auto clean_at = joiner.seen_epoch.get();  // what the joiner has found clean is clean for a child of its innermost
  fiber* const f = w.run.lendable.take(of, clean_at);
  return f != nullptr ? f : make_lendable(w, of, clean_at);
}

}  // namespace

RAMIE_SWITCHES_IDENTITY children_called call_children(counted_scope& of, worker_local& local) noexcept {
  auto* const w = static_cast<worker*>(&local);
  if (handles_exceptions(*w)) [[unlikely]]
    return call_above_exceptions(of, *w);
  if (!of.live.any()) [[unlikely]]
    return {&spend_on_empty_join_slow(*w), nullptr};
  if (!has_room(*w)) return {nullptr, nullptr};
  fiber* const lent = lend_frame(*w, of, *w->current.get());
  if (lent == nullptr) [[unlikely]]
    return {nullptr, nullptr};
  const auto called = call_youngest(w, lent);
  if (called.lent != nullptr) called.w->run.lendable.give(called.lent);
  const bool goes_on = called.other != nullptr || (called.any_left && of.live.any());
  return {goes_on ? nullptr : called.w, called.other};
}

namespace {

// The last children have ended, or there were none.
RAMIE_FLATTEN void leave_scope(const worker_local& here, counted_scope& of) {
  fiber& joiner = *of.owner();
  of.opener.add(counted_scope::joined);
  const bool quiet = here.cancel_epoch->load(std::memory_order_acquire) == joiner.seen_epoch.get();
  if (!quiet || !of.untouched()) [[unlikely]]
    return of.finish_join(of, join_so_far::all_ended, nullptr);
  of.close_untouched(joiner);
}

RAMIE_NOINLINE void join_nobody_slow(worker& w, counted_scope& of) {
  leave_scope(spend_on_empty_join_slow(w), of);
}
RAMIE_FLATTEN void join_nobody(worker& w, counted_scope& of) {
  if (w.budget.get() == 0) [[unlikely]]
    return join_nobody_slow(w, of);
  spend_on_empty_join(w);
  leave_scope(w, of);
}

// Some are left, or a child was away, or `other` was taken, which must go on although the last child may have ended
// elsewhere meanwhile. The worker's current fiber is the joiner.
RAMIE_NOINLINE void leave_off(worker& w, fiber* lent, queued* other) {
  counted_scope& of = static_cast<counted_scope&>(*w.current.get()->scope);
  if (lent != nullptr) w.run.lendable.give(lent);
  if (other != nullptr || of.live.any()) return of.finish_join(of, join_so_far::stuck, other);
  leave_scope(w, of);
}

}  // namespace

RAMIE_SWITCHES_IDENTITY void join_in_place(counted_scope& of) {
  worker_local& here = this_worker_local_or_none();
  fiber* const joiner = here.current.get();
  if (!of.is_open_to(joiner) || joiner->scope != &of) [[unlikely]]
    return of.finish_join(of, join_so_far::nothing, nullptr);
  worker& w = static_cast<worker&>(here);
  if (!of.live.any_of_owner()) [[unlikely]] {
    if (of.live.none()) return join_nobody(w, of);
    return of.finish_join(of, join_so_far::nothing, nullptr);
  }
  if (handles_exceptions(w) || !has_room(w)) [[unlikely]]
    return of.finish_join(of, join_so_far::nothing, nullptr);
  fiber* const lent = w.run.lendable.take(of, joiner->seen_epoch.get());
  if (lent == nullptr) [[unlikely]]
    return of.finish_join(of, join_so_far::nothing, nullptr);
  const auto called = call_youngest(&w, lent);
  if (called.any_left) [[unlikely]]
    return leave_off(*called.w, called.lent, called.other);
  counted_scope& left = static_cast<counted_scope&>(*called.lent->home);
  called.w->run.lendable.give(called.lent);
  leave_scope(*called.w, left);
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
