// SPDX-License-Identifier: BSL-1.0
// A worker that leaves the work to the others: retreat.hpp.
#include "retreat.hpp"

#include <algorithm>

#include "scheduler.hpp"

namespace ramie::runtime_internal {

// The worker has nothing to run, and operations under way. (Without operations there is no need to retreat: other
// workers steal its fibers.)
bool dispatcher::retreats(worker& w) noexcept {
  const auto running = w.pool.not_stalled();
  crowding& processor = w.dispatch.processor;
  if (running < 2 || !processor.due()) return false;
  const auto now = platform::steady_clock::instance().now();
  const auto crowded = processor.measure(processor.meter.read(), now);
  if (crowded == 0) return false;
  const auto granted = suspensions_.request(running, crowded, now);
  if (!granted) return false;
  w.count.retreats.add(1);
  stay_suspended(w, *granted);
  return true;
}

void dispatcher::withdraw_if_entangled(worker& w) noexcept {
  if ((w.life.attention.load(std::memory_order_relaxed) & worker::entangled) == 0) return;
  w.life.attention.fetch_and(~worker::entangled, std::memory_order_relaxed);
  const auto granted = suspensions_.request_withdrawal(w.pool.not_stalled(), platform::steady_clock::instance().now());
  if (!granted) return;
  w.count.withdrawals.add(1);
  stay_suspended(w, *granted);
}

void dispatcher::stay_suspended(worker& w, const suspensions::suspension& granted) noexcept {
  stop_searching(w);
  worker_pool::set_state(w, worker_state::idle_spin);
  progress_of_others others(w.pool.polls_of_others(w));
  const auto clock = [] { return platform::steady_clock::instance().now(); };
  auto now = clock();
  auto next_check = now + suspension_check_interval;
  while (now < granted.until && !suspensions_.is_recalled(granted) && !w.needs_attention()) {
    if (sched_.queues.move_to_injection(w)) w.pool.signal(&w);
    if (!run_queues::local_empty(w)) break;  // there was no memory for the queue to grow
    io_driver::completions done;
    sched_.io.park(w, std::min({next_check, granted.until, sched_.deadlines.earliest()}), done);
    done.deliver();
    now = clock();
    expect_due_timers(w);  // it may be what it was woken for
    run_due_timers(w, now);
    if (now < next_check) continue;
    if (w.pool.not_stalled() <= suspensions_.suspended()) break;  // the others have retired or are stalled
    if (!others.keep_up(w.pool.polls_of_others(w), sched_.queues.size())) break;
    next_check = now + suspension_check_interval;
  }
  suspensions_.end(granted, now);
  w.dispatch.pacing.restart(w.count.polls.get(), now);
}

}  // namespace ramie::runtime_internal
