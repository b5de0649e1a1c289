// SPDX-License-Identifier: BSL-1.0
// Permits: so many may go on at once. Whoever finds too few waits its turn.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct semaphore_core {
  static constexpr const char* name = "semaphore";
  static constexpr std::uint64_t waiting = 1;
  atomic<std::uint64_t> word;  // sync/src/semaphore_core.hpp
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    return (word.load(std::memory_order_relaxed) & waiting) != 0 ? "others wait for" : nullptr;
  }
};

void semaphore_acquire(semaphore_core& s, std::int64_t count);
[[nodiscard]] bool semaphore_acquire_until(semaphore_core& s, std::int64_t count, sync_time until);
[[nodiscard]] bool semaphore_try_acquire(semaphore_core& s, std::int64_t count);
void semaphore_release(semaphore_core& s, std::int64_t count);
[[nodiscard]] ready_source semaphore_source(semaphore_core& s, std::uint64_t count) noexcept;

[[nodiscard]] constexpr std::uint64_t checked_permits(std::int64_t count, const char* function) {
  return checked_count(count, 0, function, "A number of permits is 0 or more, and at most semaphore::max().");
}

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// Permits are handed to those who wait in the order they came: none slips past a waiter, and who waits for many is not
// overtaken by those who want few. A waiter that is cancelled or too late has taken none. Permits belong to nobody:
// whoever likes may release.
//
// What happened before a release is seen after an acquire of what was released. Constant-initialised. Fibers of any
// runtime and plain threads may use one. It may be destroyed once nobody is inside acquire. A count that is negative or
// more than max() is a usage_error everywhere, and nothing has happened.
class semaphore : ::ramie::sync_internal::sync_object<::ramie::sync_internal::semaphore_core> {
 public:
  // The most permits there can be.
  static constexpr std::int64_t max() noexcept { return ::ramie::sync_internal::max_count; }

  // With so many to begin with. Throws usage_error if they are negative or more than max().
  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr semaphore(Count permits)
      : sync_object(std::in_place, ::ramie::sync_internal::checked_permits(
                                       ::ramie::sync_internal::signed_count(permits), "semaphore::semaphore")
                                       << 1) {}

  // Waits until that many can be taken at once. Any fiber or thread. A cancellation point: throws `cancelled`, and then
  // has taken none. Throws std::bad_alloc on a thread's first wait.
  void acquire(std::int64_t count = 1) { ::ramie::sync_internal::semaphore_acquire(core_, count); }
  // The same, no longer than that. False: too late, and none was taken. A cancellation point. Also throws
  // std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_acquire_until(deadline until, std::int64_t count = 1) {
    return ::ramie::sync_internal::semaphore_acquire_until(core_, count, until.when());
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> limit, std::int64_t count = 1) {
    return try_acquire_until(limit, count);
  }
  // Takes that many if they are there. Never waits; not a cancellation point. Any fiber or thread. False also while
  // others wait.
  [[nodiscard]] bool try_acquire(std::int64_t count = 1) {
    return ::ramie::sync_internal::semaphore_try_acquire(core_, count);
  }
  // Puts that many there, for those who wait first. Any fiber or thread. Never waits; not a cancellation point. More
  // than max() in all is a usage_error.
  void release(std::int64_t count = 1) { ::ramie::sync_internal::semaphore_release(core_, count); }

  // How many could be taken now. A snapshot. Any fiber or thread; not a cancellation point.
  [[nodiscard]] std::int64_t available() const noexcept {
    return static_cast<std::int64_t>(core_.word.load(std::memory_order_acquire) >> 1);
  }

 private:
  template <class F>
  friend auto on_acquire(semaphore& s, std::int64_t count, F&& f);
};

// For select: takes that many permits of s. f() runs with them; who releases them, and when, is up to it. They are
// taken only if this case happens. Throws usage_error for a count that s.acquire would refuse.
template <class F>
[[nodiscard]] auto on_acquire(semaphore& s, std::int64_t count, F&& f) {
  static_assert(std::invocable<std::decay_t<F>&>, "ramie: the handler of on_acquire takes nothing.");
  const auto permits = ::ramie::sync_internal::checked_permits(count, "on_acquire");
  return ::ramie::runtime_internal::taking_case<std::decay_t<F>>(
      ::ramie::sync_internal::semaphore_source(s.core_, permits), std::forward<F>(f));
}
// The same of one permit.
template <std::invocable<> F>
[[nodiscard]] auto on_acquire(semaphore& s, F&& f) {
  return on_acquire(s, 1, std::forward<F>(f));
}

}  // namespace ramie::inline v0
