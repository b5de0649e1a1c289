// SPDX-License-Identifier: BSL-1.0
// The inside of a nursery: a cancel scope that counts its fibers and owns their memory.
//
// Cores are pooled and never given back to the system, so that a task handle that outlives its nursery can still
// ask whether it lives (`life`). Each worker keeps a worker_cache of them; the rest is in one pool per process.
//
// `life` is what the core begins with: templates of task.hpp read it there (life_of).
//
// Who touches what. Open to close belongs to the owner: `store`, its part of `live`, `opener`. Descendants are counted,
// so the core is there as long as they live; what they share with the owner is atomic or under a lock
// (`more->mutex` for memory and failures, `waiters_lock` for getters and for a failure that could not be recorded;
// neither is held while user code runs). Others (a handle dropped outside the tree) announce themselves first:
//
//       visitor                                 owner, at the end
//       1. visitors + 1                         1. life + 1
//       2. heavy fence                          2. light fence
//       3. is `life` still the handle's?        3. wait until there are no visitors
//          then the core is there until
//          visitors - 1
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include <ramie/nursery.hpp>
#include <ramie/platform/annotate.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/join.hpp>

#include "block_store.hpp"

namespace ramie::nursery_internal {

using namespace runtime_internal;

struct cancel_on_stop {
  nursery_core* home;
  source_location where;
  void operator()() const noexcept;
};

struct recorded_failure {
  failure what;
  const task_block* task;  // whose handle may ask for it; its block is not reused before that is gone
  bool received;
};

// The cancellation of one task (task::cancel). It stays until the task has ended and its handle is dropped.
//
//       canceller, under more->mutex            fiber that ends
//       1. marks |= task_targeted     (RMW)     1. marks |= task_finished         (RMW)
//       2. finished? then it is too late        2. targeted? then, under more->mutex, find this;
//       3. make this, and pin its scope            wait for the pins, and let go of the frame
//       4. is there a frame? aim at it
//       then, without the lock, cancel and unpin
//
// If there is no frame yet, whoever gives it one sees the mark, and aims this at it (runner::give_frame; task_aimed_at).
// The handle of a targeted task is dropped under more->mutex, too. If the fiber has not ended then, it releases the
// block when it ends.
struct task_cancellation {
  task_cancellation(cancel_scope& home, source_location spawned_at) noexcept
      : scope(cancel_scope::of_fiber{}, home, spawned_at) {}
  cancel_scope scope;
  bool ended = false;    // the fiber
  bool dropped = false;  // the handle, before that
};

// What few nurseries need.
struct nursery_more {
  platform::mutex mutex;  // failures, store, made, cancellations
  std::vector<recorded_failure> failures;
  std::unordered_map<const task_block*, task_cancellation> cancellations;
  record_list unused;
  block_store store{unused};  // for descendants that spawn
  arena made;
  std::optional<std::stop_source> stop;
  std::deque<std::stop_callback<cancel_on_stop>> stop_callbacks;
  scope_deadline deadline;
};

enum core_notes : std::uint32_t {
  // Set before, or together with, anything that most nurseries never see: more, has_results, asked_to_stop, unrecorded.
  needs_slow_teardown = 1,
  has_results = 2,  // some result will have to be destroyed
  scattered = 4,    // blocks of ended tasks are in no list: the store is to be put in order
  has_grown = 8,    // the store
};

struct nursery_core : counted_scope {
  explicit nursery_core(scheduler& of) noexcept;

  // The owner's, together.
  nursery_core* next_in_pool = nullptr;
  platform::atomic<nursery_more*> more{nullptr};
  // What its end must look after, besides giving it back: core_notes. By the owner, and by fibers that are counted, so
  // the owner sees it when they have ended. From one_visitor on: visitors.
  platform::atomic<std::uint64_t> notes{0};
  static constexpr std::uint64_t one_visitor = std::uint64_t{1} << 32;
  platform::owned<std::uint64_t> retired_in_place{0};  // tasks that ended above the owner's join, but were not reused at once
  block_store store{unused};

  // Written by others.
  platform::spin_lock waiters_lock;
  platform::atomic<bool> asked_to_stop{false};
  wait_list waiters;  // for single tasks, each node a keyed_waiter
  platform::atomic<std::uint64_t> spawned_by_descendants{0};
  // The first failure that there was no memory to record, and whose it was: under waiters_lock.
  std::exception_ptr unrecorded;
  const task_block* unrecorded_task = nullptr;
  platform::owned<bool> unrecorded_received{false};

