// SPDX-License-Identifier: BSL-1.0
// Telling a waiter that there is something to do: one permit that is stored if nobody waits.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct notify_core {
  static constexpr const char* name = "notify";
  static constexpr std::uint32_t waiting = 2;
  atomic<std::uint32_t> word{0};  // sync/src/notify_core.hpp
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    return (word.load(std::memory_order_relaxed) & waiting) != 0 ? "others wait for" : nullptr;
  }
};

[[nodiscard]] bool notify_wait(notify_core& n, sync_time until);
[[nodiscard]] bool notify_try_wait(notify_core& n) noexcept;
void notify_one(notify_core& n) noexcept;
void notify_all(notify_core& n) noexcept;
[[nodiscard]] ready_source notify_source(notify_core& n) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// A notification is not lost because nobody waits yet, and several that nobody has taken are one. So a fiber that looks
// for work, finds none and then waits needs no lock: what came after it looked ends its wait. A waiter that is
// cancelled or too late has taken no notification: the next one gets it.
//
// What happened before notify_one is seen after the wait that it ends. Constant-initialised. Fibers of any runtime and
// plain threads may use one. It may be destroyed once nobody is inside a wait.
class notify : ::ramie::sync_internal::sync_object<::ramie::sync_internal::notify_core> {
 public:
  notify() noexcept = default;

  // Takes the stored permit, or waits for a notification. Any fiber or thread. A cancellation point: throws
  // `cancelled`. Throws std::bad_alloc on a thread's first wait.
  void wait() { (void)wait_until({}); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(deadline until) { return ::ramie::sync_internal::notify_wait(core_, until.when()); }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(limit);
  }
  // Takes the stored permit, if there is one. Any fiber or thread; not a cancellation point.
  [[nodiscard]] bool try_wait() noexcept { return ::ramie::sync_internal::notify_try_wait(core_); }

  // Wakes the longest waiter; if nobody waits, stores the permit. Any fiber or thread; not a cancellation point.
  void notify_one() noexcept { ::ramie::sync_internal::notify_one(core_); }
  // Wakes all who wait now, and stores nothing. Any fiber or thread; not a cancellation point.
  void notify_all() noexcept { ::ramie::sync_internal::notify_all(core_); }

 private:
  template <class F>
  friend auto on_notified(notify& n, F&& f);
};

// For select: takes the stored permit or a notification. f(). It is taken only if this case happens.
template <class F>
[[nodiscard]] auto on_notified(notify& n, F&& f) {
  static_assert(std::invocable<std::decay_t<F>&>, "ramie: the handler of on_notified takes nothing.");
  return ::ramie::runtime_internal::taking_case<std::decay_t<F>>(::ramie::sync_internal::notify_source(n.core_),
                                                                std::forward<F>(f));
}

}  // namespace ramie::inline v0
