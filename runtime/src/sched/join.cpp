// SPDX-License-Identifier: BSL-1.0
// Joining runs work. The conditions, and what holds while a child runs in place: join.hpp.
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/live_count.hpp>

#include <algorithm>

#include "start.hpp"

namespace ramie::detail {

namespace {

// Room for the frames between the join and the child's function.
constexpr std::size_t in_place_overhead = 1024;

// J5, J6, J7.
bool fits(const worker& w, const fiber& f, const cancel_scope& of) noexcept {
  if (f.stack.get() != nullptr || !f.home->inside(of)) return false;
  const auto left = platform::stack_pool::room_below(*w.active.get(), __builtin_frame_address(0));
  return left >= platform::promised_bytes(f.size_class) + in_place_overhead;
}

}  // namespace

// The ring is empty, or there is chaos.
fiber* scheduler::take_young_elsewhere(worker& w) noexcept {
  return chaotic ? take_young_in_chaos(w) : take_from_injection(w);
}

// The joiner is inside this call meanwhile. The child may leave and come back on another worker.
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* scheduler::start_in_place(worker& at_start, fiber& f, fiber& joiner,
                                                                        const cancel_scope& of) noexcept {
  const auto put_aside = *at_start.exceptions;
  const bool unwinding = put_aside.caught != nullptr || put_aside.uncaught != 0;
  const auto below = platform::annotate::this_thread();
  platform::annotate::hand_over(&f);  // what the joiner has done happens before the child, truly
  const bool wanted = begin(at_start, f);
  if (unwinding) [[unlikely]]
    *at_start.exceptions = {nullptr, 0};
  platform::annotate::begin_fiber(&f);
  const fiber_end how = run_body(f, wanted);
  worker* const w = this_worker();
  const bool last = conclude(*w, f, how, &of);
  platform::annotate::end_fiber(&f, below);
  if (last) w->frames.give(&f, w->sched.frames);
  if (unwinding) [[unlikely]]
    *w->exceptions = put_aside;
  w->current.set(&joiner);
  return w;
}

// A tick has ended, or it is the injection queue's turn. Who should run now, or null: nobody in particular.
fiber* scheduler::whose_turn_in_join(worker& w) noexcept {
  if (directed != nullptr) return nullptr;                                 // take_young asks it each time
  if (fiber* const f = poll_is_due(w, w.count.polls.get() + 1)) return f;  // counted as a poll there
  fiber* f = w.newest.take();
  if (f == nullptr) {
    const fiber* const oldest = w.ring.peek_old();
    const auto now = w.tempo.tick_started();
    if (oldest == nullptr) return nullptr;
    if (oldest->stack.get() == nullptr) {
      if (now < w.next_way_given.get()) return nullptr;
      w.next_way_given.set(now + w.join_patience.get());
      w.join_patience.set(std::min(2 * w.join_patience.get(), longest_join_patience));
    }
    f = w.ring.pop_old();
  }
  if (f != nullptr) w.count.polls.add(1);
  return f;
}

RAMIE_SWITCHES_IDENTITY in_place_result run_descendants(cancel_scope& of, const live_count& live) noexcept {
  worker* w = this_worker();
  fiber& joiner = *w->current.get();
  while (live.any()) {
    fiber* f = nullptr;
    bool turn_of_others = false;
    if ((w->attention.load(std::memory_order_relaxed) & ~worker::chaos) != 0) [[unlikely]] {
      // Marked stalled, or told to stop: its loop attends to that.
      w = scheduler::leave_and_return(*w, departure::yield, joiner, nullptr);
      continue;
    }
    if (w->tempo.due(w->count.polls.get() + 1)) [[unlikely]] {
      f = w->sched.whose_turn_in_join(*w);
      turn_of_others = f != nullptr;
    }
    if (f == nullptr) f = w->sched.take_young(*w);
    if (f == nullptr) return {nullptr, w};
    platform::annotate::take_over(f);  // from its spawner, perhaps a fiber of this very worker
    if (fits(*w, *f, of)) [[likely]] {
      w = scheduler::start_in_place(*w, *f, joiner, of);
      continue;
    }
    platform::annotate::hand_over(f);
    if (!turn_of_others) return {f, w};
    w = scheduler::leave_and_return(*w, departure::yield, joiner, f);  // the joiner goes to the end of the ring
  }
  return {nullptr, w};
}

void give_back(fiber& f) noexcept {
  worker* const w = this_worker();
  w->count.enqueued.add(1);  // it was counted as polled
  w->sched.push_in_turn(*w, f);
}

}  // namespace ramie::detail
