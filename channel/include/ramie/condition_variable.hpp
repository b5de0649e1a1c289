// SPDX-License-Identifier: BSL-1.0
// Waiting, under a mutex, for what others change under it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/mutex.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct condition_core {
  atomic<bool> waited_for{false};  // whether somebody is listed
  line waiters;
  // Whoever has locked the mutex after a waiter let go of it finds that waiter. For others, a hint.
  [[nodiscard]] bool is_waited_for() const noexcept { return waited_for.load(std::memory_order_acquire); }
};

// The caller holds `m`, and does when this returns or throws. False: too late.
[[nodiscard]] bool condition_wait(condition_core& c, mutex_core& m, sync_time deadline);
void condition_notify(condition_core& c, bool all) noexcept;
void condition_destroyed(const condition_core& c) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// For ramie::mutex in a std::unique_lock. Waits let go of the mutex and have it again when they return, also when they
// throw. Like the standard's they may return for no reason, so use the forms with a predicate. A waiter that is
// cancelled or too late takes no notification: the next one gets it.
//
// Constant-initialised. Fibers of any runtime and plain threads may use one. It may be destroyed once nobody is inside
// a wait.
class condition_variable {
 public:
  condition_variable() noexcept = default;
  ~condition_variable() {
    if (core_.waited_for.load(std::memory_order_relaxed)) [[unlikely]]
      ::ramie::detail::condition_destroyed(core_);
  }
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  // Any fiber or thread, with or without the mutex. Never waits; not a cancellation point. Who waits first goes first.
  void notify_one() noexcept {
    if (core_.is_waited_for()) ::ramie::detail::condition_notify(core_, false);
  }
  void notify_all() noexcept {
    if (core_.is_waited_for()) ::ramie::detail::condition_notify(core_, true);
  }

  // A cancellation point on every call: throws `cancelled`, with the mutex locked. Locking it again is none.
  void wait(std::unique_lock<mutex>& lock) {
    (void)::ramie::detail::condition_wait(core_, lock.mutex()->internals(), ::ramie::detail::sync_time::max());
  }
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate holds) {
    while (!holds()) wait(lock);
  }
  // The same, no longer than that. A cancellation point. Also throws std::bad_alloc or std::system_error, with the
  // mutex locked throughout, if the deadline can't be kept.
  std::cv_status wait_until(std::unique_lock<mutex>& lock, std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::condition_wait(core_, lock.mutex()->internals(), deadline) ? std::cv_status::no_timeout
                                                                                       : std::cv_status::timeout;
  }
  template <class Predicate>
  [[nodiscard]] bool wait_until(std::unique_lock<mutex>& lock, std::chrono::steady_clock::time_point deadline,
                                Predicate holds) {
    while (!holds()) {
      if (wait_until(lock, deadline) == std::cv_status::timeout) return holds();
    }
    return true;
  }
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit) {
    return wait_until(lock, ::ramie::detail::time_after(limit));
  }
  template <class Rep, class Period, class Predicate>
  [[nodiscard]] bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit,
                              Predicate holds) {
    return wait_until(lock, ::ramie::detail::time_after(limit), std::move(holds));
  }

 private:
  ::ramie::detail::condition_core core_;
};

}  // namespace ramie::inline v0
