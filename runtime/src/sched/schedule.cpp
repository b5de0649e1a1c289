// SPDX-License-Identifier: BSL-1.0
// Making fibers runnable, and telling somebody.
#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>

#include "hot.hpp"

namespace ramie::detail {

void scheduler::schedule(fiber& f) noexcept {
  worker* const w = this_worker();
  if (w != nullptr && &w->sched == this) {
    schedule_on(*w, f);
    return;
  }
  check_runnable(f);
  enqueued_outside.fetch_add(1, std::memory_order_relaxed);
  injection.put(&f);
  signal(nullptr);
}

void scheduler::signal_slowly(worker* by, idle_set::snapshot seen) noexcept {
  bool woke_one = false;
  if (seen.should_wake()) {
    if (const auto index = idle.claim_parked()) woke_one = rouse(*index);
  }
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
  enqueued_outside.fetch_add(1, std::memory_order_relaxed);
  injection.put(&f);
  signal(nullptr);
}

void spawn(const fiber_ops& ops, void* data, cancel_scope& scope, std::size_t stack_size, source_location site) {
  scheduler& sched = scope.owner_scheduler();
  worker* w = this_worker();
  if (w != nullptr && &w->sched != &sched) w = nullptr;
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
  f->size_class = stack_size == 0 ? sched.default_class : platform::stack_class_for(stack_size);
  sched.launch(w, *f);
}

}  // namespace ramie::detail
