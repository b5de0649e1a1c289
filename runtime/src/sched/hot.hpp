// SPDX-License-Identifier: BSL-1.0
// The scheduler's hot paths, inline: every fiber that parks, yields or is woken runs through here, and a
// switch costs one mispredicted return per call between the user's code and the jump.
#pragma once

#include <ramie/platform/fatal.hpp>

#include "../wait/wake.hpp"
#include "scheduler.hpp"

namespace ramie::detail {

inline void check_runnable(const fiber& f) noexcept {
  if constexpr (platform::debug_checks) {
    const auto seen = f.word.load();
    if (seen.state() != lifecycle::runnable) {
      platform::fatal("fiber #%u is queued while %s (F2): corruption of the runtime.", f.number, name_of(seen.state()));
    }
  }
}

inline void check_float_controls(const worker& w, const fiber& f) noexcept {
  if (platform::float_controls() != w.float_controls.get()) {
    platform::fatal("fiber #%u waits with a changed floating-point environment. Restore rounding mode and masks first.",
                    f.number);
  }
}

inline void scheduler::push_local(worker& w, fiber& f) noexcept {
  w.ring.push(&f, w.overflow);
  signal(&w);
}

inline void scheduler::push_in_turn(worker& w, fiber& f) noexcept {
  if (!chaotic) [[likely]]
    return push_local(w, f);
  put_in_chaos(w, f);
}

inline void scheduler::push_spawned(worker& w, fiber& f) noexcept {
  if (!chaotic) [[likely]]
    return push_local(w, f);
  put_in_chaos(w, f);
  (void)detour_after_wake(w);
}

// Whether the LIFO slot may come before the ring once more. While the ring is empty nobody is passed over.
RAMIE_FLATTEN bool newest_may_go_first(worker& w) noexcept {
  if (w.lifo_polls.get() < max_lifo_polls) [[likely]]
    return true;
  if (!w.ring.empty()) return false;
  w.lifo_polls.set(0);
  return true;
}

RAMIE_FLATTEN void scheduler::schedule_on(worker& w, fiber& f, bool may_detour) noexcept {
  check_runnable(f);
  w.count.enqueued.add(1);
  if (chaotic) {
    put_woken_in_chaos(w, f);
    if (may_detour) (void)detour_after_wake(w);
    return;
  }
  // Newest first, for its warm data; but no longer while others wait in the ring.
  if (!newest_may_go_first(w)) {
    push_local(w, f);
    return;
  }
  // It goes on soon: its waker has a few steps left, in which its stack can be fetched.
  const auto resume_at = reinterpret_cast<std::uintptr_t>(f.resume_point);
  for (std::size_t at = 0; at < prefetched_resume_bytes; at += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(resume_at + at), 1);
  }
  if (fiber* const older = w.newest.put(&f)) {
    push_local(w, *older);
    return;
  }
  // Nobody is woken for the LIFO slot: this worker comes to it next. If it does not, the monitor sees it.
  platform::light_fence();
  if (idle.look().monitor_asleep() && idle.clear_monitor_asleep()) watcher.wake();
}

