// SPDX-License-Identifier: BSL-1.0
// Telling somebody that there is something to do: one permit that is stored if nobody waits.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct notify_core {
  atomic<std::uint32_t> word{0};  // channel/src/sync/notify_core.hpp
  line waiters;
};

void notify_wait(notify_core& n);
[[nodiscard]] bool notify_wait_until(notify_core& n, sync_time deadline);
[[nodiscard]] bool notify_try_wait(notify_core& n) noexcept;
void notify_one(notify_core& n) noexcept;
void notify_all(notify_core& n) noexcept;
void notify_destroyed(const notify_core& n) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// A notification is not lost because nobody waits yet, and several that nobody has taken are one. So a fiber that looks
// for work, finds none and then waits needs no lock: what came after it looked ends its wait. A waiter that is
// cancelled or too late has taken no notification: the next one gets it.
//
// What happened before notify_one is seen after the wait that it ends. Constant-initialised. Fibers of any runtime and
// plain threads may use one. It may be destroyed once nobody is inside a wait.
class notify {
 public:
  notify() noexcept = default;
  ~notify() {
    if ((core_.word.load(std::memory_order_relaxed) & 2) != 0) [[unlikely]]
      ::ramie::detail::notify_destroyed(core_);
  }
  notify(const notify&) = delete;
  notify& operator=(const notify&) = delete;

  // Takes the stored permit, or waits for a notification. A cancellation point: throws `cancelled`. Throws
  // std::bad_alloc on a thread's first wait.
  void wait() { ::ramie::detail::notify_wait(core_); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::notify_wait_until(core_, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(::ramie::detail::time_after(limit));
  }
  // Takes the stored permit, if there is one. Not a cancellation point.
  [[nodiscard]] bool try_wait() noexcept { return ::ramie::detail::notify_try_wait(core_); }

  // Wakes the longest waiter; if nobody waits, stores the permit. Any fiber or thread; not a cancellation point.
  void notify_one() noexcept { ::ramie::detail::notify_one(core_); }
  // Wakes all who wait now, and stores nothing. Any fiber or thread; not a cancellation point.
  void notify_all() noexcept { ::ramie::detail::notify_all(core_); }

 private:
  ::ramie::detail::notify_core core_;
};

}  // namespace ramie::inline v0
