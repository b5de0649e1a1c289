// SPDX-License-Identifier: BSL-1.0
// A lock that is held by one fiber or plain thread at a time. Whoever has to wait parks; the worker goes on.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct mutex_core {
  atomic<std::uint32_t> word{0};       // channel/src/sync/mutex_core.hpp
  atomic<std::int32_t> looks{64};      // how many it has paid to take before waiting, lately
  atomic<const void*> owner{nullptr};  // builds with checks
  line waiters;
};

void mutex_lock(mutex_core& m);
[[nodiscard]] bool mutex_lock_until(mutex_core& m, sync_time deadline);
[[nodiscard]] bool mutex_try_lock(mutex_core& m) noexcept;
void mutex_unlock(mutex_core& m) noexcept;
void mutex_destroyed(const mutex_core& m) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// Held by a fiber of any runtime, or by a plain thread; it may wait for anything while it holds the lock. Not
// recursive, and unlocked by whoever locked it. For std::unique_lock, std::lock_guard, std::scoped_lock and
// condition_variable. Without contention two RMWs, whatever else there is. Fair in the long run: who unlocks wakes the
// longest waiter without reserving the lock, so that others may take it first; who has lost a few times has it handed
// over.
//
// What happened before an unlock is seen after the next lock. Constant-initialised. Builds with checks end the program
// with a message when a mutex is locked by its holder, unlocked by somebody else, or destroyed while it is locked.
class mutex {
 public:
  mutex() noexcept = default;
  ~mutex() {
    if (core_.word.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ::ramie::detail::mutex_destroyed(core_);
  }
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Any fiber or thread. A cancellation point on every call: throws `cancelled`, and then the lock is not held; so a
  // destructor that locks needs a shield. Throws std::bad_alloc on a thread's first wait.
  void lock() { ::ramie::detail::mutex_lock(core_); }
  // The same, no longer than that. False: the time has come, and the lock is not held. It asks at least once. A
  // cancellation point. Also throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::mutex_lock_until(core_, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_until(::ramie::detail::time_after(limit));
  }
  // Never waits; not a cancellation point.
  [[nodiscard]] bool try_lock() noexcept { return ::ramie::detail::mutex_try_lock(core_); }
  // The holder. Not a cancellation point.
  void unlock() noexcept { ::ramie::detail::mutex_unlock(core_); }

  // For condition_variable; not part of the API.
  [[nodiscard]] ::ramie::detail::mutex_core& internals() noexcept { return core_; }

 private:
  ::ramie::detail::mutex_core core_;
};

}  // namespace ramie::inline v0
