// SPDX-License-Identifier: BSL-1.0
// Something that has happened or not, and can be taken back.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct event_core {
  static constexpr const char* name = "event";
  static constexpr std::uint32_t happened = 1, waiting = 2;
  atomic<std::uint32_t> word{0};  // sync/src/event_core.hpp
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    return (word.load(std::memory_order_relaxed) & waiting) != 0 ? "others wait for" : nullptr;
  }
};

void event_set(event_core& e) noexcept;
void event_reset(event_core& e) noexcept;
[[nodiscard]] bool event_wait(event_core& e, sync_time until);
[[nodiscard]] ready_source event_source(const event_core& e) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// While it is set nobody waits. Set and reset by whoever likes, as often as they like. A case of select: on_ready(e, f)
// happens if e is set, or has been set since the select began to wait.
//
// What happened before set is seen after a wait that it ends. Constant-initialised. Fibers of any runtime and plain
// threads may use one. It may be destroyed once nobody is inside a wait.
class event : ::ramie::sync_internal::sync_object<::ramie::sync_internal::event_core> {
 public:
  event() noexcept = default;

  // All who wait go on, also if it is reset right away. Any fiber or thread; never waits, not a cancellation point.
  void set() noexcept { ::ramie::sync_internal::event_set(core_); }
  // Who waits from now on waits for the next set. Any fiber or thread; never waits, not a cancellation point.
  void reset() noexcept { ::ramie::sync_internal::event_reset(core_); }
  // Whether it is set. A snapshot. Any fiber or thread; not a cancellation point.
  [[nodiscard]] bool is_set() const noexcept {
    return (core_.word.load(std::memory_order_acquire) & ::ramie::sync_internal::event_core::happened) != 0;
  }

  // Waits until it is set. Any fiber or thread. A cancellation point on every call: throws `cancelled`. Throws
  // std::bad_alloc on a thread's first wait.
  void wait() { (void)wait_until({}); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(deadline until) { return ::ramie::sync_internal::event_wait(core_, until.when()); }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(limit);
  }

 private:
  friend struct ::ramie::runtime_internal::ready_access;
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept {
    return ::ramie::sync_internal::event_source(core_);
  }
};

}  // namespace ramie::inline v0
