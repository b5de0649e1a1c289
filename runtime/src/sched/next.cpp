// SPDX-License-Identifier: BSL-1.0
// Choosing what a worker runs next.
//
// Order: the injection queue when its turn has come (before the local queues, or a busy worker would
// starve it); the LIFO slot, three times in a row while others wait in the ring; the ring, oldest first; the
// injection queue; theft of half of somebody's ring; sleep.
#include <algorithm>

#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>

#include "hot.hpp"

namespace ramie::detail {

// Deadlines that have come make fibers runnable, in this worker's own queues.
void scheduler::look_at_the_time(worker& w, platform::time_point now) noexcept {
  if (now < w.next_time_look.get()) return;
  const bool more = deadlines.carry_out(now);
  w.next_time_look.set(more ? now : now + time_look_interval);
}

void scheduler::look_at_the_time(worker& w) noexcept {
  if (deadlines.earliest() != timekeeper::never) look_at_the_time(w, platform::steady_clock::instance().now());
}

// The poll is one at which a tick ends, or the injection queue has its turn, or both.
fiber* scheduler::poll_is_due(worker& w, std::uint64_t polls) noexcept {
  if (w.io.busy()) (void)w.io.turn(w.ring.room());
  if (w.tempo.tick_ended(polls)) {
    const auto now = platform::steady_clock::instance().now();
    w.tempo.end_tick(polls, now);
    w.lifo_polls.set(0);
    look_at_the_time(w, now);
  } else {
    look_at_the_time(w);
  }
  return w.tempo.global_turn(polls) ? take_from_injection(w) : nullptr;
}

// Nothing in the worker's own queues. Looking in vain is time too: a fiber that yields alone still ends its ticks.
fiber* scheduler::poll_in_vain(worker& w) noexcept {
  w.vain_polls.add(1);
  if (w.vain_polls.get() % budget_per_tick == 0) {
    const auto now = platform::steady_clock::instance().now();
    w.tempo.restart(w.count.polls.get(), now);
    w.lifo_polls.set(0);
    look_at_the_time(w, now);
    if (w.io.busy()) (void)w.io.turn(w.ring.room());
  }
  return take_from_injection(w);
}

// One fiber to run; the rest of a batch goes to the ring. Only one while the ring has something: a batch would push the
// ring's own over its edge, back into this queue.
fiber* scheduler::take_from_injection(worker& w) noexcept {
  const auto waiting = injection.size();
  if (waiting == 0) return nullptr;
  fiber* batch[max_global_batch];
  const bool only_one = chaotic || !w.ring.empty();
  const auto share = only_one ? 1 : fair_batch(waiting, live.load(std::memory_order_relaxed));
  const auto count = injection.take(batch, std::min(share, w.ring.room() + 1));
  if (count == 0) return nullptr;
  w.ring.push_batch(batch + 1, count - 1);
  if (count > 1) signal(&w);  // for a moment they were in no queue: somebody may have missed them
  w.count.batch_fetches.add(1);
  w.count.polls.add(1);
  return batch[0];
}

// Not yet counted as a poll. The worker's own ring must be empty.
fiber* scheduler::steal_somewhere(worker& w) noexcept {
  const auto slots = static_cast<std::uint32_t>(workers.size());
  const auto first = w.random.below(slots);
  for (std::uint32_t i = 0; i < slots; ++i) {
    worker& victim = *workers[(first + i) % slots];
    if (&victim == &w || !has_thread(victim.state.load(std::memory_order_relaxed))) continue;
    std::uint32_t taken = 0;
    fiber* f = victim.ring.steal(w.ring, taken);
    if (f == nullptr) {
      f = victim.newest.steal();
      taken = f != nullptr ? 1 : 0;
    }
    if (f == nullptr) continue;
    w.count.steals.add(1);
    w.count.stolen.add(taken);
    return f;
  }
  return nullptr;
}

fiber* scheduler::search(worker& w) noexcept {
  fiber* f = steal_somewhere(w);
  if (f == nullptr) {
    f = take_from_injection(w);
  } else {
    w.count.polls.add(1);
  }
  if (f != nullptr) w.appetite.took(w.ring.size() + 1, platform::steady_clock::instance().now());
  return f;
}

std::uint64_t scheduler::polls_of_others(const worker& w) const noexcept {
  std::uint64_t sum = 0;
  for (const auto& other : workers) sum += other.get() == &w ? 0 : other->count.polls.get();
  return sum;
}

// To rest where nobody wakes it. Those who rely on its search can't be let down: what they queued is theirs to run, or
// found after the rest.
void scheduler::stop_searching(worker& w) noexcept {
  if (w.searching.get() && idle.leave_search().should_wake()) {
    platform::heavy_fence();  // the last searcher looks again, as in found_work
    if (!injection.empty()) (void)wake_somebody();
  }
  w.searching.set(false);
}

// What the worker brought home last may have been crumbs: see thrift.hpp.
void scheduler::nap_after_crumbs(worker& w) noexcept {
  const auto nap = w.appetite.judge();
  if (nap == platform::nanoseconds{0}) return;
  (void)stacks.trim(stack_trim_batch);
  stop_searching(w);
  w.state.store(worker_state::idle_spin, std::memory_order_relaxed);
  w.count.naps.add(1);
  const auto rested = platform::steady_clock::instance().now() + nap;
  io_port::batch done;
  rest(w, std::min(rested, deadlines.earliest()), done);
  io_port::complete(done);
}

// Sleeps where it is woken by whatever concerns the worker: a token, the time, its operations. What is done it brings
// along: to be completed when it counts as awake.
void scheduler::rest(worker& w, platform::time_point until, io_port::batch& done) noexcept {
  if (w.io.busy()) return w.io.sleep(w.parker, until, done);
  if (until == timekeeper::never) return w.parker.park();
  (void)w.parker.park_until(until);
}

fiber* scheduler::worker_next(worker& w) noexcept {
  for (;;) {
    if (w.attention.load(std::memory_order_acquire) != 0 && attend(w)) return nullptr;
    look_at_the_time(w);
    if (chaotic && w.io.busy()) (void)w.io.turn(io_port::most_a_turn);  // it has no ticks
    fiber* f = chaotic ? next_in_chaos(w) : next_local(w);
    if (f == nullptr && !chaotic) f = take_from_injection(w);
    // next_local also comes back empty-handed when attention was asked for: then there may be something.
    if (f == nullptr && (!w.ring.empty() || !w.newest.empty())) continue;
    if (f == nullptr && w.io.busy() && !chaotic && retreats(w)) continue;
    if (f == nullptr && w.io.busy() && w.io.turn(w.ring.room())) continue;
    if (f == nullptr && w.appetite.is_back() && w.appetite.back(platform::steady_clock::instance().now())) {
      nap_after_crumbs(w);
      continue;
    }
    if (f == nullptr) {
      w.state.store(worker_state::idle_spin, std::memory_order_relaxed);
      if (!w.searching.get()) w.searching.set(idle.try_become_searcher(live.load(std::memory_order_relaxed)));
      for (int round = 0; f == nullptr && w.searching.get() && round < idle_spin_rounds; ++round) {
        f = chaotic ? next_in_chaos(w) : search(w);
        if (f == nullptr) platform::cpu_pause();
      }
    }
    if (f != nullptr) {
      found_work(w);
      return f;
    }
    if (may_retire(w)) {
      drain(w);
      return nullptr;
    }
    if (!chaotic && w.appetite.not_needed(polls_of_others(w))) {
      nap_after_crumbs(w);
      continue;
    }
    sleep(w);
  }
}

// The worker is about to run user code.
void scheduler::found_work(worker& w) noexcept {
  w.appetite.found_something();
  if (w.searching.get()) {
    w.searching.set(false);
    // The last searcher looks again: an entry whose producer relied on it must not be left behind. See I3.
    const auto left = idle.leave_search();
    if (left.should_wake()) {
      left.all_but_one_parked() ? platform::full_fence() : platform::heavy_fence();
      if (work_visible()) (void)wake_somebody();
    }
  }
  if (w.state.load(std::memory_order_relaxed) != worker_state::active) {
    w.state.store(worker_state::active, std::memory_order_relaxed);
    platform::light_fence();  // pairs with the monitor's heavy fence: active, then is it asleep?
    const bool leaves_some = !w.ring.empty() || !injection.empty() || w.io.busy();
    if (leaves_some && idle.look().monitor_asleep() && idle.clear_monitor_asleep()) watcher.wake();
  }
}

bool scheduler::work_visible() const noexcept {
  if (!injection.empty()) return true;
  return std::any_of(workers.begin(), workers.end(), [](const auto& other) {
    if (!has_thread(other->state.load(std::memory_order_relaxed))) return false;
    return !other->ring.empty() || other->newest.stealable();
  });
}

bool scheduler::everybody_blocked() noexcept {
  for (;;) {
    const auto seen = idle.look_closely();  // 1
    if (!seen.all_parked()) return false;
    const bool queued = !injection.empty() || std::any_of(workers.begin(), workers.end(), [](const auto& w) {
      return !w->ring.empty() || !w->newest.empty();
    });  // 2
    if (queued) return false;
    if (idle.look_closely().nobody_ran_since(seen)) return true;  // 3
  }
}

// Sleeper's list of idle_set I3.
void scheduler::sleep(worker& w) noexcept {
  if (stacks.trim(stack_trim_batch)) return;  // housekeeping first, in small bites: work may come
  const bool was_searching = w.searching.get();
  w.state.store(worker_state::sleep, std::memory_order_relaxed);
  idle.announce_sleep(w.index, was_searching);  // 1
  w.searching.set(true);                        // whoever wakes it, or it itself, counts it as searching
  platform::heavy_fence();                      // 2
  bool needed = work_visible() || (w.attention.load(std::memory_order_relaxed) & ~worker::chaos) != 0;  // 3
  if (!needed && still.anybody_cares()) {
    w.current.set(nullptr);  // callbacks of stop tokens may be called, as nobody
    needed = still.look();   // what it makes runnable may be in this worker's own queues
  }
  io_port::batch done;
  if (!needed || !idle.cancel_sleep(w.index)) {
    w.count.times_parked.add(1);
    w.appetite.sleeps();
    const auto until = deadlines.take_duty();
    rest(w, until, done);
    if (until != timekeeper::never) {
      deadlines.leave_duty(until);
      w.next_time_look.set({});  // it is time, probably
    }
    if (!idle.cancel_sleep(w.index)) w.appetite.called();  // else without a claim (time, shutdown): count itself out
  }
  w.state.store(worker_state::idle_spin, std::memory_order_relaxed);
  w.join_patience.set(target_global_latency);
  w.tempo.restart(w.count.polls.get(), platform::steady_clock::instance().now());
  io_port::complete(done);
}

}  // namespace ramie::detail
