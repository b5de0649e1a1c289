// SPDX-License-Identifier: BSL-1.0
// A lock that is held by one fiber or plain thread at a time. Whoever has to wait parks; the worker goes on.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <mutex>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct mutex_core {
  static constexpr const char* name = "mutex";
  static constexpr std::uint32_t locked = 1;
  atomic<std::uint32_t> word{0};           // sync/src/mutex_core.hpp
  atomic<std::int32_t> spin_estimate{64};  // average of the spins that got the lock, lately (mutex.cpp)
  atomic<const void*> owner{nullptr};      // builds with checks
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    const auto now = word.load(std::memory_order_relaxed);
    return now == 0 ? nullptr : now == locked ? "is locked" : "others wait for";
  }
};

void mutex_lock(mutex_core& m);
[[nodiscard]] bool mutex_lock_until(mutex_core& m, sync_time until);
[[nodiscard]] bool mutex_try_lock(mutex_core& m) noexcept;
void mutex_unlock(mutex_core& m) noexcept;
[[nodiscard]] ready_source mutex_source(mutex_core& m) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// Held by a fiber of any runtime, or by a plain thread, which may wait for anything while it holds the lock. Not
// recursive, and unlocked by whoever locked it. For std::unique_lock, std::lock_guard, std::scoped_lock and
// condition_variable. Without contention lock and unlock are two RMWs. Fair in the long run: an unlock wakes the
// longest waiter without reserving the lock, so that others may take it first; to a waiter that has lost a few times
// the lock is handed over.
//
// What happened before an unlock is seen after the next lock. Constant-initialised. Builds with checks end the program
// with a message when a mutex is locked by its holder, unlocked by somebody else, or destroyed while it is locked.
class mutex : ::ramie::sync_internal::sync_object<::ramie::sync_internal::mutex_core> {
 public:
  mutex() noexcept = default;

  // Waits for the lock. Any fiber or thread. A cancellation point on every call: throws `cancelled`, and then the lock
  // is not held; so a destructor that locks needs a shield. Throws std::bad_alloc on a thread's first wait.
  void lock() { ::ramie::sync_internal::mutex_lock(core_); }
  // The same, no longer than that. False: the time has come, and the lock is not held. It asks at least once. A
  // cancellation point. Also throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_lock_until(deadline until) {
    return ::ramie::sync_internal::mutex_lock_until(core_, until.when());
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_until(limit);
  }
  // Takes the lock if nobody holds it. Never waits; not a cancellation point. Any fiber or thread.
  [[nodiscard]] bool try_lock() noexcept { return ::ramie::sync_internal::mutex_try_lock(core_); }
  // Releases it. The holder. Never waits; not a cancellation point.
  void unlock() noexcept { ::ramie::sync_internal::mutex_unlock(core_); }

 private:
  friend class condition_variable;
  template <class F>
  friend auto on_lock(mutex& m, F&& f);
};

// For select: locks m. f(std::unique_lock<mutex>&&) gets the lock, which is released when f ends unless f has moved it
// elsewhere. m is locked only if this case happens.
template <class F>
[[nodiscard]] auto on_lock(mutex& m, F&& f) {
  static_assert(std::invocable<std::decay_t<F>&, std::unique_lock<mutex>>,
                "ramie: the handler of on_lock takes a std::unique_lock<ramie::mutex>, which holds the lock.");
  return ::ramie::runtime_internal::taking_case(::ramie::sync_internal::mutex_source(m.core_),
                                                [&m, f = std::forward<F>(f)]() mutable {
                                                  std::invoke(f, std::unique_lock<mutex>(m, std::adopt_lock));
                                                });
}

}  // namespace ramie::inline v0