RAMIE_FLATTEN fiber* scheduler::next_local(worker& w) noexcept {
  if (w.attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return nullptr;
  return next_undisturbed(w);
}

RAMIE_FLATTEN fiber* scheduler::next_undisturbed(worker& w) noexcept {
  const auto polls = w.count.polls.get() + 1;
  if (w.tempo.due(polls)) [[unlikely]] {
    if (fiber* const f = poll_is_due(w, polls)) return f;
  }
  fiber* f = nullptr;
  if (!w.newest.empty()) {
    const bool capped = !newest_may_go_first(w);
    f = w.newest.take();
    if (f != nullptr && !capped) [[likely]] {
      w.lifo_polls.add(1);
      w.count.lifo_hits.add(1);
      w.count.polls.set(polls);
      return f;
    }
    if (f != nullptr) push_local(w, *f);  // flushed: it waits its turn now, and thieves see it
  }
  f = w.ring.pop_old();
  if (f == nullptr) return poll_in_vain(w);
  w.lifo_polls.set(0);
  w.fresh_polls.set(0);
  w.count.polls.set(polls);
  return f;
}

inline platform::stack_block* scheduler::take_stack(worker& w, std::uint8_t size_class) noexcept {
  platform::stack_block* const spare = w.spares.get();
  if (size_class != w.sched.default_class) return w.sched.stacks.take(size_class);
  if (spare == nullptr) return fetch_spares(w);
  platform::annotate::take_over(&spare->note);
  w.spares.set(spare->next.get());
  w.spare_count.add(-1u);
  return spare;
}

RAMIE_FLATTEN void scheduler::commit_park(worker& w, fiber& f) noexcept {
  platform::annotate::take_over(&f);  // from the fiber to the thread that speaks for it now
  // After the commit the frame may be anybody's: read first what is needed later.
  const auto accounted = w.left_epoch.get();
  const auto ticket = f.wait_ticket.load(std::memory_order_relaxed);
  w.count.parks.add(1);
  if (platform::debug_checks && f.stack.get() == w.active.get()) {
    platform::fatal("the park of fiber #%u is committed on its own stack: another worker could resume a stack in use.",
                    f.number);
  }
  switch (f.word.commit_park()) {
    case commit_result::parked:
      // Parker's step 3 of cancel_scope.hpp.
      if (w.sched.cancel_epoch.load(std::memory_order_seq_cst) != accounted) [[unlikely]]
        fiber_wake(f, ticket);
      break;
    case commit_result::must_enqueue: w.sched.schedule_woken(w, f); break;
    case commit_result::left_claimed: break;
  }
}

// On the new stack, as the thread: nobody runs on the stack that was left, so now its business is done.
RAMIE_FLATTEN void scheduler::arrive(platform::thread_anchor* here) noexcept {
  worker& w = *static_cast<worker*>(here);
  switch (w.left_as.get()) {
    case departure::spare: keep_spare(w, *w.left_stack.get()); break;
    case departure::park: commit_park(w, *w.left_fiber.get()); break;
    case departure::yield: {
      fiber& f = *w.left_fiber.get();
      w.count.enqueued.add(1);
      f.word.running_to_runnable();
      if (w.overflow.has_shed.get()) [[unlikely]] {
        w.sched.push_behind_shed(w, f);
      } else {
        w.sched.push_in_turn(w, f);
      }
      break;
    }
    case departure::step_aside: {
      fiber& f = *w.left_fiber.get();
      f.word.running_to_runnable();
      w.sched.schedule_aside(w, f);
      break;
    }
    case departure::native: break;
  }
}

RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY worker* scheduler::switch_to(worker& w, platform::stack_block& to,
                                                                   platform::context resume, departure as,
                                                                   platform::context& left_at) noexcept {
  platform::stack_block& from = *w.active.get();
  w.left_as.set(as);
  w.active.set(&to);
  return static_cast<worker*>(platform::switch_stack(
      &w, from, left_at, to, resume, [](platform::thread_anchor* here) RAMIE_FLATTEN_LAMBDA { arrive(here); }));
}

RAMIE_FLATTEN worker* scheduler::depart(worker& w, departure as, fiber* leaver, fiber* next) noexcept {
  if constexpr (platform::debug_checks) check_float_controls(w, *leaver);
  if (leaver->stack.get() == nullptr) [[unlikely]] {  // from now on it is its own
    leaver->stack.set(w.active.get());
    w.count.adopted.add(1);
  }
  platform::annotate::hand_over(leaver);
  w.left_fiber.set(leaver);
  platform::stack_block* to = nullptr;
  platform::context resume = nullptr;
  const auto stack_of = [](fiber& f) RAMIE_FLATTEN_LAMBDA {
    platform::annotate::take_over(&f);  // from its spawner, as in next_plan: it may have been stolen
    return f.stack.get();
  };
  if (next != nullptr && (to = stack_of(*next)) != nullptr) [[likely]] {
    resume = next->resume_point;
    w.count.hand_offs.add(1);
  } else {
    w.count.loop_switches.add(1);
    to = take_stack(w, w.sched.default_class);
    if (to == nullptr) to = &w.native;
    resume = to->resume_point;
    w.handoff.set(next);
  }
  return switch_to(w, *to, resume, as, leaver->resume_point);
}

RAMIE_FLATTEN worker* scheduler::leave_and_return(worker& w, departure as, fiber& self, fiber* next) noexcept {
  worker* const now = depart(w, as, &self, next);
  platform::annotate::take_over(&self);  // from its waker, who still looked at its scopes after it had woken it
  now->current.set(&self);
  self.word.runnable_to_running();
  return now;
}

}  // namespace ramie::detail
