// SPDX-License-Identifier: BSL-1.0
// What a worker runs next, and what it does when there is nothing.
//
// Order: the injection queue when its turn has come (before the local queues, or a busy worker would starve it); the
// worker's own queues; what is due and had no room in the ring, and the injection queue, by turns; half of another
// worker's ring; sleep. A fiber that parks in one of the
// waits of Q16 puts the youngest entry of the ring before the local queues, if that has not started (next_fresh).
//
// Maintenance. A worker that runs fibers looks at its operations under way and at deadlines at the end of a tick, when
// the injection queue has its turn, and at every 128th poll that finds its own queues empty; a worker that has nothing
// to run does so before it searches, naps or sleeps. A worker takes completions by two functions, io_driver::poll and
// io_driver::park, which only the dispatcher calls; the monitor takes them for one that is held up (io/driver.hpp).
//
// dispatcher.cpp has the choice; idle.cpp has searching, naps and sleep; retreat.cpp has leaving the work to others.
#pragma once

#include <cstdint>

#include <ramie/platform/clock.hpp>

#include "../io/driver.hpp"
#include "retreat.hpp"
#include "run_queues.hpp"
#include "worker_pool.hpp"

namespace ramie::runtime_internal {

class scheduler;

class dispatcher {
 public:
  explicit dispatcher(scheduler& of) noexcept : sched_(of) {}
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  // What `w` should run next without searching or sleeping. Null: nothing is at hand, or the worker's attention is
  // asked for, so that the way is through the loop.
  [[nodiscard]] static fiber* next_local(worker& w) noexcept;
  // Like next_local, but for a caller that has just seen that the worker's attention is not asked for.
  [[nodiscard]] static fiber* next_undisturbed(worker& w) noexcept;
  // Like next_local, but also searches, steals and sleeps. Null: the worker must leave.
  [[nodiscard]] fiber* next(worker& w) noexcept;
  // For a fiber that parks in one of the waits of Q16: the youngest entry of the ring, if it has not started and may go
  // first. Null: no such entry, or something else is due.
  [[nodiscard]] static fiber* next_fresh(worker& w) noexcept;

  // For a join, which calls fibers in place (join.hpp). True: something besides the youngest of the ring is due.
  [[nodiscard]] static bool is_due(const worker& w, std::uint64_t polls) noexcept {
    return w.dispatch.pacing.due(polls);
  }
  struct for_join {
    fiber* f;          // or null
    bool others_turn;  // it need not be a descendant: the joiner yields to it
  };
  // What a join takes when it is not simply the youngest of the ring.
  [[nodiscard]] for_join next_for_join(worker& w) noexcept;
  // Of that, what is due besides the youngest: the fiber to which a caller that keeps the processor yields, or null.
  [[nodiscard]] fiber* turn_of_others(worker& w) noexcept {
    return is_due(w, w.count.polls.get() + 1) ? others_turn_in_join(w) : nullptr;
  }

  // A policy decides what the worker runs: its pace no longer depends on how fast the machine is.
  static void keep_pace(worker& w) noexcept { w.dispatch.pacing.keep_interval(); }
  // A worker's thread begins, and ends.
  static void thread_started(worker& w) noexcept;
  static void thread_ended(worker& w) noexcept { w.dispatch.processor.meter.let_go(); }
  // A thread of the worker is about to be started: it is counted as searching from its beginning.
  static void will_start(worker& w) noexcept { w.dispatch.searching.set(true); }
  // The worker leaves the pool, and is no longer counted as searching. True: it was, and nobody else is.
  static bool leave_search(worker& w) noexcept;

  [[nodiscard]] static bool is_searching(const worker& w) noexcept { return w.dispatch.searching.get(); }
  // A fiber of the worker is about to wait for a blocking call.
  static void expect_end_of_call(worker& w, bool made_elsewhere) noexcept {
    if (w.policy == nullptr) w.dispatch.call.set(made_elsewhere ? begun_call::worth_a_spin : begun_call::worth_a_sleep);
  }
  // For the choice of a victim.
  [[nodiscard]] static std::uint32_t random_below(worker& w, std::uint32_t bound) noexcept {
    return w.dispatch.random.below(bound);
  }
  // Workers that leave the work to the others at the moment.
  [[nodiscard]] std::uint32_t retreated() const noexcept { return suspensions_.suspended(); }

