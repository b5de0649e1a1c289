// SPDX-License-Identifier: BSL-1.0
// How fibers run: how a worker leaves one stack for another, and how a fiber begins and ends. See worker.hpp for the
// invariants. Static functions of a worker: the part has no state but worker::run.
//
// Functions marked RAMIE_SWITCHES_IDENTITY may be left on another thread, or as another fiber, than they
// were entered on; everything they call is not. Those that return a worker return the one that is current then.
//
// What every switch runs through is inline: a switch costs one mispredicted return for each call between the user's
// code and the jump. The loop and the stacks it keeps are in runner.cpp.
#pragma once

#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/spawn.hpp>

#include "../wait/wake.hpp"
#include "dispatcher.hpp"

namespace ramie::runtime_internal {

class runner {
 public:
  // The calling fiber leaves its stack, for `next`'s own if that has one, else for a loop, which runs `next` first
  // (null: whatever comes next). Returns when it is given its stack back: RUNNING again.
  static worker* leave_and_return(worker& w, departure as, fiber& self, fiber* next) noexcept;
  // Like leave_and_return, but parks the fiber, which is PARKING. `accounted`: the cancel epoch when it last checked
  // its scopes.
  static worker* park_and_return(worker& w, fiber& self, std::uint64_t accounted, fiber* next) noexcept;
  // Calls an unstarted fiber above `joiner`, on the same stack (join.hpp).
  [[nodiscard]] static worker* start_in_place(worker& w, fiber& f, fiber& joiner, const cancel_scope& of) noexcept;

  // The steps of calling a child under a frame that is lent to it: join.cpp.
  [[nodiscard]] static bool enter_task(worker& w, fiber_record& task, fiber& lent) noexcept;
  [[nodiscard]] static fiber_end run_task_slow(worker& w, fiber& lent) noexcept;
  [[nodiscard]] static bool left_as_it_was(const fiber& lent, const cancel_scope& of) noexcept;
  static worker* end_touched_task(fiber& lent, fiber_end how, platform::annotate::thread_note below) noexcept;

  // The worker must have a policy: the calling fiber yields if the policy says so.
  static worker* preemption_point(worker& w, scheduling_policy::point where) noexcept;
  // Like preemption_point, but does nothing if the caller is scheduler code or a fiber about to park.
  static worker* preemption_point_after_wake(worker& w) noexcept;

  // A frame for a new fiber. Throws std::bad_alloc.
  [[nodiscard]] static fiber* take_frame(worker& w);
  // Like take_frame, but null if there is no memory.
  [[nodiscard]] static fiber* take_frame_if_any(worker& w) noexcept {
    fiber* const f = w.run.frames.take_if_any();
    return f != nullptr ? f : refill_frames(w);
  }
  // A task that was taken from a queue becomes a RUNNABLE fiber. Null: there is no memory for its frame; the task has
  // failed and is gone.
  [[nodiscard]] static fiber* give_frame(worker& w, fiber_record& task) noexcept;
  // The stack that the worker's thread runs on. Null: it has not begun.
  [[nodiscard]] static const platform::stack_block& active_stack(const worker& w) noexcept {
    return *w.run.active.get();
  }
  [[nodiscard]] static const platform::stack_block* active_stack_or_null(const worker& w) noexcept {
    return w.run.active.get();
  }

  static void thread_main(worker& w) noexcept;
  // What a fresh pooled stack runs.
  static void loop_entry(platform::arrival landed) noexcept;

 private:
  // Leaving and arriving ---------------------------------------------------------------------------------
  static worker* depart(worker& w, departure as, fiber& leaver, fiber* next) noexcept;
  static worker* switch_to(worker& w, platform::stack_block& to, platform::context resume, departure as,
                           platform::context& left_at) noexcept;
  static void arrive(platform::thread_anchor* here) noexcept;
  static void commit_park(worker& w, fiber& f) noexcept;

  // The loop ---------------------------------------------------------------------------------------------
  enum class step : std::uint8_t { start_here, switch_away, leave };
  struct plan {
    step what;
    fiber* f;                   // to start here; or null
    platform::stack_block* to;  // to switch to, and
    platform::context resume;   // where it goes on
  };
  [[nodiscard]] static plan next_plan(worker& w) noexcept;
  static void loop(worker* w) noexcept;
  static worker* leave_loop(worker& w, platform::stack_block& to, platform::context resume) noexcept;

