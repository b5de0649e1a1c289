// SPDX-License-Identifier: BSL-1.0
// A count that goes down once; at zero everybody goes on, for good.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct latch_core {
  atomic<std::uint64_t> word;  // channel/src/sync/latch_core.hpp
  line waiters;
};

void latch_count_down(latch_core& l, std::uint64_t by) noexcept;
void latch_wait(latch_core& l);
[[nodiscard]] bool latch_wait_until(latch_core& l, sync_time deadline);
void latch_destroyed(const latch_core& l) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// What happened before a count_down is seen after a wait. Constant-initialised. Fibers of any runtime and plain threads
// may use one. It may be destroyed once every wait has returned: the last count_down does not touch it after that.
class latch {
 public:
  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr latch(Count expected) noexcept : core_{static_cast<std::uint64_t>(expected) << 1, {}} {}
  ~latch() {
    if ((core_.word.load(std::memory_order_relaxed) & 1) != 0) [[unlikely]]
      ::ramie::detail::latch_destroyed(core_);
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  // Any fiber or thread. Never waits; not a cancellation point. Below zero ends the program.
  void count_down(std::uint64_t by = 1) noexcept { ::ramie::detail::latch_count_down(core_, by); }
  // Whether the count is zero. Not a cancellation point.
  [[nodiscard]] bool try_wait() const noexcept { return core_.word.load(std::memory_order_acquire) >> 1 == 0; }
  // Waits until the count is zero. A cancellation point on every call: throws `cancelled`. Throws std::bad_alloc on a
  // thread's first wait.
  void wait() { ::ramie::detail::latch_wait(core_); }
  // The same, no longer than that. False: too late. A cancellation point. Also throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point deadline) {
    return ::ramie::detail::latch_wait_until(core_, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(::ramie::detail::time_after(limit));
  }
  // Both. If it is cancelled, it has counted down.
  void arrive_and_wait(std::uint64_t by = 1) {
    count_down(by);
    wait();
  }

 private:
  ::ramie::detail::latch_core core_;
};

}  // namespace ramie::inline v0
