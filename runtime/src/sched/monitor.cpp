// SPDX-License-Identifier: BSL-1.0
#include "monitor.hpp"

#include <algorithm>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/report.hpp>

#include "../task/extras.hpp"
#include "helper_thread.hpp"
#include "scheduler.hpp"

namespace ramie::detail {

void monitor::wake() noexcept {
  {
    std::lock_guard hold(start_mutex_);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!started_) {
      try {
        thread_ = platform::start_thread<&monitor::run>(*this);
        started_ = true;
      } catch (...) {
        sched_.idle.set_monitor_asleep();  // no thread to be had now; the next producer tries again
      }
      return;
    }
  }
  parker_.unpark();
}

void monitor::stop() noexcept {
  {
    std::lock_guard hold(start_mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  parker_.unpark();
  if (thread_.joinable()) thread_.join();
}

void monitor::run() noexcept {
  helper_of = this;
  unsigned quiet_ticks = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    wait_for_tick();
    quiet_ticks = tick() ? 0 : quiet_ticks + 1;
    if (quiet_ticks < quiet_ticks_before_monitor_sleeps) continue;
    if (!sleep_until_needed()) return;
    quiet_ticks = 0;
  }
}

// Meanwhile it helps whoever needs that, at shorter intervals.
void monitor::wait_for_tick() noexcept {
  const auto& clock = platform::steady_clock::instance();
  const auto due = clock.now() + monitor_interval;
  while (helps_ && !stopping_.load(std::memory_order_acquire) && clock.now() + io_help_interval < due) {
    (void)parker_.park_until(clock.now() + io_help_interval);
    helps_ = help_untended();
  }
  (void)parker_.park_until(due);
}

// Workers that run fibers and do not come to their operations.
bool monitor::help_untended() noexcept {
  bool any = false;
  for (const auto& w : sched_.workers) {
    const bool tended = w->io.was_tended() || w->state.load(std::memory_order_relaxed) != worker_state::active;
    if (!tended && w->io.help()) any = true;
  }
  return any;
}

monitor::sight monitor::look() const noexcept {
  sight seen;
  seen.queued = sched_.work_visible();
  for (const auto& w : sched_.workers) {
    const bool active = w->state.load(std::memory_order_relaxed) == worker_state::active;
    seen.queued = seen.queued || !w->newest.empty();
    seen.active = seen.active || active;
    seen.active_with_io = seen.active_with_io || (active && w->io.under_way() != 0);
  }
  return seen;
}

bool monitor::sleep_until_needed() noexcept {
  sched_.idle.set_monitor_asleep();  // 1
  platform::heavy_fence();           // 2
  if (look().worth_watching() && sched_.idle.clear_monitor_asleep()) return true;  // 3
  while (!stopping_.load(std::memory_order_acquire) && sched_.idle.look().monitor_asleep()) parker_.park();
  return !stopping_.load(std::memory_order_acquire);
}

bool monitor::tick() noexcept {
  const sight seen = look();
  const auto pressure = sched_.pressure();
  sample(pressure);
  helps_ = help_untended();
  const bool stuck = mark_stalled_workers();
  decide(stuck, seen.queued, pressure);
  return seen.worth_watching() || owes_report_;
}

void monitor::sample(std::int64_t pressure) noexcept {
  if (pressure > 0) positive_.add(1);
  if (pressure >= 0) {
    streak_.set(0);
    return;
  }
  negative_.add(1);
  streak_.add(1);
  longest_streak_.set(std::max(longest_streak_.get(), streak_.get()));
  if (platform::debug_checks && streak_.get() > sustained_negative_pressure) {
    platform::fatal("pressure has been negative for %u looks: more fibers were dequeued than enqueued.",
                    sustained_negative_pressure);
  }
}

// A worker that is active and has polled nothing since the last look is stalled until it polls again.
bool monitor::mark_stalled_workers() noexcept {
  bool any = false;
  owes_report_ = false;
  for (auto& w : sched_.workers) {
    const auto polls = w->count.polls.get();
    const bool moved = polls != w->polls_at_last_look;
    w->polls_at_last_look = polls;
    if (moved || w->state.load(std::memory_order_relaxed) != worker_state::active) {
      w->looks_stalled = 0;
      continue;
    }
    any = true;
    if (sched_.reports_stalls && watch_stall(*w)) owes_report_ = true;
    if ((w->attention.fetch_or(worker::stalled, std::memory_order_acq_rel) & worker::stalled) == 0) {
      sched_.stalled.fetch_add(1, std::memory_order_acq_rel);
      w->newest.open_to_thieves();
    }
  }
  return any;
}

// True: it is too early to say.
bool monitor::watch_stall(worker& w) noexcept {
  const auto looks = ++w.looks_stalled;
  if (looks != looks_before_stall_report) return looks < looks_before_stall_report;
  const fiber* const f = w.current.get();
  if (f == nullptr) return false;  // the scheduler's own code: the machine has kept it from running
  (void)sched_.frames.count();     // the lock under which the frame was made
  report_stalled_worker(w.current, *f, looks_before_stall_report * monitor_interval);
  return false;
}

void monitor::decide(bool anybody_stuck, bool anything_queued, std::int64_t pressure) noexcept {
  if (!anything_queued) return no_work_.add(1);
  if (!anybody_stuck) return not_stuck_.add(1);
  if (pressure <= 0) return nonpositive_.add(1);
  if (!sched_.elastic) return at_limit_.add(1);  // it only reports
  if (sched_.wake_somebody()) return idle_capacity_.add(1);
  // Somebody who searches, or naps and will, finds it.
  const bool looked_for = std::any_of(sched_.workers.begin(), sched_.workers.end(), [](const auto& w) {
    return w->state.load(std::memory_order_relaxed) == worker_state::idle_spin;
  });
  if (looked_for || sched_.idle.look().searching() != 0) return idle_capacity_.add(1);
  passes_.add(1);
  if (sched_.promote_one()) {
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

}  // namespace ramie::detail
