// SPDX-License-Identifier: BSL-1.0
// Single tasks: how they start, end, are waited for and let go. The rules of the record: task_block.hpp.
#include <cstring>
#include <string>
#include <utility>

#include <ramie/error.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/ready.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

#include "core.hpp"

namespace ramie::nursery_internal {

using namespace runtime_internal;

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void nursery_has_ended(const char* function) {
  throw usage_error(std::string("ramie: ") + function +
                    ": used after the task's nursery has ended. Take the result before that.");
}

// Keeps a nursery there while somebody outside its tree uses it; throws if it is gone. See core.hpp.
class nursery_pin {
 public:
  nursery_pin(nursery_core& n, std::uint64_t life, const call_context& at, const char* function) : nursery_pin(n, at) {
    if (n.life.load(std::memory_order_acquire) == life) return;
    leave();
    nursery_has_ended(function);
  }
  // Like the constructor above, but does not check that the nursery is still in that life.
  nursery_pin(nursery_core& n, const call_context& at) noexcept
      : home_(n), announced_(role_of_caller(n, at) == caller_role::none) {
    if (!announced_) return;
    home_.notes.fetch_add(nursery_core::one_visitor, std::memory_order_seq_cst);  // 1
    platform::heavy_fence();                                                      // 2
  }
  ~nursery_pin() { leave(); }
  // The caller will decrement `visitors` itself.
  void release() noexcept { announced_ = false; }
  nursery_pin(const nursery_pin&) = delete;
  nursery_pin& operator=(const nursery_pin&) = delete;

 private:
  void leave() noexcept {
    if (std::exchange(announced_, false)) home_.notes.fetch_sub(nursery_core::one_visitor, std::memory_order_release);
  }
  nursery_core& home_;
  bool announced_;
};

// The end of one task.
class task_end final : public waitable {
 public:
  task_end(nursery_core& home, task_block& task) noexcept : home_(home), task_(task) {}

  bool try_complete(waiter&) override { return has_finished(task_); }
  bool publish(waiter& node) override {
    std::lock_guard hold(home_.waiters_lock);
    if ((task_.marks.fetch_or(task_wanted, std::memory_order_acq_rel) & task_finished) != 0) return false;
    home_.waiters.add(node);  // before whoever ends the task can take the lock
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    std::lock_guard hold(home_.waiters_lock);
    home_.waiters.remove(node);
  }

