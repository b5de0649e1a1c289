// SPDX-License-Identifier: BSL-1.0
// Single tasks: how they start, end, are waited for and let go. The rules of the record: task_record.hpp.
#include <string>
#include <utility>

#include <ramie/error.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

#include "core.hpp"

namespace ramie::detail {

namespace {

// Keeps a nursery there while somebody outside its tree uses it; throws if it is gone. See core.hpp.
class visit {
 public:
  visit(nursery_core& n, std::uint64_t life, const whereabouts& at) : visit(n, at) {
    if (n.life.load(std::memory_order_acquire) == life) return;
    leave();
    throw usage_error("ramie: a task used after its nursery has ended. Take the result before.");
  }
  // The same, without the question.
  visit(nursery_core& n, const whereabouts& at) noexcept : home_(n), announced_(kinship_to(n, at) == kinship::none) {
    if (!announced_) return;
    home_.visitors.fetch_add(1, std::memory_order_seq_cst);  // 1
    platform::heavy_fence();                                 // 2
  }
  ~visit() { leave(); }
  // Somebody else will leave.
  void stay() noexcept { announced_ = false; }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;

 private:
  void leave() noexcept {
    if (std::exchange(announced_, false)) home_.visitors.fetch_sub(1, std::memory_order_release);
  }
  nursery_core& home_;
  bool announced_;
};

// The end of one task.
class task_end final : public waitable {
 public:
  task_end(nursery_core& home, task_record& task) noexcept : home_(home), task_(task) {}

  bool try_complete(waiter&) override { return has_finished(task_); }
  bool publish(waiter& node) override {
    std::lock_guard hold(home_.waiters_lock);
    if ((task_.end.fetch_or(task_wanted, std::memory_order_acq_rel) & task_finished) != 0) return false;
    home_.waiters.add(node);  // before whoever ends the task can take the lock
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    std::lock_guard hold(home_.waiters_lock);
    home_.waiters.remove(node);
  }

