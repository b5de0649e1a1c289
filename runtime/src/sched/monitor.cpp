// SPDX-License-Identifier: BSL-1.0
// One sample of the monitor after another, and what follows from it: monitor.hpp.
#include "monitor.hpp"

#include <algorithm>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/report.hpp>

#include "../task/extras.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

void monitor::wake() noexcept {
  try {
    if (thread_.start<&monitor::run>(*this) == helper_thread::start_result::was_started) thread_.unpark();
  } catch (...) {
    sched_.pool.idle().set_monitor_asleep();  // no thread to be had now; the next producer tries again
  }
}

void monitor::run() noexcept {
  helper_of = this;
  unsigned quiet_ticks = 0;
  while (!thread_.is_stopping()) {
    wait_for_tick();
    quiet_ticks = tick() ? 0 : quiet_ticks + 1;
    if (quiet_ticks < quiet_ticks_before_monitor_sleeps) continue;
    if (!sleep_until_needed()) return;
    quiet_ticks = 0;
  }
}

// Until the tick it takes completions for workers that are held up, at shorter intervals.
void monitor::wait_for_tick() noexcept {
  const auto& clock = platform::steady_clock::instance();
  const auto due = clock.now() + monitor_interval;
  while (helps_ && !thread_.is_stopping() && clock.now() + io_help_interval < due) {
    (void)thread_.park_until(clock.now() + io_help_interval);
    helps_ = poll_for_stalled();
  }
  (void)thread_.park_until(due);
}

// Workers that run fibers and do not come to their operations.
bool monitor::poll_for_stalled() noexcept {
  bool any = false;
  for (const auto& w : sched_.pool.workers()) {
    const bool polled = w->io.polled_since_last_check() || !w->is_active();
    if (!polled && w->io.poll_for_owner()) any = true;
  }
  return any;
}

monitor::sample monitor::take_sample() const noexcept {
  sample seen;
  seen.queued = sched_.queues.anything_queued();
  for (const auto& w : sched_.pool.workers()) {
    const bool active = w->is_active();
    seen.active = seen.active || active;
    seen.active_with_io = seen.active_with_io || (active && w->io.under_way() != 0);
  }
  return seen;
}

bool monitor::sleep_until_needed() noexcept {
  idle_set& idle = sched_.pool.idle();
  idle.set_monitor_asleep();                                              // 1
  platform::heavy_fence();                                                // 2
  if (take_sample().worth_watching() && idle.clear_monitor_asleep()) return true;  // 3
  while (!thread_.is_stopping() && idle.load().monitor_asleep()) thread_.park();
  return !thread_.is_stopping();
}

bool monitor::tick() noexcept {
  const sample seen = take_sample();
  const auto pressure = sched_.pressure();
  count_sample(pressure);
  helps_ = poll_for_stalled();
  const bool stuck = mark_stalled_workers();
  decide(stuck, seen.queued, pressure);
  return seen.worth_watching() || owes_report_;
}

void monitor::count_sample(std::int64_t pressure) noexcept {
  if (pressure > 0) positive_.add(1);
  if (pressure >= 0) {
    streak_.set(0);
    return;
  }
  negative_.add(1);
  streak_.add(1);
  longest_streak_.set(std::max(longest_streak_.get(), streak_.get()));
  if (platform::debug_checks && streak_.get() > sustained_negative_pressure) {
    platform::fatal("pressure has been negative for %u samples: more fibers were dequeued than enqueued.",
                    sustained_negative_pressure);
  }
}

// A worker that is active and has polled nothing since the last sample is stalled until it polls again.
bool monitor::mark_stalled_workers() noexcept {
  bool any = false;
  owes_report_ = false;
  for (const auto& w : sched_.pool.workers()) {
    const auto polls = w->count.polls.get();
    const bool moved = polls != w->life.polls_at_last_sample;
    w->life.polls_at_last_sample = polls;
    if (moved || !w->is_active()) {
      w->life.samples_stalled = 0;
      continue;
    }
    any = true;
    if (sched_.reports_stalls && watch_stall(*w)) owes_report_ = true;
    sched_.pool.mark_stalled(*w);
  }
  return any;
}

// True: it is too early to say.
bool monitor::watch_stall(worker& w) noexcept {
  const auto samples = ++w.life.samples_stalled;
  if (samples != samples_before_stall_report) return samples < samples_before_stall_report;
  const fiber* const f = w.current.get();
  if (f == nullptr) return false;  // the scheduler's own code: the machine has kept it from running
  (void)sched_.frames.count();     // the lock under which the frame was made
  report_stalled_worker(w.current, *f, samples_before_stall_report * monitor_interval);
  return false;
}

void monitor::decide(bool anybody_stuck, bool anything_queued, std::int64_t pressure) noexcept {
  if (!anything_queued) return no_work_.add(1);
  if (!anybody_stuck) return not_stuck_.add(1);
  if (pressure <= 0) return nonpositive_.add(1);
  if (!sched_.pool.elastic()) return at_limit_.add(1);  // it only reports
  if (sched_.pool.wake_one()) return idle_capacity_.add(1);
  // A worker that searches finds what is queued; one that naps or has retreated finds it later.
  const auto& workers = sched_.pool.workers();
  const bool looked_for = std::any_of(workers.begin(), workers.end(), [](const auto& w) {
    return w->life.state.load(std::memory_order_relaxed) == worker_state::idle_spin;
  });
  if (looked_for || sched_.pool.idle().load().searching() != 0) return idle_capacity_.add(1);
  passes_.add(1);
  if (sched_.pool.promote_one()) {
    promoted_.add(1);
  } else {
    at_limit_.add(1);
  }
}

void monitor::read(pressure_stats& into) const noexcept {
  into.positive_samples = positive_.get();
  into.negative_samples = negative_.get();
  into.longest_negative_streak = longest_streak_.get();
  into.gate_passes = passes_.get();
  into.promoted_workers = promoted_.get();
  into.blocked_no_work = no_work_.get();
  into.blocked_nonpositive = nonpositive_.get();
  into.blocked_idle_capacity = idle_capacity_.get();
  into.blocked_not_stuck = not_stuck_.get();
  into.blocked_at_limit = at_limit_.get();
}

}  // namespace ramie::runtime_internal