 private:
  nursery_core& home_;
  task_block& task_;
};

void wake_getters(nursery_core& home, const task_block& task) noexcept {
  wake_batch wakes;
  std::lock_guard hold(home.waiters_lock);
  home.waiters.claim_if([&task](const waiter& node) { return static_cast<const keyed_waiter&>(node).key == &task; },
                        wakes);
}

[[gnu::noinline]] reserved_block reserve_slow(nursery_core& n, unsigned size_class, std::size_t bytes,
                                                std::size_t alignment) {
  const bool shared = must_be_in_tree(n, current_context(), "nursery::spawn") != caller_role::owner;
  const auto from = [&](block_store& store) -> reserved_block {
    void* const at = size_class == solo_class ? store.allocate_solo(bytes, alignment, n.ended())
                                              : store.allocate(size_class, n.ended());
    return {at, shared};
  };
  if (!shared) {
    const auto block = from(n.store);
    if (n.store.has_grown()) n.note(has_grown);
    return block;
  }
  nursery_more& more = n.need_more();
  std::lock_guard hold(more.mutex);
  return from(more.store);
}

void count_in(nursery_core& n, bool by_owner) noexcept {
  if (by_owner) {
    n.live.spawned_by_owner();
  } else {
    n.live.spawned_by_descendant();
    n.spawned_by_descendants.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

// The block is made of its parts: a task_block, and what the bytes of the closure stand for.
task_block* spawn_words(nursery_core& n, const task_type& type, source_location site, closure_words closure) noexcept {
  worker_local& here = this_worker_local_or_none();
  if (!n.is_open_to(here.current.get())) [[unlikely]]
    return nullptr;
  void* storage = n.unused.take();
  if (storage == nullptr) [[unlikely]] {
    storage = n.store.try_carve(0);
    if (storage == nullptr) [[unlikely]]
      return nullptr;
  }
  auto* const task = ::new (storage) task_block(n, site);
  std::memcpy(static_cast<char*>(storage) + type.closure_at, &closure, sizeof closure);
  task->ops.store(&type, std::memory_order_release);
  return static_cast<task_block*>(try_spawn_made(n, *task, here));
}

reserved_block reserve_task(nursery_core& n, unsigned size_class) {
  if (n.is_open_to(this_worker_local_or_none().current.get())) [[likely]] {
    if (void* const storage = n.store.try_allocate(size_class)) [[likely]]
      return {storage, false};
  }
  return reserve_slow(n, size_class, 0, 0);
}

reserved_block reserve_solo_task(nursery_core& n, std::size_t bytes, std::size_t alignment) {
  return reserve_slow(n, solo_class, bytes, alignment);
}

void unreserve_task(nursery_core& n, void* storage, block_origin from) noexcept {
  if (!from.shared) return n.store.recycle(storage, from);
  nursery_more& more = *n.has_more();
  std::lock_guard hold(more.mutex);
  more.store.recycle(storage, from);
}

task_spawn launch_task(nursery_core& n, task_block& task, source_location site) noexcept {
  return try_spawn_task(n, task, site);
}

void launch_task_slow(nursery_core& n, task_block& task, const spawn_options& how, task_spawn so_far) {
  const bool by_owner = !task.origin.shared;
  bool counted = false;
  try {
    if (so_far == task_spawn::no_memory) throw std::bad_alloc();
    if (!how.name.empty()) name_fiber(task, how.name);
    count_in(n, by_owner);
    counted = true;
    spawn_here(current_context(), task_type_of(task), task, n, how.stack_size, how.site);
  } catch (...) {
    if (counted) n.live.spawn_failed(by_owner);
    if (so_far == task_spawn::not_plain) drop_extras(task);
    task_type_of(task).destroy_closure(task);
    unreserve_task(n, &task, task.origin);
    throw;
  }
}

// In the child, in a catch block.
fiber_end task_failed(task_block& task) noexcept {
  fiber& self = *task.frame();
  auto& home = static_cast<nursery_core&>(home_of(self));
  const std::exception_ptr what = current_failure(self);
  if (what == nullptr) {
    task.outcome = task_outcome::cancelled;
    return fiber_end::cancelled;
  }
  task.outcome = task_outcome::failed;
  home.record_failure(&task, what, self);
  cancel_reason why{cancel_kind::sibling_failure, {}, home.site()};
  sign(why, self);
  try {
    why.text = describe(self) + " failed: " + text_of(what);
  } catch (const std::bad_alloc&) {  // the cause says it
  }
  home.cancel(std::move(why), what);
  return fiber_end::done;
}

void task_discarded(task_block& task, discard_cause why) noexcept {
  if (why == discard_cause::cancelled) {
    task.outcome = task_outcome::cancelled;
    return;
  }
  try {
    if (why == discard_cause::no_memory) throw std::bad_alloc();
    throw stack_exhausted();
  } catch (...) {
    (void)task_failed(task);
  }
}

namespace {

// The task has ended and was targeted. By its address alone: without a cancellation its block may be another's.
[[gnu::cold, gnu::noinline]] void end_cancellation(nursery_core& home, task_block& task) noexcept {
  nursery_more& more = *home.has_more();
  std::unique_lock hold(more.mutex);
  const auto own = more.cancellations.find(&task);
  if (own == more.cancellations.end()) return;  // there was no memory for it
  task_cancellation& cancellation = own->second;  // stays where it is, and is there until it has ended
  hold.unlock();
  cancellation.scope.leave_fiber();
  hold.lock();
  cancellation.ended = true;
  if (!cancellation.dropped) return;
  more.cancellations.erase(&task);
  hold.unlock();  // the result's destructor is the user's
  destroy_result(task);
  task.dropped.store(true, std::memory_order_release);
}

}  // namespace

// In place, a task whose owner has let go of it and that leaves nothing is not retired: the join has done it
// (runner::call_task).
void task_retired(fiber_record& record, cancel_scope& scope, const cancel_scope* joiner) noexcept {
  auto& task = static_cast<task_block&>(record);
  auto& home = static_cast<nursery_core&>(scope);
  const bool in_place = joiner == &home;
  if (in_place) home.retired_in_place.add(1);
  if (task.dropped.load(std::memory_order_acquire)) {
    destroy_result(task);
    if (in_place && !task.origin.shared) {
      home.store.recycle(&task, task.origin);
    } else {
      home.note(scattered);
      task.marks.store(task_finished, std::memory_order_release);
    }
  } else {
    if ((task.leaves & leaves_result) != 0) {
      home.note(needs_slow_teardown | has_results);
    }
    home.note(scattered);
    const auto marks = task.marks.fetch_or(task_finished, std::memory_order_acq_rel);
    if ((marks & task_targeted) != 0) [[unlikely]]
      end_cancellation(home, task);
    if ((marks & task_wanted) != 0) wake_getters(home, task);
  }
  if (in_place) {
    home.live.ended_in_place();
  } else {
    home.live.ended_elsewhere();
  }
}

void task_aimed_at(fiber_record& record, fiber& f) noexcept {
  nursery_more& more = *static_cast<nursery_core&>(home_of(f)).has_more();
  std::lock_guard hold(more.mutex);
  const auto own = more.cancellations.find(&static_cast<const task_block&>(record));
  if (own != more.cancellations.end()) own->second.scope.aim_at(f);
}

namespace {

const wait_reason waits_for_task{"task"};

}  // namespace

// The fiber that ended a former task in this block may still be waking that task's getters, and wake this one by
// mistake: hence the loops.
void await_task(const task_handle& handle) {
  call_context at = current_context();
  keep_to_budget(at);
  const nursery_pin here(*handle.home, handle.life, at, "task::wait");
  if (has_finished(*handle.block)) return;
  task_end end(*handle.home, *handle.block);
  keyed_waiter node(handle.block);
  do {
    (void)fiber_wait_fresh_first(end, node, waits_for_task);
  } while (!has_finished(*handle.block));
}

bool await_task_until(const task_handle& handle, deadline until) {
  call_context at = current_context();
  keep_to_budget(at);
  const nursery_pin here(*handle.home, handle.life, at, "task::wait_until");
  task_end end(*handle.home, *handle.block);
  keyed_waiter node(handle.block);
  while (!has_finished(*handle.block)) {
    if (fiber_wait_until(end, node, waits_for_task, until.when()) == wait_result::timed_out) return false;
  }
  return true;
}

namespace {

// For select. A task outside the caller's tree is announced as by `nursery_pin`, for as long as the select lasts.
nursery_core& nursery_of(const ready_source& t) noexcept {
  return *static_cast<nursery_core*>(t.home);
}
task_block& task_of(const ready_source& t) noexcept {
  return *static_cast<task_block*>(t.what);
}
bool must_announce(const ready_source& t) noexcept {
  return role_of_caller(nursery_of(t), current_context()) == caller_role::none;
}

constexpr ready_ops task_ready_ops{
    [](const ready_source& t, void* memory) -> waiter& {
      nursery_pin(nursery_of(t), t.number, current_context(), "on_ready").release();
      return make_ready_node<keyed_waiter>(memory, t.what);
    },
    [](const ready_source& t, waiter&) noexcept {
      if (must_announce(t)) nursery_of(t).notes.fetch_sub(nursery_core::one_visitor, std::memory_order_release);
    },
    [](const ready_source& t, waiter&) { return has_finished(task_of(t)); },
    [](const ready_source& t, waiter& node) noexcept { return task_end(nursery_of(t), task_of(t)).publish(node); },
    [](const ready_source& t, waiter& node) noexcept { task_end(nursery_of(t), task_of(t)).unpublish(node); }};

}  // namespace

ready_source task_ready_source(const task_handle& handle) noexcept {
  return {&task_ready_ops, handle.block, handle.home, handle.life};
}

bool task_done(const task_handle& handle) {
  const nursery_pin here(*handle.home, handle.life, current_context(), "task::done");
  return has_finished(*handle.block);
}

void rethrow_failure(const task_handle& handle) {
  const nursery_pin here(*handle.home, handle.life, current_context(), "task::get");
  task_block& task = *handle.block;
  if (task.outcome == task_outcome::failed) {
    if (auto what = handle.home->failure_of(task)) std::rethrow_exception(std::move(what));
    throw std::bad_alloc();  // there was no memory to keep it, nor was it the first; it was reported
  }
  if (task.outcome != task_outcome::cancelled) return;
  check_cancelled();  // who is cancelled, too, ends by that, and not by a failure that is none of its own
  throw handle.home->ending_of(task);
}

std::exception_ptr current_failure() noexcept {
  return current_failure(*current_context().self);
}

void report_lost_end(const std::exception_ptr& failure) noexcept {
  std::string who;
  try {
    who = describe(*current_context().self);
  } catch (const std::bad_alloc&) {
  }
  report_lost_failure(who, failure);
}

bool cancel_task(const task_handle& handle, cancel_reason reason) {
  nursery_core& home = *handle.home;
  const nursery_pin here(home, handle.life, current_context(), "task::cancel");
  if (has_finished(*handle.block)) return false;
  sign_as_caller(reason);
  nursery_more& more = home.need_more();
  cancel_scope* own = nullptr;
  {
    std::lock_guard hold(more.mutex);
    if ((handle.block->marks.fetch_or(task_targeted, std::memory_order_seq_cst) & task_finished) != 0) return false;
    const auto [at, fresh] = more.cancellations.try_emplace(handle.block, home, spawn_site(*handle.block));
    own = &at->second.scope;
    own->pin();
    platform::heavy_fence();
    if (fiber* const f = handle.block->frame(std::memory_order_acquire)) own->aim_at(*f);
  }
  return own->cancel_and_unpin(std::move(reason));
}

void value_taken(const task_handle& handle) {
  if (std::exchange(handle.block->outcome, task_outcome::taken) == task_outcome::taken) {
    throw usage_error("ramie: task::get: called for the second time, the value is gone. Keep it the first time.");
  }
}

namespace {

// True: the task was cancelled and has not ended; its fiber lets go of the block.
bool leave_to_fiber(task_block& task, nursery_core& home) noexcept {
  if ((task.marks.load(std::memory_order_acquire) & task_targeted) == 0) return false;
  nursery_more& more = *home.has_more();
  std::lock_guard hold(more.mutex);
  const auto own = more.cancellations.find(&task);
  if (own == more.cancellations.end()) return false;
  if (own->second.ended) {
    more.cancellations.erase(own);
    return false;
  }
  own->second.dropped = true;
  return true;
}

[[gnu::noinline]] void drop_elsewhere(task_block& task, nursery_core& home, std::uint64_t life) noexcept {
  const nursery_pin here(home, current_context());
  if (home.life.load(std::memory_order_acquire) != life || leave_to_fiber(task, home)) return;
  if (has_finished(task)) destroy_result(task);
  task.dropped.store(true, std::memory_order_release);
}

// By the owner: somebody waits for it, has cancelled it, or it has ended.
[[gnu::noinline]] void drop_marked(task_block& task, nursery_core& home) noexcept {
  if (leave_to_fiber(task, home)) return;
  if (!has_finished(task)) return task.dropped.store(true, std::memory_order_release);
  destroy_result(task);
  if (!task.origin.shared) return home.store.recycle(&task, task.origin);
  task.dropped.store(true, std::memory_order_release);
}

// After the join, or not by the owner.
[[gnu::noinline]] void drop_late(task_block& task, nursery_core& home, std::uint64_t life) noexcept {
  if (!is_owner(home, current_context())) return drop_elsewhere(task, home, life);
  if (task.marks.load(std::memory_order_acquire) != 0) return drop_marked(task, home);
  task.dropped.store(true, std::memory_order_release);
}

}  // namespace

void drop_task(task_block& task, nursery_core& home, std::uint64_t life) noexcept {
  if (home.life.load(std::memory_order_acquire) != life) [[unlikely]]
    return;
  if (!home.is_open_to(this_worker_local_or_none().current.get())) [[unlikely]]
    return drop_late(task, home, life);
  if (task.marks.load(std::memory_order_acquire) != 0) [[unlikely]]  // pairs with the releases in task_retired
    return drop_marked(task, home);
  task.dropped.store(true, std::memory_order_release);
}

void no_such_task(const char* function) {
  throw usage_error(std::string("ramie: ") + function +
                    ": there is no child behind this handle, it was moved from, reset, or never spawned. Use what "
                    "spawn() returned.");
}

}  // namespace ramie::nursery_internal
