// SPDX-License-Identifier: BSL-1.0
// A count that goes down once; at zero everybody goes on, for good.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct latch_core {
  static constexpr const char* name = "latch";
  static constexpr std::uint64_t waiting = 1;
  atomic<std::uint64_t> word;  // sync/src/latch_core.hpp
  wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept {
    return (word.load(std::memory_order_relaxed) & waiting) != 0 ? "others wait for" : nullptr;
  }
};

void latch_count_down(latch_core& l, std::int64_t by);
[[nodiscard]] bool latch_wait(latch_core& l, sync_time until);
[[nodiscard]] ready_source latch_source(const latch_core& l) noexcept;

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// What happened before a count_down is seen after a wait. A case of select: on_ready(l, f) happens when the count is
// zero. Constant-initialised. Fibers of any runtime and plain threads may use one. It may be destroyed once every wait
// has returned: the last count_down does not touch it after that.
class latch : ::ramie::sync_internal::sync_object<::ramie::sync_internal::latch_core> {
 public:
  // A negative count is a usage_error.
  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr latch(Count expected)
      : sync_object(std::in_place,
                    ::ramie::sync_internal::checked_count(::ramie::sync_internal::signed_count(expected), 0,
                                                          "latch::latch", "Expect 0 or more.")
                        << 1) {}

  // Takes that many off the count. Any fiber or thread. Never waits; not a cancellation point. A negative count, or one
  // that would lead below zero, is a usage_error, and nothing has happened.
  void count_down(std::int64_t by = 1) { ::ramie::sync_internal::latch_count_down(core_, by); }
  // Whether the count is zero. Any fiber or thread; not a cancellation point.
  [[nodiscard]] bool try_wait() const noexcept { return core_.word.load(std::memory_order_acquire) >> 1 == 0; }
  // Waits until the count is zero. Any fiber or thread. A cancellation point on every call: throws `cancelled`. Throws
  // std::bad_alloc on a thread's first wait.
  void wait() { (void)wait_until({}); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(deadline until) { return ::ramie::sync_internal::latch_wait(core_, until.when()); }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(limit);
  }
  // count_down, then wait. Any fiber or thread. A cancellation point: throws `cancelled`, and has counted down then.
  // Throws what they throw.
  void arrive_and_wait(std::int64_t by = 1) {
    count_down(by);
    wait();
  }

 private:
  friend struct ::ramie::runtime_internal::ready_access;
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept {
    return ::ramie::sync_internal::latch_source(core_);
  }
};

}  // namespace ramie::inline v0
