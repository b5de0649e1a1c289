// SPDX-License-Identifier: BSL-1.0
// Making fibers: a frame for what the room above has made, and a place in the queue.
#include <ramie/runtime/spawn.hpp>

#include <ramie/error.hpp>
#include <ramie/runtime/join.hpp>

#include "../task/extras.hpp"
#include "runner.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

RAMIE_FLATTEN fiber* runner::take_frame(worker& w) {
  return w.run.frames.take(w.sched.frames);
}

RAMIE_NOINLINE fiber* runner::refill_frames(worker& w) noexcept {
  try {
    return take_frame(w);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace {

// Everything but the queue.
RAMIE_FLATTEN void prepare(fiber& f, const fiber_ops& ops, fiber_record& record, cancel_scope& scope,
                           std::uint8_t size_class, source_location site) noexcept {
  record.ops.store(&ops, std::memory_order_relaxed);
  f.record = &record;
  record.set_frame(&f);
  f.begin_life(scope, size_class, site);
  f.word.init_to_runnable(f.low_ticket());
}

std::uint8_t class_or_default(const scheduler& sched, std::size_t stack_size) {
  return stack_size == 0 ? sched.default_class : checked_stack_class(stack_size, "nursery::spawn: the stack size");
}

}  // namespace

void spawn_here(const call_context& at, const fiber_ops& ops, fiber_record& record, cancel_scope& scope,
                std::size_t stack_size, source_location site) {
  worker_local* local = at.local;
  const auto size_class = class_or_default(*local->runs_in, stack_size);
  if (at.self->record->extras() != nullptr) [[unlikely]] {
    inherit_locals(*at.self->record, record);
    local = this_worker_local();  // a copy constructor that waits may come back elsewhere
  }
  worker& w = static_cast<worker&>(*local);
  fiber* const f = runner::take_frame(w);
  prepare(*f, ops, record, scope, size_class, site);
  if (record.extras() != nullptr) [[unlikely]]
    announce_extras(*f);
  // What the spawner has found clean is clean for a child of its innermost scope.
  f->seen_epoch.set(at.self->scope == &scope ? at.self->seen_epoch.get() : 0);
  platform::annotate::hand_over(f);
  w.count.spawned.add(1);
  run_queues::push_spawned(w, *f);
}

namespace {

// try_spawn_task ends with these, and needs no frame of its own.
RAMIE_NOINLINE task_spawn push_task_slow(worker& w, counted_scope& scope, fiber_record& task) noexcept {
  if (run_queues::push_task(w, task)) return task_spawn::done;
  scope.live.spawn_failed(true);
  w.count.spawned.add(-1);
  return task_spawn::no_memory;
}
RAMIE_NOINLINE task_spawn signal_and_agree(worker& w) noexcept {
  w.pool.signal(&w);
  return task_spawn::done;
}

// Like these two, for try_spawn_made.
RAMIE_NOINLINE fiber_record* refuse_made(counted_scope& scope, fiber_record& record) noexcept {
  scope.unused.put(record);
  return nullptr;
}
RAMIE_NOINLINE fiber_record* push_made_slow(counted_scope& scope, fiber_record& record, worker& w) noexcept {
  return push_task_slow(w, scope, record) == task_spawn::done ? &record : refuse_made(scope, record);
}
RAMIE_NOINLINE fiber_record* signal_for_made(counted_scope&, fiber_record& record, worker& w) noexcept {
  w.pool.signal(&w);
  return &record;
}

// Whether a child of the calling fiber has nothing to inherit.
RAMIE_FLATTEN bool spawns_plainly(const worker& w) noexcept {
  return !w.current.get()->has_extras.get();
}

// The record is a task, and is about to be queued.
RAMIE_FLATTEN void count_child(worker& w, counted_scope& scope, fiber_record& record) noexcept {
  platform::annotate::hand_over(&record);
  scope.live.spawned_by_owner();
  w.count.spawned.add(1);
}

}  // namespace

task_spawn try_spawn_task(counted_scope& scope, fiber_record& record, source_location site) noexcept {
  worker& w = *this_worker();
  if (!spawns_plainly(w)) [[unlikely]]
    return task_spawn::not_plain;
  record.make_task(scope, site);
  count_child(w, scope, record);
  if (!run_queues::try_push_task(w, record)) [[unlikely]]
    return push_task_slow(w, scope, record);
  if (!w.pool.needs_no_signal()) [[unlikely]]
    return signal_and_agree(w);
  return task_spawn::done;
}

fiber_record* try_spawn_made(counted_scope& scope, fiber_record& record, worker_local& here) noexcept {
  worker& w = static_cast<worker&>(here);
  if (!spawns_plainly(w)) [[unlikely]]
    return refuse_made(scope, record);
  count_child(w, scope, record);
  if (!run_queues::try_push_task(w, record)) [[unlikely]]
    return push_made_slow(scope, record, w);
  if (!w.pool.needs_no_signal()) [[unlikely]]
    return signal_for_made(scope, record, w);
  return &record;
}

void spawn(const fiber_ops& ops, fiber_record& record, cancel_scope& scope, std::size_t stack_size,
           source_location site) {
  scheduler& sched = scope.owner_scheduler();
  const call_context at = current_context();
  if (at.self != nullptr && at.local->runs_in == &sched) {
    return spawn_here(at, ops, record, scope, stack_size, site);
  }
  const auto size_class = class_or_default(sched, stack_size);
  sched.pool.start_first();
  sched.queues.wait_for_capacity();
  fiber* const f = sched.frames.take_one();
  prepare(*f, ops, record, scope, size_class, site);
  f->reaches_forks = scope.parent() == nullptr;  // run's own: it has no handle
  if (record.extras() != nullptr) announce_extras(*f);
  f->seen_epoch.set(0);
  platform::annotate::hand_over(f);
  sched.queues.push_from_outside(sched.pool, *f);
}

}  // namespace ramie::runtime_internal
