// SPDX-License-Identifier: BSL-1.0
// Something that has happened or not, and can be taken back.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct event_core {
  atomic<std::uint32_t> word{0};  // channel/src/sync/event_core.hpp
  line waiters;
};

void event_set(event_core& e) noexcept;
void event_reset(event_core& e) noexcept;
void event_wait(event_core& e);
[[nodiscard]] bool event_wait_until(event_core& e, sync_time deadline);
void event_destroyed(const event_core& e) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// While it is set nobody waits. Set and reset by whoever likes, as often as they like.
//
// What happened before set is seen after a wait that it ends. Constant-initialised. Fibers of any runtime and plain
// threads may use one. It may be destroyed once nobody is inside a wait.
class event {
 public:
  event() noexcept = default;
  ~event() {
    if ((core_.word.load(std::memory_order_relaxed) & 2) != 0) [[unlikely]]
      ::ramie::detail::event_destroyed(core_);
  }
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  // All who wait go on, also if it is reset right away. Any fiber or thread; not a cancellation point.
  void set() noexcept { ::ramie::detail::event_set(core_); }
  void reset() noexcept { ::ramie::detail::event_reset(core_); }
  [[nodiscard]] bool is_set() const noexcept { return (core_.word.load(std::memory_order_acquire) & 1) != 0; }

  // Waits until it is set. A cancellation point on every call: throws `cancelled`. Throws std::bad_alloc on a thread's
  // first wait.
  void wait() { ::ramie::detail::event_wait(core_); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::event_wait_until(core_, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(::ramie::detail::time_after(limit));
  }

 private:
  ::ramie::detail::event_core core_;
};

}  // namespace ramie::inline v0
