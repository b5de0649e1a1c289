// SPDX-License-Identifier: BSL-1.0
// Notices that every fiber of a runtime is blocked, and lets those go on that wait for that.
//
// A fiber that is not blocked runs on a worker that is awake, or is queued, or is in the hand of a plain thread that is
// just waking it. So every fiber is blocked if
//
//   1. all workers are parked                       (one load: idle_set all_parked)
//   2. nothing is queued
//   3. no worker has been woken since 1             (one load: idle_set wake_count)
//
// Between 1 and 3 no worker ran; what was queued before 1 would still be queued at 2. A wake that a plain thread has
// begun but not finished when this is decided happens after the decision. A joiner that is covered by a child it runs
// in place has no stack of its own, and is as blocked as the child above it.
//
// A worker that may have been the last to fall asleep checks; so does a caller of wait_all_blocked, in case all workers
// sleep already:
//
//       plain thread that waits                 worker
//       1. list itself, has_waiters = true      1. parked + 1, or present - 1   (RMW)
//       2. check: all parked?                   2. has_waiters? then check: all parked?
//
// Nothing else in the runtime knows of this: while there is no waiter, it costs a load before a worker sleeps.
//
// Served in this order: callers of wait_all_blocked, in the order of their calls; then the clock, if it advances by
// itself; then a director, to which a deadlock is reported. The latter two not while a fiber waits for a blocking call.
// Callers of wait_all_blocked return one at a time, the next one when all others are blocked again.
#pragma once

#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

class scheduler;

class quiescence final : public waitable {
 public:
  // `serves_clock_or_director`: there is a clock or a director to be served.
  quiescence(scheduler& of, bool serves_clock_or_director) noexcept
      : sched_(of), serves_clock_or_director_(serves_clock_or_director), has_waiters_(serves_clock_or_director) {}

  // See wait_all_blocked in testing.hpp.
  void wait();

  [[nodiscard]] bool has_waiters() const noexcept { return has_waiters_.load(std::memory_order_seq_cst); }

  // A worker that has announced its sleep, or is gone. True: fibers may have become runnable.
  [[nodiscard]] bool check() noexcept;

  bool try_complete(waiter&) override { return false; }
  bool publish(waiter& node) override;
  void unpublish(waiter& node) noexcept override;

 private:
  [[nodiscard]] bool everybody_blocked() noexcept;
  // With the mutex, so that no other thread finds all fibers blocked while these act on it.
  [[nodiscard]] bool serve_waiters() noexcept;  // true: a waiter was completed
  [[nodiscard]] bool serve_others() noexcept;   // true: something happened

  scheduler& sched_;
  const bool serves_clock_or_director_;
  platform::atomic<bool> has_waiters_;  // written under the mutex
  platform::mutex mutex_;
  wait_list waiters_;
};

}  // namespace ramie::runtime_internal
