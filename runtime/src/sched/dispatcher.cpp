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
    if (w.needs_attention()) {
      if (w.pool.attend(w)) return nullptr;
      withdraw_if_entangled(w);
    }
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
    if (w.dispatch.call.get() == begun_call::worth_a_spin && spin_for_call(w)) continue;
    if (should_nap(w)) {
      nap(w);
    } else {
      sleep(w);
    }
  }
}

// Of the ring's places, when deadlines are fired: for the fiber that is running and may yield, and for whom it wakes.
constexpr std::uint32_t kept_for_others = ring_capacity / 8;

// Deadlines that have come make fibers runnable, in this worker's own queues. No more than the ring has room for: what it
// would shed, the oldest, are those whose time came first, and they would find themselves behind whatever is in the
// injection queue. The others wait until the ring is empty, which it will be since fewer are fired than are polled.
//
// If fibers that yield keep the ring full, it sheds them: at a time when those who were fired before have had their turn.
void dispatcher::run_due_timers(worker& w, platform::time_point now) noexcept {
  if (now < w.dispatch.next_timer_check.get()) return;
  const auto polls = w.count.polls.get();
  const auto since_check = polls - w.dispatch.polls_at_timer_check.get();
  const std::uint64_t free = run_queues::ring_free_slots(w);
  std::uint64_t most = free > kept_for_others ? free - kept_for_others : 0;
  if (2 * most < since_check) {
    if (polls < w.dispatch.fired_until.get()) return;
    most = overflow_batch - kept_for_others;
  } else if (w.dispatch.more_due.get()) {
    most = std::min(most, since_check - std::min(since_check, since_check / 8 + 1));  // one may have been injected
  }
  fire_due(w, now, std::min<std::uint64_t>(most, overflow_batch));
}

void dispatcher::fire_due(worker& w, platform::time_point now, std::uint64_t most) noexcept {
  const bool more = sched_.deadlines.fire_due(now, static_cast<std::uint32_t>(most));
  w.dispatch.polls_at_timer_check.set(w.count.polls.get());
  w.dispatch.fired_until.set(w.count.polls.get() + run_queues::ring_size(w));
  w.dispatch.more_due.set(more);
  w.dispatch.next_timer_check.set(more ? now : now + timer_check_interval);
}

void dispatcher::run_due_timers(worker& w) noexcept {
  if (sched_.deadlines.earliest() == timekeeper::never) return;
  run_due_timers(w, platform::steady_clock::instance().now());
}

void dispatcher::look_for_entanglement(worker& w) noexcept {
  entanglement& partners = w.dispatch.partners;
  const platform::nanoseconds waited(w.lock_user.waited_ns);
  if (w.policy != nullptr || !partners.has_waited(waited)) [[likely]]
    return;
  if (partners.look(waited, platform::steady_clock::instance().now()))
    w.life.attention.fetch_or(worker::entangled, std::memory_order_relaxed);
}

// The poll is one at which a tick ends, or the injection queue has its turn, or both.
fiber* dispatcher::poll_is_due(worker& w, std::uint64_t polls) noexcept {
  dispatcher& self = w.sched.dispatch;
  pacer& pacing = w.dispatch.pacing;
  w.sched.io.poll(w);
  look_for_entanglement(w);
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
  return w.sched.dispatch.due_or_injected(w);
}

// The worker's own queues are empty.
fiber* dispatcher::due_or_injected(worker& w) noexcept {
  if (w.dispatch.more_due.get()) {
    if (w.dispatch.injection_next.get()) {
      w.dispatch.injection_next.set(false);
      if (fiber* const f = sched_.queues.take_injected(w)) return f;
    }
    fire_due(w, w.dispatch.next_timer_check.get(), overflow_batch);
    w.dispatch.injection_next.set(true);
    if (fiber* const f = run_queues::pop(w, w.count.polls.get() + 1)) return f;
  }
  return sched_.queues.take_injected(w);
}

fiber* dispatcher::ring_was_empty(worker& w) noexcept {
  return w.policy != nullptr ? w.policy->next_for_join(w) : w.sched.dispatch.due_or_injected(w);
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