  void note(std::uint32_t what) noexcept {
    if ((notes.load(std::memory_order_relaxed) & what) == what) return;
    notes.fetch_or(what, std::memory_order_relaxed);
    if ((what & needs_slow_teardown) != 0) need_a_look();
  }
  [[nodiscard]] bool has_noted(std::uint32_t what) const noexcept {
    return (notes.load(std::memory_order_relaxed) & what) != 0;
  }
  // All but the visitors: one that finds that it is too late may come and go at any time.
  void forget_notes() noexcept {
    const auto before = notes.fetch_and(~(one_visitor - 1), std::memory_order_relaxed);
    if ((before & needs_slow_teardown) != 0) need_no_look();
  }
  [[nodiscard]] bool has_visitors() const noexcept { return notes.load(std::memory_order_acquire) >= one_visitor; }

  // Allocated on first need, by anybody in the tree. Throws std::bad_alloc.
  [[nodiscard]] nursery_more& need_more();
  [[nodiscard]] nursery_more* has_more() const noexcept { return more.load(std::memory_order_acquire); }

  // Fibers that have ended and may have left a block for others, roughly.
  [[nodiscard]] std::uint64_t ended() const noexcept {
    return retired_in_place.get() + spawned_by_descendants.load(std::memory_order_relaxed) +
           static_cast<std::uint64_t>(live.more_ended_elsewhere());
  }

  // Looks at the caller's own scopes only: they stand still, while this nursery may be ending if it is not theirs.
  [[nodiscard]] bool has_descendant(const call_context& at) const noexcept {
    for (const cancel_scope* s = at.innermost(); s != nullptr; s = s->parent()) {
      if (s == this) return true;
    }
    return false;
  }

  [[nodiscard]] std::exception_ptr unrecorded_failure() noexcept {
    std::lock_guard hold(waiters_lock);
    return unrecorded;
  }
  void record_failure(const task_block* task, std::exception_ptr what, const fiber& who) noexcept;
  [[nodiscard]] std::exception_ptr failure_of(const task_block& task) noexcept;
  // The `cancelled` that ended the task.
  [[nodiscard]] cancelled ending_of(const task_block& task) noexcept;
  // The first one, received by this, or null.
  [[nodiscard]] std::exception_ptr first_failure() noexcept;
  // At the end: the `cancelled` that was thrown at the owner may still be unwinding it, or be kept somewhere. Its last
  // copy then reports the failure behind it, if that was not received.
  void report_carried_if_dropped() noexcept;
  // What is still the nursery's.
  void report_what_is_left() noexcept;

 private:
  // Marks a failure as received and returns whose it is. Nothing: it was received before.
  [[nodiscard]] std::optional<std::string> give_away(const std::exception_ptr& what) noexcept;
};

// Whether the caller is the owner or a live descendant.
enum class caller_role : std::uint8_t { owner, descendant, none };
// opened_by() is not null once the nursery has been opened: so scheduler code, whose at.self is null, is not its owner.
[[nodiscard]] inline bool is_owner(const nursery_core& n, const call_context& at) noexcept {
  return at.local != nullptr && at.self == n.opened_by();
}
[[nodiscard]] inline caller_role role_of_caller(const nursery_core& n, const call_context& at) noexcept {
  if (at.self == nullptr) return caller_role::none;
  if (is_owner(n, at)) return caller_role::owner;
  return n.has_descendant(at) ? caller_role::descendant : caller_role::none;
}

// Throws usage_error if the caller may not call `what` ("nursery::spawn", say): it is outside the tree, or it is too
// late.
[[noreturn]] void not_in_tree(const nursery_core& n, const char* what);
[[nodiscard]] inline caller_role must_be_in_tree(const nursery_core& n, const call_context& at, const char* what) {
  const caller_role who = role_of_caller(n, at);
  if (who == caller_role::none || n.has_joined()) [[unlikely]]
    not_in_tree(n, what);
  return who;
}

// From the pool, for that runtime, and back. take_from_pool throws std::bad_alloc.
[[nodiscard]] nursery_core& take_from_pool(scheduler& of);
void make_free_slots(worker_cache& full) noexcept;
inline constexpr std::uint32_t cached_cores_limit = 64;

// Null: the worker_cache is empty.
[[nodiscard]] inline nursery_core* take_core(worker_cache& here) noexcept {
  auto* const core = static_cast<nursery_core*>(here.first.get());
  if (core == nullptr) [[unlikely]]
    return nullptr;
  platform::annotate::take_over(core);
  here.first.set(core->next_in_pool);
  here.free_slots.add(1);
  return core;
}

// False: the worker_cache has no free slot.
[[nodiscard]] inline bool try_give_core(worker_cache& here, nursery_core& core) noexcept {
  if (here.free_slots.get() <= 0) [[unlikely]]
    return false;
  core.next_in_pool = static_cast<nursery_core*>(here.first.get());
  platform::annotate::hand_over(&core);
  here.first.set(&core);
  here.free_slots.add(-1);
  return true;
}

}  // namespace ramie::nursery_internal
