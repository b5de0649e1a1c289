// SPDX-License-Identifier: BSL-1.0
// Waiting, under a mutex, for what others change under it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/mutex.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct condition_core {
  static constexpr const char* name = "condition_variable";
  atomic<bool> waited_for{false};  // whether a waiter is listed
  wait_queue waiters;
  // Whoever has locked the mutex after a waiter unlocked it finds that waiter. For others racy: only a hint.
  [[nodiscard]] bool is_waited_for() const noexcept { return waited_for.load(std::memory_order_acquire); }
  [[nodiscard]] const char* in_use() const noexcept {
    return waited_for.load(std::memory_order_relaxed) ? "others wait for" : nullptr;
  }
};

// The caller holds `m`, and does when this returns or throws. False: too late.
[[nodiscard]] bool condition_wait(condition_core& c, mutex_core& m, sync_time until);
void condition_notify(condition_core& c, bool all) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// For ramie::mutex in a std::unique_lock. Waits unlock the mutex and have it locked again when they return, also when
// they throw. Like the standard's they may return for no reason, so use the forms with a predicate. A waiter that is
// cancelled or too late takes no notification: the next one gets it.
//
// Constant-initialised. Fibers of any runtime and plain threads may use one. It may be destroyed once nobody is inside
// a wait.
class condition_variable : ::ramie::sync_internal::sync_object<::ramie::sync_internal::condition_core> {
 public:
  condition_variable() noexcept = default;

  // Wakes the longest waiter, or all of them. Any fiber or thread, with or without the mutex. Never waits; not a
  // cancellation point.
  void notify_one() noexcept {
    if (core_.is_waited_for()) ::ramie::sync_internal::condition_notify(core_, false);
  }
  void notify_all() noexcept {
    if (core_.is_waited_for()) ::ramie::sync_internal::condition_notify(core_, true);
  }

  // Waits for a notification; with a predicate, until it holds. The holder of the mutex. A cancellation point on every
  // call: throws `cancelled`, with the mutex locked. Locking it again is none. Throws std::bad_alloc on a thread's
  // first wait, and what the predicate throws, also with the mutex locked.
  void wait(std::unique_lock<mutex>& lock) { (void)wait_until(lock, {}); }
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate holds) {
    while (!holds()) wait(lock);
  }
  // The same, no longer than that. A cancellation point. Also throws std::bad_alloc or std::system_error, with the
  // mutex locked throughout, if the deadline can't be kept.
  std::cv_status wait_until(std::unique_lock<mutex>& lock, deadline until) {
    return ::ramie::sync_internal::condition_wait(core_, lock.mutex()->core_, until.when())
               ? std::cv_status::no_timeout
               : std::cv_status::timeout;
  }
  template <class Predicate>
  [[nodiscard]] bool wait_until(std::unique_lock<mutex>& lock, deadline until, Predicate holds) {
    while (!holds()) {
      if (wait_until(lock, until) == std::cv_status::timeout) return holds();
    }
    return true;
  }
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit) {
    return wait_until(lock, deadline(limit));
  }
  template <class Rep, class Period, class Predicate>
  [[nodiscard]] bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit,
                              Predicate holds) {
    return wait_until(lock, deadline(limit), std::move(holds));
  }
};

}  // namespace ramie::inline v0
