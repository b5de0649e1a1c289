// SPDX-License-Identifier: BSL-1.0
// Making fibers runnable, and telling somebody.
#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>

#include <ramie/runtime/join.hpp>
#include <ramie/runtime/spawn.hpp>

#include "../task/extras.hpp"
#include "hot.hpp"

namespace ramie::detail {

void shed_to_injection::put(fiber* f) noexcept {
  from.sched.injection.put(f);
}

void shed_to_injection::put(fiber* const* items, std::uint32_t count) noexcept {
  from.count.overflows.add(1);
  has_shed.set(true);
  for (std::uint32_t i = 0; i < count; ++i) platform::annotate::take_over(items[i]);
  from.sched.injection.put(items, count);
}

void scheduler::schedule_woken(worker& w, fiber& f) noexcept {
  schedule_on(w, f);
}

// Those that the ring has shed were queued here, too: else one that spawns many and yields in between would spawn all of
// them before most have had a turn.
void scheduler::push_behind_shed(worker& w, fiber& f) noexcept {
  w.overflow.has_shed.set(false);
  if (chaotic) return push_in_turn(w, f);
  platform::annotate::take_over(&f);
  injection.put(&f);
  signal(&w);
}

void scheduler::schedule_aside(worker& w, fiber& f) noexcept {
  if (!chaotic && w.ring.empty() && w.newest.empty()) return schedule_on(w, f);
  w.count.enqueued.add(1);
  push_in_turn(w, f);
}

// Once the fiber is in the queue it may run, end, and let its runtime end: the destructor waits for us.
void scheduler::schedule_outside(fiber& f) noexcept {
  check_runnable(f);
  enqueued_outside.fetch_add(1, std::memory_order_relaxed);
  outside_in_flight.fetch_add(1, std::memory_order_relaxed);
  injection.put(&f);
  platform::full_fence();  // pairs with the last searcher's, which interrupts nobody: idle_set I3
  signal(nullptr);
  outside_in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in ~scheduler
}

void scheduler::signal_slowly(worker* by, idle_set::snapshot seen) noexcept {
  const bool woke_one = seen.should_wake() && wake_somebody();
  // A worker woken from outside arms the monitor itself if it leaves anything queued (found_work).
  const bool needs_watching = by != nullptr || !woke_one;
  if (needs_watching && seen.monitor_asleep() && idle.clear_monitor_asleep()) watcher.wake();
}

namespace {

// Everything but the queue.
RAMIE_FLATTEN void prepare(fiber& f, const fiber_ops& ops, fiber_record& record, cancel_scope& scope,
                           std::uint8_t size_class, source_location site) noexcept {
  f.ops = &ops;
  f.record = &record;
  record.frame.store(&f, std::memory_order_release);
  f.scope = f.home = &scope;
  f.site.set(site);
  f.last_worker.set(0);
  f.size_class = size_class;
  f.cancel_delivered = 0;
  f.word.initialise_runnable(static_cast<std::uint16_t>(f.wait_ticket.load(std::memory_order_relaxed)));
}

std::uint8_t class_or_default(const scheduler& sched, std::size_t stack_size) {
  return stack_size == 0 ? sched.default_class : checked_stack_class(stack_size, "the stack size of a spawn");
}

}  // namespace

void spawn_here(const whereabouts& at, const fiber_ops& ops, fiber_record& record, cancel_scope& scope,
                std::size_t stack_size, source_location site) {
  worker_desk* desk = at.desk;
  const auto size_class = class_or_default(*desk->runs_in, stack_size);
  if (at.self->record->extras != nullptr) [[unlikely]] {
    inherit_locals(*at.self->record, record);
    desk = this_desk();  // a copy constructor that waits may come back elsewhere
  }
  worker& w = static_cast<worker&>(*desk);
  fiber* const f = w.frames.take(w.sched.frames);
  prepare(*f, ops, record, scope, size_class, site);
  if (record.extras != nullptr) [[unlikely]]
    announce_extras(*f);
  // What the spawner has found clean is clean for a child of its innermost scope.
  f->seen_epoch.set(at.self->scope == &scope ? at.self->seen_epoch.get() : 0);
  platform::annotate::hand_over(f);
  w.count.spawned.add(1);
  w.sched.push_spawned(w, *f);
}

namespace {

// These two return true: spawn_simply ends with them, and needs no frame of its own.
RAMIE_NOINLINE bool push_with_difficulty(worker& w, fiber& f) noexcept {
  w.sched.push_spawned(w, f);
  return true;
}
RAMIE_NOINLINE bool signal_and_agree(worker& w) noexcept {
  w.sched.signal(&w);
  return true;
}

}  // namespace

bool spawn_simply(counted_scope& scope, fiber_record& record, source_location site, const fiber_ops& ops) noexcept {
  worker& w = *this_worker();
  const fiber& self = *w.current.get();
  if (self.record->extras != nullptr) [[unlikely]]
    return false;
  fiber* const f = w.frames.take_if_any();
  if (f == nullptr) [[unlikely]]
    return false;
  prepare(*f, ops, record, scope, w.sched.default_class, site);
  f->seen_epoch.set(self.scope == &scope ? self.seen_epoch.get() : 0);
  platform::annotate::hand_over(f);
  scope.live.spawned_by_owner();
  w.count.spawned.add(1);
  if (w.sched.chaotic || !w.ring.try_push(f)) [[unlikely]]
    return push_with_difficulty(w, *f);
  platform::light_fence();
  return w.sched.idle.look().nothing_to_do() || signal_and_agree(w);
}

void spawn(const fiber_ops& ops, fiber_record& record, cancel_scope& scope, std::size_t stack_size,
           source_location site) {
  scheduler& sched = scope.owner_scheduler();
  const whereabouts at = look_around();
  if (at.self != nullptr && at.desk->runs_in == &sched) {
    return spawn_here(at, ops, record, scope, stack_size, site);
  }
  const auto size_class = class_or_default(sched, stack_size);
  sched.ensure_a_worker();
  sched.injection.wait_for_room();
  fiber* const f = sched.frames.take_one();
  prepare(*f, ops, record, scope, size_class, site);
  if (record.extras != nullptr) announce_extras(*f);
  f->seen_epoch.set(0);
  platform::annotate::hand_over(f);
  sched.schedule_outside(*f);
}

}  // namespace ramie::detail
