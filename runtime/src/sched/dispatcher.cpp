// SPDX-License-Identifier: BSL-1.0
// Choosing what a worker runs next: dispatcher.hpp.
#include "dispatcher.hpp"

#include <algorithm>

#include "scheduler.hpp"

namespace ramie::runtime_internal {

void dispatcher::thread_started(worker& w) noexcept {
  w.dispatch.pacing.restart(w.count.polls.get(), platform::steady_clock::instance().now());
}

// next_local finds nothing if attention was asked for meanwhile.
fiber* dispatcher::next_of_queues(worker& w) noexcept {
  fiber* const f = next_local(w);
  return f != nullptr ? f : sched_.queues.take_injected(w);
}

// There are no ticks under a policy: operations are looked after each time.
fiber* dispatcher::next_of_policy(worker& w) noexcept {
  sched_.io.poll_all(w);
  return w.policy->next(w);
}

fiber* dispatcher::next(worker& w) noexcept {
  for (;;) {
    if (w.needs_attention() && w.pool.attend(w)) return nullptr;
    run_due_timers(w);
    fiber* f = w.policy != nullptr ? next_of_policy(w) : next_of_queues(w);
    if (f == nullptr && prepare_to_search(w)) continue;
    if (f == nullptr) f = search(w);
    if (f != nullptr) {
      found_work(w);
      return f;
    }
    if (w.pool.may_retire(w)) {
      w.pool.drain(w);
      return nullptr;
    }
    if (w.policy == nullptr && w.dispatch.stealing.not_needed(w.pool.polls_of_others(w))) {
      nap(w);
    } else {
      sleep(w);
    }
  }
}

// Deadlines that have come make fibers runnable, in this worker's own queues.
void dispatcher::run_due_timers(worker& w, platform::time_point now) noexcept {
  if (now < w.dispatch.next_timer_check.get()) return;
  const bool more = sched_.deadlines.fire_due(now);
  w.dispatch.next_timer_check.set(more ? now : now + timer_check_interval);
}

void dispatcher::run_due_timers(worker& w) noexcept {
  if (sched_.deadlines.earliest() == timekeeper::never) return;
  run_due_timers(w, platform::steady_clock::instance().now());
}

// The poll is one at which a tick ends, or the injection queue has its turn, or both.
fiber* dispatcher::poll_is_due(worker& w, std::uint64_t polls) noexcept {
  dispatcher& self = w.sched.dispatch;
  pacer& pacing = w.dispatch.pacing;
  w.sched.io.poll(w);
  if (pacing.tick_ended(polls)) {
    const auto now = platform::steady_clock::instance().now();
    pacing.end_tick(polls, now);
    run_queues::restart_lifo_turns(w);
    self.run_due_timers(w, now);
  } else {
    self.run_due_timers(w);
  }
  return pacing.injection_turn(polls) ? w.sched.queues.take_injected(w) : nullptr;
}

// Nothing in the worker's own queues. Such polls take time as well: a fiber that yields alone still ends its ticks.
fiber* dispatcher::poll_was_empty(worker& w) noexcept {
  w.dispatch.empty_polls.add(1);
  if (w.dispatch.empty_polls.get() % budget_per_tick == 0) {
    const auto now = platform::steady_clock::instance().now();
    w.dispatch.pacing.restart(w.count.polls.get(), now);
    run_queues::restart_lifo_turns(w);
    w.sched.dispatch.run_due_timers(w, now);
    w.sched.io.poll(w);
  }
  return w.sched.queues.take_injected(w);
}

fiber* dispatcher::ring_was_empty(worker& w) noexcept {
  return w.policy != nullptr ? w.policy->next_for_join(w) : w.sched.queues.take_injected(w);
}

// A tick has ended, or it is the injection queue's turn. The fiber to which the join should yield, or null.
fiber* dispatcher::others_turn_in_join(worker& w) noexcept {
  if (w.policy != nullptr && w.policy->decides_joins()) return nullptr;    // take_youngest asks it each time
  if (fiber* const f = poll_is_due(w, w.count.polls.get() + 1)) return f;  // counted as a poll there
  fiber* const f = run_queues::pop_for_others(w, [&w] {
    if (w.policy != nullptr) return true;  // a policy decides by no clock
    const auto now = w.dispatch.pacing.tick_started();
    if (now < w.dispatch.next_join_yield.get()) return false;
    const auto backoff = w.dispatch.join_backoff.get();
    w.dispatch.next_join_yield.set(now + backoff);
    w.dispatch.join_backoff.set(std::min(2 * backoff, max_join_backoff));
    return true;
  });
  if (f != nullptr) w.count.polls.add(1);
  return f;
}

dispatcher::for_join dispatcher::next_for_join(worker& w) noexcept {
  if (fiber* const f = turn_of_others(w)) return {f, true};
  return {take_youngest(w), false};
}

}  // namespace ramie::runtime_internal
