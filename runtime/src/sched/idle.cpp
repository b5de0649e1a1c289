// SPDX-License-Identifier: BSL-1.0
// What a worker does when it has nothing to run: it searches, naps, leaves the pool, or sleeps. See dispatcher.hpp.
#include <algorithm>

#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>

#include "scheduler.hpp"

namespace ramie::runtime_internal {

// Before a search: the worker retreats, polls its operations or naps, if that is due. True: it must check its queues
// again.
bool dispatcher::prepare_to_search(worker& w) noexcept {
  // next_local comes back with nothing when attention was asked for: then there may be something.
  if (!run_queues::local_empty(w)) return true;
  if (w.policy == nullptr && w.io.busy() && retreats(w)) return true;
  if (w.sched.io.poll(w)) return true;
  steal_policy& stealing = w.dispatch.stealing;
  if (!stealing.has_stolen() || !stealing.on_exhausted(platform::steady_clock::instance().now())) return false;
  if (w.dispatch.call.get() != begun_call::none) {
    stealing.judge_later();
    return false;
  }
  nap(w);
  return true;
}

// A round looks at every worker, and takes a cache line or two from each that is busy.
constexpr int rounds_of_search(std::uint32_t workers) noexcept {
  const auto rounds = idle_spin_looks / std::max(workers, 1u);
  return static_cast<int>(std::clamp(rounds, fewest_idle_rounds, idle_spin_rounds));
}

fiber* dispatcher::search(worker& w) noexcept {
  worker_pool::set_state(w, worker_state::idle_spin);
  if (!w.dispatch.searching.get()) w.dispatch.searching.set(w.pool.idle().try_become_searcher(w.pool.live_hint()));
  fiber* f = nullptr;
  const int rounds = rounds_of_search(w.pool.live_hint());
  for (int round = 0; f == nullptr && w.dispatch.searching.get() && round < rounds; ++round) {
    f = w.policy != nullptr ? w.policy->next(w) : search_once(w);
    if (f == nullptr) platform::cpu_pause();
  }
  return f;
}

fiber* dispatcher::search_once(worker& w) noexcept {
  fiber* f = sched_.queues.steal(w);
  if (f == nullptr) {
    f = sched_.queues.take_injected(w);
  } else {
    w.count.polls.add(1);
  }
  if (f != nullptr)
    w.dispatch.stealing.on_steal(run_queues::ring_size(w) + 1, platform::steady_clock::instance().now());
  return f;
}

// A fiber of this worker waits for a call that has just begun: it may be short. The worker still counts as searching,
// so whoever makes a fiber runnable wakes nobody; it sleeps by way of idle_set I3, like any searcher. True: it must check
// its queues again.
bool dispatcher::spin_for_call(worker& w) noexcept {
  w.dispatch.call.set(begun_call::worth_a_sleep);
  spin_forecast& forecast = w.dispatch.calls;
  if (!w.dispatch.searching.get() || !sched_.blocking.leaves_processor() || !forecast.is_worthwhile()) return false;
  w.count.spins.add(1);
  platform::time_point now = platform::steady_clock::instance().now();
  const auto end = now + longest_spin;
  do {
    for (int look = 0; look < looks_per_clock_read; ++look) {
      if (!sched_.queues.injection_empty()) {
        forecast.paid();
        return true;
      }
      platform::cpu_pause();
    }
    if (sched_.queues.work_visible() || w.is_stalled_or_stopped() || sched_.io.poll(w)) return true;
    now = platform::steady_clock::instance().now();
    if (sched_.deadlines.earliest() <= now) {
      expect_due_timers(w);
      return true;
    }
  } while (now < end && sched_.blocking.leaves_processor());
  forecast.did_not_pay();
  return false;
}

bool dispatcher::should_nap(worker& w) noexcept {
  if (w.policy != nullptr || w.dispatch.call.get() != begun_call::none) return false;
  steal_policy& stealing = w.dispatch.stealing;
  return stealing.may_be_unneeded() && stealing.not_needed(w.pool.polls_of_others(w));
}

// The worker is about to run user code.
void dispatcher::found_work(worker& w) noexcept {
  w.dispatch.call.set(begun_call::none);
  w.dispatch.stealing.found_something();
  if (w.dispatch.searching.get()) {
    w.dispatch.searching.set(false);
    // The last searcher looks again: an entry whose producer relied on it must not be left behind. See idle_set I3.
    const auto left = w.pool.idle().leave_search();
    if (left.should_wake()) {
      left.all_but_one_parked() ? platform::full_fence() : platform::heavy_fence();
      if (sched_.queues.work_visible()) (void)w.pool.wake_one();
    }
  }
  if (!w.is_active()) {
    worker_pool::set_state(w, worker_state::active);
    const bool leaves_some = !run_queues::ring_empty(w) || !sched_.queues.injection_empty() || w.io.busy();
    if (leaves_some) w.pool.wake_monitor();
  }
}

bool dispatcher::leave_search(worker& w) noexcept {
  if (!w.dispatch.searching.get()) return false;
  w.dispatch.searching.set(false);
  return w.pool.idle().leave_search().searching() == 0;
}

// The worker stops searching without being parked, so no producer can wake it. A producer that relied on its search
// loses nothing: it runs what it queued itself, or this worker finds that when it searches again.
void dispatcher::stop_searching(worker& w) noexcept {
  if (w.dispatch.searching.get() && w.pool.idle().leave_search().should_wake()) {
    platform::heavy_fence();  // the last searcher looks again, as in found_work
    if (!sched_.queues.injection_empty()) (void)w.pool.wake_one();
  }
  w.dispatch.searching.set(false);
}

// What the worker stole last may not have been worth the theft: see steal_policy.hpp.
void dispatcher::nap(worker& w) noexcept {
  const auto length = w.dispatch.stealing.nap_length();
  if (length == platform::nanoseconds{0}) return;
  (void)sched_.stacks.trim(stack_trim_batch);
  stop_searching(w);
  worker_pool::set_state(w, worker_state::idle_spin);
  w.count.naps.add(1);
  const auto end = platform::steady_clock::instance().now() + length;
  io_driver::completions done;
  sched_.io.park(w, std::min(end, sched_.deadlines.earliest()), done);
  done.deliver();
}

// Sleeper's list of idle_set I3.
void dispatcher::sleep(worker& w) noexcept {
  if (sched_.stacks.trim(stack_trim_batch)) return;  // housekeeping first, in small bites: work may come
  worker_pool::set_state(w, worker_state::sleep);
  w.pool.idle().announce_sleep(w.index, w.dispatch.searching.get());  // 1
  w.dispatch.searching.set(true);  // its waker, or its own cancel_sleep, counts it as searching
  platform::heavy_fence();         // 2
  io_driver::completions done;
  if (!is_needed(w) || !w.pool.idle().cancel_sleep(w.index)) {  // 3
    w.count.times_parked.add(1);
    w.dispatch.stealing.sleeps();
    const auto until = sched_.deadlines.become_timer_sleeper();
    sched_.io.park(w, until, done);
    if (until != timekeeper::never) {
      sched_.deadlines.resign_as_timer_sleeper(until);
      expect_due_timers(w);  // it is time, probably
    }
    // Else it woke without a claim (time, shutdown), and has counted itself out.
    if (!w.pool.idle().cancel_sleep(w.index)) w.dispatch.stealing.woken();
  }
  worker_pool::set_state(w, worker_state::idle_spin);
  w.dispatch.join_backoff.set(target_injection_latency);
  w.dispatch.pacing.restart(w.count.polls.get(), platform::steady_clock::instance().now());
  done.deliver();
}

bool dispatcher::is_needed(worker& w) noexcept {
  if (sched_.queues.work_visible()) return true;
  if (w.is_stalled_or_stopped()) return true;
  if (!sched_.all_blocked.has_waiters()) return false;
  w.current.set(nullptr);             // callbacks of stop tokens may be called: as scheduler code, not as a fiber
  return sched_.all_blocked.check();  // what it makes runnable may be in this worker's own queues
}

}  // namespace ramie::runtime_internal
