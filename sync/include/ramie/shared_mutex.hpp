// SPDX-License-Identifier: BSL-1.0
// A lock that many may share, or one have for itself.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct shared_mutex_core {
  static constexpr const char* name = "shared_mutex";
  static constexpr std::uint32_t waiting = 2;
  atomic<std::uint32_t> word{0};       // sync/src/shared_mutex_core.hpp
  atomic<const void*> owner{nullptr};  // who has it alone; builds with checks
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    const auto now = word.load(std::memory_order_relaxed);
    return now == 0 ? nullptr : (now & waiting) == 0 ? "is locked" : "others wait for";
  }
};

enum class lock_kind : bool { alone, shared };

[[nodiscard]] bool shared_mutex_lock(shared_mutex_core& m, lock_kind how, sync_time until);
[[nodiscard]] bool shared_mutex_try_lock(shared_mutex_core& m, lock_kind how) noexcept;
void shared_mutex_unlock(shared_mutex_core& m) noexcept;
void shared_mutex_unlock_shared(shared_mutex_core& m) noexcept;
[[nodiscard]] ready_source shared_mutex_source(shared_mutex_core& m, lock_kind how) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// For std::unique_lock, std::scoped_lock and std::shared_lock. First come, first served: whoever comes while others
// wait waits behind them, so neither readers nor writers starve; readers next to each other in the queue go together.
// Not recursive: a fiber that shares the lock and wants to share it again waits for ever if a writer has come in
// between.
//
// What happened before an unlock is seen after the next lock; before an unlock_shared, after the next lock alone.
// Constant-initialised. Fibers of any runtime and plain threads may use one. Builds with checks end the program with a
// message when it is locked by who has it alone, unlocked by somebody else, or destroyed while it is locked.
class shared_mutex : ::ramie::sync_internal::sync_object<::ramie::sync_internal::shared_mutex_core> {
 public:
  shared_mutex() noexcept = default;

  // Waits for the lock, alone. Any fiber or thread. A cancellation point on every call: throws `cancelled`, and then
  // the lock is not held. Throws std::bad_alloc on a thread's first wait.
  void lock() { (void)try_lock_until({}); }
  // Like lock, but waits no longer than `until`. False: too late, and the lock is not held. A cancellation point. Also
  // throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_lock_until(deadline until) {
    return ::ramie::sync_internal::shared_mutex_lock(core_, kind::alone, until.when());
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_until(limit);
  }
  // Takes it if nobody has it. Never waits; not a cancellation point. Any fiber or thread. False also while somebody
  // waits.
  [[nodiscard]] bool try_lock() noexcept { return ::ramie::sync_internal::shared_mutex_try_lock(core_, kind::alone); }
  // Releases it. Whoever has it alone. Never waits; not a cancellation point.
  void unlock() noexcept { ::ramie::sync_internal::shared_mutex_unlock(core_); }

  // Like the five functions above, but shared: others may share the lock at the same time. Cancellation points where
  // those are.
  void lock_shared() { (void)try_lock_shared_until({}); }
  [[nodiscard]] bool try_lock_shared_until(deadline until) {
    return ::ramie::sync_internal::shared_mutex_lock(core_, kind::shared, until.when());
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> limit) {
    return try_lock_shared_until(limit);
  }
  [[nodiscard]] bool try_lock_shared() noexcept {
    return ::ramie::sync_internal::shared_mutex_try_lock(core_, kind::shared);
  }
  void unlock_shared() noexcept { ::ramie::sync_internal::shared_mutex_unlock_shared(core_); }

 private:
  using kind = ::ramie::sync_internal::lock_kind;
  template <class F>
  friend auto on_lock(shared_mutex& m, F&& f);
  template <class F>
  friend auto on_lock_shared(shared_mutex& m, F&& f);
};

// For select: locks m alone. f(std::unique_lock<shared_mutex>&&) gets the lock, which is released when f ends unless f
// has moved it elsewhere. m is locked only if this case happens.
template <class F>
[[nodiscard]] auto on_lock(shared_mutex& m, F&& f) {
  static_assert(std::invocable<std::decay_t<F>&, std::unique_lock<shared_mutex>>,
                "ramie: the handler of on_lock takes a std::unique_lock<ramie::shared_mutex>, which holds the lock.");
  return ::ramie::runtime_internal::taking_case(
      ::ramie::sync_internal::shared_mutex_source(m.core_, ::ramie::sync_internal::lock_kind::alone),
      [&m, f = std::forward<F>(f)]() mutable { std::invoke(f, std::unique_lock<shared_mutex>(m, std::adopt_lock)); });
}
// The same, shared: f(std::shared_lock<shared_mutex>&&).
template <class F>
[[nodiscard]] auto on_lock_shared(shared_mutex& m, F&& f) {
  static_assert(std::invocable<std::decay_t<F>&, std::shared_lock<shared_mutex>>,
                "ramie: the handler of on_lock_shared takes a std::shared_lock<ramie::shared_mutex>, which holds the lock.");
  return ::ramie::runtime_internal::taking_case(
      ::ramie::sync_internal::shared_mutex_source(m.core_, ::ramie::sync_internal::lock_kind::shared),
      [&m, f = std::forward<F>(f)]() mutable { std::invoke(f, std::shared_lock<shared_mutex>(m, std::adopt_lock)); });
}

}  // namespace ramie::inline v0