 private:
  nursery_core& home_;
  task_record& task_;
};

void tell_getters(nursery_core& home, const task_record& task) noexcept {
  waiter* ready = nullptr;
  {
    std::lock_guard hold(home.waiters_lock);
    home.waiters.claim_if([&task](const waiter& node) { return static_cast<const keyed_waiter&>(node).key == &task; },
                          ready);
  }
  complete_all(ready);
}

[[gnu::noinline]] reserved_block reserve_slowly(nursery_core& n, unsigned size_class, std::size_t bytes,
                                                std::size_t alignment) {
  const bool shared = must_be_family(n, look_around(), "a spawn into") != kinship::owner;
  const auto from = [&](task_store& store) -> reserved_block {
    void* const at =
        size_class == solo_class ? store.allocate_solo(bytes, alignment, n.ended()) : store.allocate(size_class, n.ended());
    return {at, shared};
  };
  if (!shared) return from(n.store);
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

reserved_block reserve_task(nursery_core& n, unsigned size_class) {
  if (is_owner(n, look_around()) && !n.joined.get()) [[likely]] {
    if (void* const room = n.store.allocate_quickly(size_class)) [[likely]]
      return {room, false};
  }
  return reserve_slowly(n, size_class, 0, 0);
}

reserved_block reserve_solo_task(nursery_core& n, std::size_t bytes, std::size_t alignment) {
  return reserve_slowly(n, solo_class, bytes, alignment);
}

void unreserve_task(nursery_core& n, void* room, block_origin from) noexcept {
  if (!from.shared) return n.store.recycle(room, from);
  nursery_more& more = *n.has_more();
  std::lock_guard hold(more.mutex);
  more.store.recycle(room, from);
}

bool launch_task(nursery_core& n, task_record& task, source_location site) noexcept {
  return spawn_simply(n, task, site, task_type_of(task).ops);
}

void launch_task_slowly(nursery_core& n, task_record& task, const spawn_options& how) {
  const bool by_owner = !task.origin.shared;
  bool counted = false;
  try {
    if (!how.name.empty()) name_fiber(task, how.name);
    count_in(n, by_owner);
    counted = true;
    spawn_here(look_around(), task_type_of(task).ops, task, n, how.stack_size, how.site);
  } catch (...) {
    if (counted) n.live.not_spawned_after_all(by_owner);
    drop_extras(task);
    task_type_of(task).destroy_closure(task);
    unreserve_task(n, &task, task.origin);
    throw;
  }
}

// In the child, in a catch block.
fiber_end task_failed(task_record& task) noexcept {
  const fiber& self = *task.frame.load(std::memory_order_relaxed);
  auto& home = static_cast<nursery_core&>(home_of(self));
  const std::exception_ptr what = current_failure(home);
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

void task_discarded(task_record& task, discard_cause why) noexcept {
  if (why == discard_cause::cancelled) {
    task.outcome = task_outcome::cancelled;
    return;
  }
  try {
    throw stack_exhausted();
  } catch (...) {
    (void)task_failed(task);
  }
}

namespace {

[[gnu::noinline]] void retire(task_record& task, nursery_core& home, bool in_place) noexcept {
  if (task.dropped.load(std::memory_order_acquire)) {
    destroy_result(task);
    if (in_place && !task.origin.shared) {
      home.store.recycle(&task, task.origin);
    } else {
      task.end.store(task_finished, std::memory_order_release);
    }
  } else {
    if (task.has_result && task_type_of(task).destroy_result != nullptr) {
      home.unusual.store(true, std::memory_order_relaxed);
      home.has_results.store(true, std::memory_order_relaxed);
    }
    if ((task.end.fetch_or(task_finished, std::memory_order_acq_rel) & task_wanted) != 0) tell_getters(home, task);
  }
  if (in_place) {
    home.live.ended_in_place();
  } else {
    home.live.ended_elsewhere();
  }
}

}  // namespace

// Mostly its owner has let go of it, and waits below: nothing is left to do but to use the block again.
void task_retired(fiber_record& record, cancel_scope& scope, const cancel_scope* joiner) noexcept {
  auto& task = static_cast<task_record&>(record);
  auto& home = static_cast<nursery_core&>(scope);
  const bool in_place = joiner == &home;
  const bool plain = !task.has_result && !task.origin.shared && task.origin.size_class != solo_class;
  if (!in_place || !plain || !task.dropped.load(std::memory_order_acquire)) [[unlikely]]
    return retire(task, home, in_place);
  home.store.put_back(task, task.origin.size_class);
  home.live.ended_in_place();
}

void await_task(const task_handle& handle) {
  whereabouts at = look_around();
  keep_to_budget(at);
  const visit here(*handle.home, handle.life, at);
  if (has_finished(*handle.record)) return;
  static const wait_reason why{"task"};
  task_end end(*handle.home, *handle.record);
  keyed_waiter node(handle.record);
  // Whoever ended a former task in this block may still be telling its getters, and wake us by mistake.
  do {
    (void)fiber_wait_fresh_first(end, node, why);
  } while (!has_finished(*handle.record));
}

namespace {

// For select. A task outside the caller's tree is announced as by `visit`, for as long as the select lasts.
nursery_core& home_of(const join_target& t) noexcept {
  return *static_cast<nursery_core*>(t.home);
}
task_record& task_of(const join_target& t) noexcept {
  return *static_cast<task_record*>(t.what);
}
bool must_announce(const join_target& t) noexcept {
  return kinship_to(home_of(t), look_around()) == kinship::none;
}

constexpr join_ops task_joins{
    [](const join_target& t) { visit(home_of(t), t.number, look_around()).stay(); },
    [](const join_target& t) noexcept {
      if (must_announce(t)) home_of(t).visitors.fetch_sub(1, std::memory_order_release);
    },
    [](const join_target& t) noexcept { return has_finished(task_of(t)); },
    [](const join_target& t, keyed_waiter& node) { return task_end(home_of(t), task_of(t)).publish(node); },
    [](const join_target& t, keyed_waiter& node) noexcept { task_end(home_of(t), task_of(t)).unpublish(node); }};

}  // namespace

join_target task_join_target(const task_handle& handle) noexcept {
  return {&task_joins, handle.record, handle.home, handle.life};
}

bool task_done(const task_handle& handle) {
  const visit here(*handle.home, handle.life, look_around());
  return has_finished(*handle.record);
}

void rethrow_failure(const task_handle& handle) {
  const visit here(*handle.home, handle.life, look_around());
  task_record& task = *handle.record;
  if (task.outcome == task_outcome::failed) {
    if (auto what = handle.home->failure_of(task)) std::rethrow_exception(std::move(what));
    throw std::bad_alloc();  // there was no memory to keep it, nor was it the first; it was reported
  }
  if (task.outcome != task_outcome::cancelled) return;
  check_cancelled();  // who is cancelled, too, ends by that, and not by a failure that is none of its own
  throw handle.home->ending();
}

std::exception_ptr current_failure() noexcept {
  return current_failure(*look_around().innermost());
}

void report_lost_end(const std::exception_ptr& failure) noexcept {
  std::string who;
  try {
    who = describe(*look_around().self);
  } catch (const std::bad_alloc&) {
  }
  report_lost_failure(who, failure);
}

void value_taken(const task_handle& handle) {
  if (std::exchange(handle.record->outcome, task_outcome::taken) == task_outcome::taken) {
    throw usage_error("ramie: task::get() for the second time: the value is gone. Keep it the first time.");
  }
}

namespace {

[[gnu::noinline]] void drop_elsewhere(task_record& task, nursery_core& home, std::uint64_t life) noexcept {
  const visit here(home, look_around());
  if (home.life.load(std::memory_order_acquire) != life) return;
  if (has_finished(task)) destroy_result(task);
  task.dropped.store(true, std::memory_order_release);
}

// By the owner.
[[gnu::noinline]] void drop_finished(task_record& task, nursery_core& home) noexcept {
  destroy_result(task);
  if (!task.origin.shared) return home.store.recycle(&task, task.origin);
  task.dropped.store(true, std::memory_order_release);
}

}  // namespace

void drop_task(task_record& task, nursery_core& home, std::uint64_t life) noexcept {
  if (home.life.load(std::memory_order_acquire) != life) [[unlikely]]
    return;
  if (!is_owner(home, look_around())) [[unlikely]]
    return drop_elsewhere(task, home, life);
  if (has_finished(task)) [[unlikely]]
    return drop_finished(task, home);
  task.dropped.store(true, std::memory_order_release);
}

void no_such_task() {
  throw usage_error("ramie: a task without a child behind it: it was moved from, reset, or never spawned.");
}

}  // namespace ramie::detail
