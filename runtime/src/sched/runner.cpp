// SPDX-License-Identifier: BSL-1.0
// The loop of a worker, and the stacks it leaves behind: runner.hpp.
#include "runner.hpp"

#include <ramie/platform/overflow.hpp>

#include "scheduler.hpp"

namespace ramie::runtime_internal {

using platform::stack_block;

void runner::thread_main(worker& w) noexcept {
  set_this_worker(&w);
  platform::anchor_this_thread(w);
  w.in_flight.set(&w.exceptions.get()->uncaught);
  platform::wake_on_time();
  const platform::alternate_stack for_overflow_reports;
  w.run.native.note = {};  // a slot may get another thread
  w.run.active.set(&w.run.native);
  w.run.leaving_pool.set(false);
  dispatcher::thread_started(w);
  loop(&w);
  dispatcher::thread_ended(w);
  for (stack_block* s = w.run.spares.get(); s != nullptr;) {
    stack_block* const next = s->next.get();
    w.sched.stacks.give_back(s);
    s = next;
  }
  w.run.spares.set(nullptr);
  w.run.spare_count.set(0);
  w.run.lendable.give_all(w.run.frames, w.sched.frames);
  w.run.frames.give_all(w.sched.frames);
  w.pool.thread_ended(w);
}

RAMIE_SWITCHES_IDENTITY void runner::loop_entry(platform::arrival landed) noexcept {
  // A reference, which can't be null: g++ 12 would warn about the worker of no anchor.
  auto* const w = &static_cast<worker&>(*static_cast<platform::thread_anchor*>(landed.data));
  stack_block& here = *w->run.active.get();
  platform::first_arrival(landed, here, arrive);
  loop(w);
  platform::fatal("a worker left its loop on a fiber's stack: corruption of the runtime.");
}

RAMIE_SWITCHES_IDENTITY void runner::loop(worker* w) noexcept {
  for (;;) {
    const plan next = next_plan(*w);
    switch (next.what) {
      case step::start_here: w = start_here(*w, *next.f); break;
      case step::switch_away: w = leave_loop(*w, *next.to, next.resume); break;
      case step::leave:
        if (w->run.active.get() == &w->run.native) return;
        w = leave_loop(*w, w->run.native, w->run.native.resume_point);
        break;
    }
  }
}

RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* runner::leave_loop(worker& w, stack_block& to,
                                                                 platform::context resume) noexcept {
  w.count.switches.add(1);
  stack_block& here = *w.run.active.get();
  w.run.left_stack.set(&here);
  return switch_to(w, to, resume, &here == &w.run.native ? departure::native : departure::spare, here.resume_point);
}

runner::plan runner::next_plan(worker& w) noexcept {
  for (;;) {
    fiber* f = w.run.handoff.get();
    if (f != nullptr) {
      w.run.handoff.set(nullptr);
    } else if (dispatcher::is_searching(w) || w.run.leaving_pool.get() || (f = dispatcher::next_local(w)) == nullptr) {
      // Nothing at hand; or the others count on this worker's search; or it must take nothing any more.
      if (w.run.leaving_pool.get() || (f = w.sched.dispatch.next(w)) == nullptr) {
        w.run.leaving_pool.set(true);
        return {step::leave, nullptr, nullptr, nullptr};
      }
    }
    platform::annotate::take_over(f);  // from its spawner, perhaps a fiber of this very worker
    if (stack_block* const own = f->stack.get()) return {step::switch_away, nullptr, own, f->resume_point};
    if (f->size_class == w.run.active.get()->size_class) return {step::start_here, f, nullptr, nullptr};
    if (stack_block* const of_its_class = take_stack(w, f->size_class)) {
      w.run.handoff.set(f);
      return {step::switch_away, nullptr, of_its_class, of_its_class->resume_point};
    }
    f->word.runnable_to_running();
    fail_to_start(w, *f);
  }
}

// Calls a fresh fiber on this very stack. It may leave and come back on another worker.
RAMIE_SWITCHES_IDENTITY worker* runner::start_here(worker& at_start, fiber& f) noexcept {
  const bool wanted = begin(at_start, f);
  platform::annotate::begin_fiber(&f);
  const fiber_end how = run_body(*f.record, wanted);
  worker* const w = this_worker();
  conclude(*w, f, how, nullptr);
  platform::annotate::end_fiber(&f, w->identity);
  w->run.frames.give(&f, w->sched.frames);
  return w;
}

worker* runner::preemption_point(worker& w, scheduling_policy::point where) noexcept {
  if (!w.policy->preempts(w, where)) return &w;
  return leave_and_return(w, departure::yield, *w.current.get(), nullptr);
}

worker* runner::preemption_point_after_wake(worker& w) noexcept {
  const fiber* const self = w.current.get();
  if (self == nullptr || self->word.load().state() != lifecycle::running) return &w;
  return preemption_point(w, scheduling_policy::point::after_wake);
}

void runner::push_committed(worker& w, fiber& f) noexcept {
  run_queues::push_woken(w, f);
}

void runner::check_float_controls(const worker& w, const fiber& f) noexcept {
  if (platform::float_controls() != w.float_controls.get()) {
    platform::fatal("fiber #%u waits with a changed floating-point environment. Restore rounding mode and masks first.",
                    f.number);
  }
}

void runner::ended_inside_a_scope(const fiber& f) noexcept {
  platform::fatal("%s ended inside a scope or shield it opened: they must be destroyed by the block that made them.",
                  describe(f).c_str());
}

// Its worker would be gone with all it has queued, and a fiber that waits for this one would never go on.
void thread_ended_in_fiber() noexcept {
  const fiber* const f = current_fiber();
  platform::fatal(
      "pthread_exit() or pthread_cancel() in %s: it would end a thread of the runtime, which runs other fibers, too. "
      "A fiber ends by returning from its function or throwing; others end it by cancelling its task or its nursery.",
      f != nullptr ? describe(*f).c_str() : "a fiber");
}

void runner::part_from_stack(const worker& w, fiber& f) noexcept {
  if (platform::debug_checks && f.stack.get() != w.run.active.get()) {
    platform::fatal("fiber #%u ended on a stack that is not its own (F1): corruption of the runtime.", f.number);
  }
  f.stack.set(nullptr);
}

// There is no stack for it, and this is the scheduler's own: nothing here may wait.
void runner::fail_to_start(worker& w, fiber& f) noexcept {
  w.count.discarded.add(1);
  w.current.set(nullptr);
  fiber_record& record = *f.record;
  cancel_scope& home = *f.home;
  ops_of(record).discard(record, discard_cause::no_stack);
  drop_extras(record);
  f.word.finish(lifecycle::cancelled);
  ops_of(record).retire(record, home, nullptr);
  w.run.frames.give(&f, w.sched.frames);
}

namespace {

// As the scheduler: nothing here may wait. The frame is there only to say who has failed.
RAMIE_NOINLINE void fail_without_frame(worker& w, fiber_record& task) noexcept {
  cancel_scope& home = task.task_home();
  fiber& stand_in = w.run.stand_in;
  stand_in.record = &task;
  stand_in.begin_life(home, w.sched.default_class, task.task_site());
  task.start_task(&stand_in);
  fiber* const caller = w.current.get();
  w.current.set(nullptr);
  w.count.discarded.add(1);
  if ((task.marks.load(std::memory_order_acquire) & fiber_record::targeted) != 0) ops_of(task).aimed_at(task, stand_in);
  ops_of(task).discard(task, discard_cause::no_memory);
  ops_of(task).retire(task, home, nullptr);
  w.current.set(caller);
}

}  // namespace

// The handshake with who cancels a task alone:
//
//       who starts it                           who cancels it
//       1. the record's place = the frame       1. marks |= targeted            (RMW)
//       2. light fence                          2. heavy fence
//       3. targeted? then aimed_at              3. is there a frame? then it is aimed at that
//
// At least one of them sees the other; aimed_at does nothing the second time.
fiber* runner::give_frame(worker& w, fiber_record& task) noexcept {
  platform::annotate::take_over(&task);
  const bool is_fork = task.is_unstarted_fork();
  if (is_fork) [[unlikely]] {  // until now it was no fiber, only something in a queue
    w.count.enqueued.add(-1);
    w.count.spawned.add(1);
  }
  fiber* const f = take_frame_if_any(w);
  if (f == nullptr) [[unlikely]] {
    fail_without_frame(w, task);
    return nullptr;
  }
  f->record = &task;
  f->begin_life(task.task_home(), w.sched.default_class, task.task_site());
  f->reaches_forks = is_fork;
  f->seen_epoch.set(0);
  f->word.init_to_runnable(f->low_ticket());
  task.start_task(f);       // 1
  platform::light_fence();  // 2
  if ((task.marks.load(std::memory_order_acquire) & fiber_record::targeted) != 0) [[unlikely]]
    ops_of(task).aimed_at(task, *f);  // 3
  platform::annotate::hand_over(f);
  return f;
}

// A fiber has ended that had a stack of its own, and another such goes on: they may be many, none of them in a cache.
// So while this one runs, the stack of the next is fetched, from its block downwards. Only a hint: a thief may have
// been faster, and the frame may be another fiber's by now.
inline void fetch_stack_of_next(worker& w) noexcept {
  if constexpr (prefetched_stack_bytes > 0) {
    const queued* const next = run_queues::peek_oldest(w);
    if (next == nullptr || is_task(next)) return;
    platform::annotate::take_over(next);  // as next_plan will
    const auto* const top = reinterpret_cast<const char*>(reinterpret_cast<const fiber*>(next)->stack.get());
    if (top == nullptr) return;
    for (std::size_t below = 0; below < prefetched_stack_bytes; below += 64) __builtin_prefetch(top - below, 1);
  }
}

stack_block* runner::take_stack(worker& w, std::uint8_t size_class) noexcept {
  return size_class == w.sched.default_class ? take_default_stack(w) : w.sched.stacks.take(size_class);
}

void runner::keep_spare(worker& w, stack_block& stack) noexcept {
  fetch_stack_of_next(w);
  platform::annotate::take_over(&stack.note);
  if (stack.size_class != w.sched.default_class) {
    w.sched.stacks.give_back(&stack);
    return;
  }
  if (w.run.spare_count.get() >= stack_cache_limit) return_spares(w);
  stack.next.set(w.run.spares.get());
  platform::annotate::hand_over(&stack.note);
  w.run.spares.set(&stack);
  w.run.spare_count.add(1);
}

// There are none: one to use and, if the pool sees fit, some to keep.
stack_block* runner::fetch_spares(worker& w) noexcept {
  std::uint32_t count = stack_batch;
  stack_block* const first = w.sched.stacks.take_batch(w.sched.default_class, count);
  if (first == nullptr) return nullptr;
  w.run.spares.set(first->next.get());
  w.run.spare_count.set(count - 1);
  return first;
}

void runner::return_spares(worker& w) noexcept {
  stack_block* const first = w.run.spares.get();
  stack_block* last = first;
  for (std::uint32_t i = 1; i < stack_batch; ++i) last = last->next.get();
  w.run.spares.set(last->next.get());
  w.run.spare_count.add(-stack_batch);
  w.sched.stacks.give_batch(*first, *last, stack_batch);
}

}  // namespace ramie::runtime_internal
