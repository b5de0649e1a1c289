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
  stay_suspended(w, *granted);
  return true;
}

void dispatcher::stay_suspended(worker& w, const suspensions::suspension& granted) noexcept {
  w.count.retreats.add(1);
  stop_searching(w);
  worker_pool::set_state(w, worker_state::idle_spin);
  progress_of_others others(w.pool.polls_of_others(w));
  const auto clock = [] { return platform::steady_clock::instance().now(); };
  auto now = clock();
  auto next_check = now + suspension_check_interval;
  while (now < granted.until && !suspensions_.is_recalled(granted) && !w.needs_attention()) {
    io_driver::completions done;
    sched_.io.park(w, std::min({next_check, granted.until, sched_.deadlines.earliest()}), done);
    done.deliver();
    now = clock();
    expect_due_timers(w);  // it may be what it was woken for
    run_due_timers(w, now);
    if (sched_.queues.move_to_injection(w)) w.pool.signal(&w);
    if (now < next_check) continue;
    if (!others.keep_up(w.pool.polls_of_others(w), sched_.queues.size())) break;
    next_check = now + suspension_check_interval;
  }
  suspensions_.end(now);
  w.dispatch.pacing.restart(w.count.polls.get(), now);
}

}  // namespace ramie::runtime_internal
