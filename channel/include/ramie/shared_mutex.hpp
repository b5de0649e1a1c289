// SPDX-License-Identifier: BSL-1.0
// A lock that many may share, or one have for itself.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct shared_mutex_core {
  atomic<std::uint32_t> word{0};       // channel/src/sync/shared_mutex_core.hpp
  atomic<const void*> owner{nullptr};  // who has it alone; builds with checks
  line waiters;
};

enum class lock_kind : bool { alone, shared };

void shared_mutex_lock(shared_mutex_core& m, lock_kind how);
[[nodiscard]] bool shared_mutex_lock_until(shared_mutex_core& m, lock_kind how, sync_time deadline);
[[nodiscard]] bool shared_mutex_try_lock(shared_mutex_core& m, lock_kind how) noexcept;
void shared_mutex_unlock(shared_mutex_core& m) noexcept;
void shared_mutex_unlock_shared(shared_mutex_core& m) noexcept;
void shared_mutex_destroyed(const shared_mutex_core& m) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// For std::unique_lock, std::scoped_lock and std::shared_lock. First come, first served: whoever comes while others
// wait waits behind them, so neither readers nor writers starve; readers next to each other in the line go together.
// Not recursive: a fiber that shares the lock and wants to share it again waits for ever if a writer has come in
// between.
//
// What happened before an unlock is seen after the next lock; before an unlock_shared, after the next lock alone.
// Constant-initialised. Fibers of any runtime and plain threads may use one. Builds with checks end the program with a
// message when it is locked by who has it alone, unlocked by somebody else, or destroyed while it is locked.
class shared_mutex {
 public:
  shared_mutex() noexcept = default;
  ~shared_mutex() {
    if (core_.word.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ::ramie::detail::shared_mutex_destroyed(core_);
  }
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  // Alone. A cancellation point on every call: throws `cancelled`, and then the lock is not held. Throws std::bad_alloc
  // on a thread's first wait.
  void lock() { ::ramie::detail::shared_mutex_lock(core_, kind::alone); }
  // The same, no longer than that. False: too late, and the lock is not held. A cancellation point. Also throws
  // std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::shared_mutex_lock_until(core_, kind::alone, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_until(::ramie::detail::time_after(limit));
  }
  // Never waits; not a cancellation point.
  [[nodiscard]] bool try_lock() noexcept { return ::ramie::detail::shared_mutex_try_lock(core_, kind::alone); }
  void unlock() noexcept { ::ramie::detail::shared_mutex_unlock(core_); }

  // The same, shared.
  void lock_shared() { ::ramie::detail::shared_mutex_lock(core_, kind::shared); }
  [[nodiscard]] bool try_lock_shared_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::shared_mutex_lock_until(core_, kind::shared, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_shared_until(::ramie::detail::time_after(limit));
  }
  // False also while somebody waits.
  [[nodiscard]] bool try_lock_shared() noexcept { return ::ramie::detail::shared_mutex_try_lock(core_, kind::shared); }
  void unlock_shared() noexcept { ::ramie::detail::shared_mutex_unlock_shared(core_); }

 private:
  using kind = ::ramie::detail::lock_kind;
  ::ramie::detail::shared_mutex_core core_;
};

}  // namespace ramie::inline v0