 private:
  friend struct tests_of_parts;

  // dispatcher.cpp
  [[nodiscard]] fiber* next_of_queues(worker& w) noexcept;
  [[nodiscard]] fiber* next_of_policy(worker& w) noexcept;
  [[nodiscard]] static fiber* poll_is_due(worker& w, std::uint64_t polls) noexcept;
  static void look_for_entanglement(worker& w) noexcept;
  [[nodiscard]] static fiber* poll_was_empty(worker& w) noexcept;
  [[nodiscard]] static fiber* take_youngest(worker& w) noexcept;
  [[nodiscard]] static fiber* ring_was_empty(worker& w) noexcept;
  [[nodiscard]] fiber* others_turn_in_join(worker& w) noexcept;
  void run_due_timers(worker& w) noexcept;
  void run_due_timers(worker& w, platform::time_point now) noexcept;
  void fire_due(worker& w, platform::time_point now, std::uint64_t most) noexcept;
  // The next run_due_timers looks at the time, and fires what there is room for.
  static void expect_due_timers(worker& w) noexcept {
    w.dispatch.next_timer_check.set({});
    w.dispatch.more_due.set(false);
  }
  [[nodiscard]] fiber* due_or_injected(worker& w) noexcept;

  // idle.cpp
  [[nodiscard]] fiber* search(worker& w) noexcept;
  [[nodiscard]] fiber* search_once(worker& w) noexcept;
  [[nodiscard]] bool prepare_to_search(worker& w) noexcept;
  [[nodiscard]] bool spin_for_call(worker& w) noexcept;
  [[nodiscard]] static bool should_nap(worker& w) noexcept;
  void stop_searching(worker& w) noexcept;
  void found_work(worker& w) noexcept;
  void nap(worker& w) noexcept;
  void sleep(worker& w) noexcept;
  [[nodiscard]] bool is_needed(worker& w) noexcept;

  // retreat.cpp
  [[nodiscard]] bool retreats(worker& w) noexcept;  // true: it did, and is back
  void withdraw_if_entangled(worker& w) noexcept;
  void stay_suspended(worker& w, const suspensions::suspension& granted) noexcept;

  scheduler& sched_;
  suspensions suspensions_;
};

RAMIE_FLATTEN fiber* dispatcher::next_undisturbed(worker& w) noexcept {
  const auto polls = w.count.polls.get() + 1;
  if (w.dispatch.pacing.due(polls)) [[unlikely]] {
    if (fiber* const f = poll_is_due(w, polls)) return f;
  }
  fiber* const f = run_queues::pop(w, polls);
  return f != nullptr ? f : poll_was_empty(w);
}

RAMIE_FLATTEN fiber* dispatcher::next_local(worker& w) noexcept {
  if (w.needs_attention()) [[unlikely]]
    return nullptr;
  return next_undisturbed(w);
}

RAMIE_FLATTEN fiber* dispatcher::take_youngest(worker& w) noexcept {
  fiber* const f = run_queues::pop_youngest(w);
  if (f == nullptr) return ring_was_empty(w);
  w.count.polls.add(1);
  return f;
}

// A program that spawns and then waits for what its children do is taken depth first, with few stacks, instead of
// breadth first, with a stack for every branch.
RAMIE_FLATTEN fiber* dispatcher::next_fresh(worker& w) noexcept {
  if (!run_queues::fresh_may_go_first(w)) return nullptr;
  if (w.needs_attention() || w.dispatch.pacing.due(w.count.polls.get() + 1)) return nullptr;
  return run_queues::begin_fresh_turn(w) ? take_youngest(w) : nullptr;
}

}  // namespace ramie::runtime_internal
