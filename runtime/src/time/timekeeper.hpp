// SPDX-License-Identifier: BSL-1.0
// Deadlines of one runtime. Each worker slot has a shard: a lock, a wheel for what may be a millisecond late, and a
// heap for what is too near for that (or goes by a clock that a test moves: then all is in the heap of the first
// shard). One more shard is for plain threads. A fiber adds to the shard of the worker it runs on, so workers meet at a
// lock only over fibers that have wandered.
//
// Who looks at the time
//   - Workers that run fibers, at their polls, every quarter of a millisecond: all shards. What is due is made runnable
//     there and then, many under one lock.
//   - When nobody runs: the worker on duty. Whoever goes to sleep looks at all shards; if the earliest time is before
//     the one that somebody sleeps for already, it takes the duty and sleeps no longer than that. Adding a timer wakes
//     nobody: who adds it is awake, and looks before it sleeps. A worker that retires does not sleep any more: if nobody
//     has the duty, it wakes a sleeper, which looks.
//   - The keeper, a thread: for the shard of the plain threads; and for all others, 10 ms late, in case that whoever
//     should have looked is held up by a fiber that does not let go. It also cancels scopes whose time has come: that
//     calls callbacks of stop tokens, which may do anything, and can take long. Started with the first deadline.
//
//       who adds                               the keeper
//       1. next = the entry's time             1. watch_until = earliest next, plus its patience
//       2. light fence                         2. heavy fence
//       3. earlier than watch_until?           3. look at every next again; if one is earlier, again from 1,
//          then wake the keeper                   else sleep until then
//
// `next` of a shard is never later than its earliest entry. It may be earlier, after a removal: then somebody looks in
// vain, once.
//
// An entry is its owner's again once remove() has returned, or once it has rung: nobody touches it then. A scope whose
// time has come waits in its shard's list until the keeper pins it there; from then on it is not closed before it is
// cancelled.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/timer_wheel.hpp>

namespace ramie::detail {

class timekeeper final : platform::clock_listener {
 public:
  using time_point = platform::time_point;
  static constexpr time_point never = time_point::max();

  // `manual` null: the machine's steady clock. Throws usage_error if it advances by itself and serves another already.
  timekeeper(platform::virtual_clock* manual, unsigned worker_slots);
  ~timekeeper();
  timekeeper(const timekeeper&) = delete;
  timekeeper& operator=(const timekeeper&) = delete;

  // Any thread. Of a scope; cancels it at once if the time has come. Throws like prepare; the entry is not in then.
  void add(scope_deadline& entry);
  void remove(deadline_entry& entry) noexcept;
  // Before a wait with a deadline: throws std::system_error or std::bad_alloc if the keeper can't be started.
  void prepare();
  // Wakes `who` when the time comes; at once if it has. Again: another `who`. It is `now` or a little later.
  void set(wake_up& entry, waker who, time_point now) noexcept;
  [[nodiscard]] time_point now() const noexcept { return clock_.now(); }
  void stop() noexcept;

  // Workers --------------------------------------------------------------------------------------------
  // No deadline is before it. Never, if time is moved by hand.
  [[nodiscard]] time_point earliest() const noexcept;
  // Makes runnable whose time has come, but not more than a ring takes without shedding: those who are next run with
  // their data at hand, and before what the injection queue holds. True: there are more.
  [[nodiscard]] bool carry_out(time_point now) noexcept;
  // About to sleep: until when at most. Never: no deadline, or somebody else sleeps for it.
  [[nodiscard]] time_point take_duty() noexcept;
  void leave_duty(time_point until) noexcept;
  // There is a deadline that nobody sleeps for.
  [[nodiscard]] bool nobody_on_duty() const noexcept { return earliest() < duty_until_.load(std::memory_order_relaxed); }

  // Of a clock that advances by itself: to the earliest deadline, which is carried out. False: there is none.
  [[nodiscard]] bool jump() noexcept;
  [[nodiscard]] bool advances_itself() const noexcept { return manual_ != nullptr && manual_->advances_itself; }

 private:
  struct alignas(platform::cache_line) shard {
    platform::spin_lock lock;
    platform::atomic<time_point> next{never};
    platform::atomic<time_point> looked{time_point::min()};  // when somebody last took what was due
    // When the keeper should see to it: nobody did, for longer than its patience lasts.
    [[nodiscard]] time_point overdue() const noexcept;
    timer_wheel wheel;
    timer_heap heap;
    timer_list cancelling;  // scopes whose time has come
  };

  void time_passed() noexcept override;
  void carry_out_in_order() noexcept;
  void run() noexcept;
  [[nodiscard]] time_point watch() noexcept;
  [[nodiscard]] time_point patient_earliest() const noexcept;
  [[nodiscard]] std::uint16_t shard_of_caller() const noexcept;
  void insert(deadline_entry& entry, time_point now) noexcept;
  void list(shard& in, deadline_entry& entry, time_point now) noexcept;
  static void unlist(shard& in, deadline_entry& entry) noexcept;
  static void renew_next(shard& of) noexcept;
  [[nodiscard]] static deadline_entry* take_due(shard& from, time_point now) noexcept;
  // Returns how many were woken, about `most` if there are more.
  std::uint32_t fire(shard& of, time_point now, std::uint32_t most) noexcept;
  void cancel_all_due() noexcept;
  static void cancel(scope_deadline& entry, std::unique_lock<platform::spin_lock>& hold) noexcept;

  platform::virtual_clock* const manual_;
  const platform::clock_source& clock_;
  const unsigned slots_;  // workers'; the shard after them is for plain threads
  const std::unique_ptr<shard[]> shards_;
  platform::atomic<time_point> duty_until_{never};
  platform::atomic<time_point> watch_until_{never};
  platform::atomic<bool> cancels_{false};  // the keeper has scopes to cancel
  platform::atomic<bool> started_{false};
  platform::atomic<bool> stopping_{false};
  platform::mutex start_mutex_;
  platform::thread_parker keeper_;
  platform::thread thread_;
};

}  // namespace ramie::detail
