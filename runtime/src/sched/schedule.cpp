// SPDX-License-Identifier: BSL-1.0
// Making fibers runnable, and telling somebody.
#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>

#include "hot.hpp"

namespace ramie::detail {

void shed_to_injection::put(fiber* f) noexcept {
  from.sched.injection.put(f);
}

void shed_to_injection::put(fiber* const* items, std::uint32_t count) noexcept {
  from.count.overflows.add(1);
  from.sched.injection.put(items, count);
}

void scheduler::schedule_woken(worker& w, fiber& f) noexcept {
  schedule_on(w, f);
}

// Once the fiber is in the queue it may run, end, and let its runtime end: the destructor waits for us.
void scheduler::schedule_outside(fiber& f) noexcept {
  check_runnable(f);
  enqueued_outside.fetch_add(1, std::memory_order_relaxed);
  outside_in_flight.fetch_add(1, std::memory_order_relaxed);
  injection.put(&f);
  signal(nullptr);
  outside_in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in ~scheduler
}

void scheduler::signal_slowly(worker* by, idle_set::snapshot seen) noexcept {
  const bool woke_one = seen.should_wake() && wake_somebody();
  // A worker woken from outside arms the monitor itself if it leaves anything queued (found_work).
  const bool needs_watching = by != nullptr || !woke_one;
  if (needs_watching && seen.monitor_asleep() && idle.clear_monitor_asleep()) watcher.wake();
}

void scheduler::launch(worker* w, fiber& f) {
  f.word.init_to_runnable();
  platform::annotate::hand_over(&f);
  if (w != nullptr) {
    w->count.spawned.add(1);
    w->count.enqueued.add(1);
    if (chaotic) {
      injection.put(&f);
      signal(w);
    } else {
      push_local(*w, f);
    }
    return;
  }
  schedule_outside(f);
}

void spawn(const fiber_ops& ops, void* data, cancel_scope& scope, std::size_t stack_size, source_location site) {
  scheduler& sched = scope.owner_scheduler();
  worker* w = this_worker();
  if (w != nullptr && &w->sched != &sched) w = nullptr;
  const auto size_class =
      stack_size == 0 ? sched.default_class : checked_stack_class(stack_size, "the stack size of a spawn");
  if (w == nullptr) {
    sched.ensure_a_worker();
    sched.injection.wait_for_room();
  }
  fiber* const f = w != nullptr ? w->frames.take(sched.frames) : sched.frames.take_one();
  f->word.initialise(static_cast<std::uint16_t>(f->wait_ticket.load(std::memory_order_relaxed)));
  f->stack.set(nullptr);
  f->ops = &ops;
  f->data = data;
  f->scope = f->home = &scope;
  f->seen_epoch.set(0);
  f->owner = &sched;
  f->site = site;
  f->last_worker = 0;
  f->size_class = size_class;
  f->cancel_delivered = false;
  sched.launch(w, *f);
}

}  // namespace ramie::detail
