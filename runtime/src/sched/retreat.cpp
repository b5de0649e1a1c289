// SPDX-License-Identifier: BSL-1.0
// A worker that leaves the work to the others: retreat.hpp.
#include "retreat.hpp"

#include <algorithm>

#include "scheduler.hpp"

namespace ramie::detail {

// The worker has nothing to run, and operations under way. (Fibers without them are found by whoever is free.)
bool scheduler::retreats(worker& w) noexcept {
  const auto running = live.load(std::memory_order_relaxed) - stalled.load(std::memory_order_relaxed);
  if (running < 2 || !w.room.due()) return false;
  const auto now = platform::steady_clock::instance().now();
  const auto crowded = w.room.look(w.room.meter.read(), now);
  if (crowded == 0) return false;
  const auto granted = leaves.ask(running, crowded, now);
  if (!granted) return false;
  stay_out(w, *granted);
  return true;
}

std::size_t scheduler::queued() const noexcept {
  auto sum = injection.size();
  for (const auto& w : workers) sum += w->ring.size() + (w->newest.empty() ? 0 : 1);
  return sum;
}

void scheduler::stay_out(worker& w, const retreat::leave& granted) noexcept {
  w.count.retreats.add(1);
  stop_searching(w);
  w.state.store(worker_state::idle_spin, std::memory_order_relaxed);
  outlook others(polls_of_others(w));
  const auto clock = [] { return platform::steady_clock::instance().now(); };
  auto now = clock();
  auto next_look = now + leave_look_interval;
  while (now < granted.until && !leaves.is_recalled(granted) && w.attention.load(std::memory_order_relaxed) == 0) {
    io_port::batch done;
    rest(w, std::min({next_look, granted.until, deadlines.earliest()}), done);
    io_port::complete(done);
    now = clock();
    w.next_time_look.set({});  // it may be what it was woken for
    look_at_the_time(w, now);
    if (hand_over(w)) signal(&w);
    if (now < next_look) continue;
    if (!others.get_on(polls_of_others(w), queued())) break;
    next_look = now + leave_look_interval;
  }
  leaves.end(now);
  w.tempo.restart(w.count.polls.get(), now);
}

}  // namespace ramie::detail
