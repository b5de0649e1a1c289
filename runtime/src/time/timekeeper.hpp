// SPDX-License-Identifier: BSL-1.0
// Deadlines of one runtime. Each worker slot has a shard: a lock, a wheel for what may be a millisecond late, and a
// heap for what is too near for that (or goes by a clock that a test moves: then all is in the heap of the first
// shard). One more shard is for plain threads. A fiber adds to the shard of the worker it runs on, so workers contend
// for a lock only over fibers that have moved to another worker.
//
// Who fires deadlines
//   - Workers that run fibers, between polls, every quarter of a millisecond: those of all shards. Fibers whose time
//     has come are made runnable there and then, many under one lock.
//   - While all workers sleep: one of them, the timer sleeper. A worker that goes to sleep checks all shards; if the
//     earliest time is before the one that the timer sleeper sleeps for, it takes over and sleeps no longer than that.
//     Adding a timer wakes no worker: the one that adds it is awake, and checks before it sleeps. A worker that retires
//     will not sleep: if there is no timer sleeper, it wakes one that sleeps, which checks.
//   - The keeper, a thread: those of the plain threads' shard; and of all others, 10 ms late, in case the worker that
//     should have fired them is held up by a fiber. It also cancels scopes whose time has come: that calls callbacks of
//     stop tokens, which may do anything, and can take long. Started with the first deadline.
//
//       the thread that adds                   the keeper
//       1. next = the entry's time             1. armed_until = earliest next, plus its grace
//       2. light fence                         2. heavy fence
//       3. earlier than armed_until?           3. check every next again; if one is earlier, again from 1,
//          then wake the keeper                   else sleep until then
//
// `next` of a shard is never later than its earliest entry. It may be earlier, after a removal: then one check finds
// nothing.
//
// Ownership: an entry is its owner's again once remove() has returned, or once it has fired (`fired`); no other thread
// touches it then. A scope whose time has come stays in its shard's list until the keeper pins it there; from then on
// it is not closed before it is cancelled.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/timer_wheel.hpp>

#include "../sched/helper_thread.hpp"

namespace ramie::runtime_internal {

class timekeeper final : platform::clock_listener {
 public:
  using time_point = platform::time_point;
  static constexpr time_point never = time_point::max();

  // `manual` null: the machine's steady clock. Throws usage_error if it advances by itself and serves another already.
  timekeeper(platform::virtual_clock* manual, unsigned worker_slots);
  ~timekeeper();
  timekeeper(const timekeeper&) = delete;
  timekeeper& operator=(const timekeeper&) = delete;

  // Any thread. The deadline of a scope; cancels it at once if the time has come. Throws like prepare; then the entry
  // was not added.
  void add(scope_deadline& entry);
  void remove(deadline_entry& entry) noexcept;
  // Before a wait with a deadline: throws std::system_error or std::bad_alloc if the keeper can't be started.
  void prepare();
  // Wakes `who` when the time comes; at once if it has. May be called again with another `who`. `now` is the current
  // time, or a little before.
  void set(wake_up& entry, waker who, time_point now) noexcept;
  [[nodiscard]] time_point now() const noexcept { return clock_.now(); }
  void stop() noexcept { keeper_.stop(); }

  // Workers --------------------------------------------------------------------------------------------
  // No deadline of a worker's shard is before it. `never` if time is moved by hand.
  [[nodiscard]] time_point earliest() const noexcept;
  // Makes runnable the fibers whose time has come, at most so many, those of the shard with the earliest first. True: there
  // may be more.
  [[nodiscard]] bool fire_due(time_point now, std::uint32_t most) noexcept;
  // A worker about to sleep: until when at most. `never`: there is no deadline, or another worker sleeps for it.
  [[nodiscard]] time_point become_timer_sleeper() noexcept;
  void resign_as_timer_sleeper(time_point until) noexcept;
  // Whether there is a deadline that no worker sleeps for.
  [[nodiscard]] bool needs_timer_sleeper() const noexcept {
    return earliest() < sleeper_until_.load(std::memory_order_relaxed);
  }

  // Advances a clock that advances by itself to the earliest deadline, which fires. False: there is none.
  [[nodiscard]] bool jump() noexcept;
  [[nodiscard]] bool advances_itself() const noexcept { return manual_ != nullptr && manual_->advances_itself; }

 private:
  struct alignas(platform::cache_line) shard {
    platform::spin_lock lock;
    platform::atomic<time_point> next{never};
    platform::atomic<time_point> last_taken{time_point::min()};  // when due entries were last taken
    // When the keeper should fire its entries: they are due, and no worker has come for `keeper_grace`.
    [[nodiscard]] time_point overdue() const noexcept;
    timer_wheel wheel;
    timer_heap heap;
    timer_list cancelling;  // scopes whose time has come
  };

  void time_passed() noexcept override;
  void fire_in_order() noexcept;
  void run() noexcept;
  // The keeper: publishes until when it will sleep (armed_until_) and returns that.
  [[nodiscard]] time_point arm() noexcept;
  [[nodiscard]] time_point earliest_for_keeper() const noexcept;
  [[nodiscard]] std::uint16_t shard_of_caller() const noexcept;
  void insert(deadline_entry& entry, time_point now) noexcept;
  void list(shard& in, deadline_entry& entry, time_point now) noexcept;
  static void unlist(shard& in, deadline_entry& entry) noexcept;
  static void renew_next(shard& of) noexcept;
  [[nodiscard]] static deadline_entry* take_due(shard& from, time_point now) noexcept;
  // Returns how many were woken, `most` if there are more.
  std::uint32_t fire(shard& of, time_point now, std::uint32_t most) noexcept;
  void cancel_all_due() noexcept;
  static void cancel(scope_deadline& entry, std::unique_lock<platform::spin_lock>& hold) noexcept;

  platform::virtual_clock* const manual_;
  const platform::clock_source& clock_;
  const unsigned slots_;  // workers'; the shard after them is for plain threads
  const std::unique_ptr<shard[]> shards_;
  platform::atomic<time_point> sleeper_until_{never};  // of the timer sleeper; never: there is none
  platform::atomic<time_point> armed_until_{never};    // when the keeper wakes by itself; min(): it is awake
  platform::atomic<bool> cancels_{false};  // the keeper has scopes to cancel
  helper_thread keeper_;
};

}  // namespace ramie::runtime_internal