  // Beginning and ending ---------------------------------------------------------------------------------
  [[nodiscard]] static worker* start_here(worker& w, fiber& f) noexcept;
  [[nodiscard]] static bool begin(worker& w, fiber& f) noexcept;
  [[nodiscard]] static fiber_end run_code(fiber_record& record, bool wanted) noexcept;
  [[nodiscard]] static fiber_end run_body(fiber_record& record, bool wanted) noexcept;
  static void conclude(worker& w, fiber& f, fiber_end how, const cancel_scope* joiner) noexcept;
  static void fail_to_start(worker& w, fiber& f) noexcept;

  [[nodiscard]] static fiber* refill_frames(worker& w) noexcept;

  // Stacks of the worker ---------------------------------------------------------------------------------
  [[nodiscard]] static platform::stack_block* take_default_stack(worker& w) noexcept;
  [[nodiscard]] static platform::stack_block* take_stack(worker& w, std::uint8_t size_class) noexcept;
  static void keep_spare(worker& w, platform::stack_block& stack) noexcept;
  [[nodiscard]] static platform::stack_block* fetch_spares(worker& w) noexcept;
  static void return_spares(worker& w) noexcept;

  // Cold ends of hot paths -------------------------------------------------------------------------------
  static void check_float_controls(const worker& w, const fiber& f) noexcept;
  [[noreturn]] static void ended_inside_a_scope(const fiber& f) noexcept;
  // Woken while it was parking: the committer enqueues it.
  static void push_committed(worker& w, fiber& f) noexcept;
  // The fiber has been away from the stack it was started on. A frame in the pool has none.
  static void part_from_stack(const worker& w, fiber& f) noexcept;
};

inline platform::stack_block* runner::take_default_stack(worker& w) noexcept {
  platform::stack_block* const spare = w.run.spares.get();
  if (spare == nullptr) return fetch_spares(w);
  platform::annotate::take_over(&spare->note);
  w.run.spares.set(spare->next.get());
  w.run.spare_count.add(-1u);
  return spare;
}

RAMIE_FLATTEN void runner::commit_park(worker& w, fiber& f) noexcept {
  platform::annotate::take_over(&f);  // from the fiber to the thread that speaks for it now
  // After the commit the frame may be anybody's: read first what is needed later.
  const auto accounted = w.run.left_epoch.get();
  const auto ticket = f.wait_ticket.load(std::memory_order_relaxed);
  w.count.parks.add(1);
  if (platform::debug_checks && f.stack.get() == w.run.active.get()) {
    platform::fatal("the park of fiber #%u is committed on its own stack: another worker could resume a stack in use.",
                    f.number);
  }
  switch (f.word.commit_park()) {
    case commit_result::parked:
      // Parker's step 3 of cancel_scope.hpp.
      if (w.cancel_epoch->load(std::memory_order_seq_cst) != accounted) [[unlikely]]
        fiber_wake(f, ticket);
      break;
    case commit_result::must_enqueue: push_committed(w, f); break;
    case commit_result::left_claimed: break;
  }
}

// On the new stack, as the thread. No code runs on the stack that was left, so what its departure asks for can be done.
RAMIE_FLATTEN void runner::arrive(platform::thread_anchor* here) noexcept {
  worker& w = *static_cast<worker*>(here);
  switch (w.run.left_as.get()) {
    case departure::spare: keep_spare(w, *w.run.left_stack.get()); break;
    case departure::park: commit_park(w, *w.run.left_fiber.get()); break;
    case departure::yield: {
      fiber& f = *w.run.left_fiber.get();
      platform::annotate::take_over(&f);  // as in commit_park: its frame may be one that a join on this thread has made
      w.count.enqueued.add(1);
      f.word.running_to_runnable();
      run_queues::push_yielded(w, f);
      break;
    }
    case departure::yield_locally: {
      fiber& f = *w.run.left_fiber.get();
      platform::annotate::take_over(&f);
      f.word.running_to_runnable();
      run_queues::push_yielded_locally(w, f);
      break;
    }
    case departure::native: break;
  }
}

RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* runner::switch_to(worker& w, platform::stack_block& to,
                                                                platform::context resume, departure as,
                                                                platform::context& left_at) noexcept {
  platform::stack_block& from = *w.run.active.get();
  w.run.left_as.set(as);
  w.run.active.set(&to);
  return static_cast<worker*>(platform::switch_stack(
      &w, from, left_at, to, resume, [](platform::thread_anchor* here) RAMIE_FLATTEN_LAMBDA { arrive(here); }));
}

RAMIE_FLATTEN worker* runner::depart(worker& w, departure as, fiber& leaver, fiber* next) noexcept {
  if constexpr (platform::debug_checks) check_float_controls(w, leaver);
  if (leaver.stack.get() == nullptr) [[unlikely]] {  // adopted: from now on the stack is its own
    leaver.stack.set(w.run.active.get());
    leaver.touched = true;
    w.count.adopted.add(1);
  }
  platform::annotate::hand_over(&leaver);
  w.run.left_fiber.set(&leaver);
  platform::stack_block* to = nullptr;
  platform::context resume = nullptr;
  const auto stack_of = [](fiber& f) RAMIE_FLATTEN_LAMBDA {
    platform::annotate::take_over(&f);  // from its spawner, as in next_plan: it may have been stolen
    return f.stack.get();
  };
  if (next != nullptr && (to = stack_of(*next)) != nullptr) [[likely]] {
    resume = next->resume_point;
    w.count.hand_offs.add(1);
  } else {
    w.count.switches.add(1);
    to = take_default_stack(w);
    if (to == nullptr) to = &w.run.native;
    resume = to->resume_point;
    w.run.handoff.set(next);
  }
  return switch_to(w, *to, resume, as, leaver.resume_point);
}

RAMIE_FLATTEN worker* runner::leave_and_return(worker& w, departure as, fiber& self, fiber* next) noexcept {
  worker* const now = depart(w, as, self, next);
  platform::annotate::take_over(&self);  // from its waker, who still looked at its scopes after it had woken it
  now->current.set(&self);
  self.word.runnable_to_running();
  return now;
}

RAMIE_FLATTEN worker* runner::park_and_return(worker& w, fiber& self, std::uint64_t accounted, fiber* next) noexcept {
  w.run.left_epoch.set(accounted);
  return leave_and_return(w, departure::park, self, next);
}

// From here on code runs as the fiber. False: it was cancelled before it started.
RAMIE_FLATTEN bool runner::begin(worker& w, fiber& f) noexcept {
  f.word.runnable_to_running();
  w.current.set(&f);
  const auto epoch = w.cancel_epoch->load(std::memory_order_acquire);
  if (f.seen_epoch.get() != epoch) [[unlikely]] {
    if (cancel_scope::effective(f, epoch) != nullptr) {
      w.count.discarded.add(1);
      return false;
    }
    f.seen_epoch.set(epoch);
  }
  w.count.started.add(1);
  return true;
}

// The fiber's own code: its function, or what is left to do without it.
RAMIE_FLATTEN fiber_end runner::run_code(fiber_record& record, bool wanted) noexcept {
  if (wanted) [[likely]]
    return ops_of(record).run(record);
  ops_of(record).discard(record, discard_cause::cancelled);
  return fiber_end::cancelled;
}

// Then the destructors of its fiber-locals.
RAMIE_FLATTEN fiber_end runner::run_body(fiber_record& record, bool wanted) noexcept {
  const auto how = run_code(record, wanted);
  if (record.extras() != nullptr) [[unlikely]]
    drop_extras(record);
  return how;
}

// Still as the fiber, but no longer its code. The caller gives the frame back.
RAMIE_FLATTEN void runner::conclude(worker& w, fiber& f, fiber_end how, const cancel_scope* joiner) noexcept {
  if (f.scope != f.home) [[unlikely]]  // a shield is a scope, too
    ended_inside_a_scope(f);
  if (f.stack.get() == nullptr) [[likely]] {
    w.count.finished_in_place.add(1);
  } else {
    part_from_stack(w, f);
  }
  w.current.set(nullptr);
  if (f.linked) [[unlikely]]  // also if it never left: a wait may be refused after that
    f.home->unlink_fiber(f);
  fiber_record& record = *f.record;  // after finish the frame may be another's
  cancel_scope& home = *f.home;
  f.word.finish(how == fiber_end::done ? lifecycle::done : lifecycle::cancelled);
  ops_of(record).retire(record, home, joiner);
}

}  // namespace ramie::runtime_internal
