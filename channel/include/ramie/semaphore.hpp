// SPDX-License-Identifier: BSL-1.0
// Permits: so many may go on at once. Whoever finds too few waits its turn.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include <ramie/clock.hpp>
#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct semaphore_core {
  atomic<std::uint64_t> word;  // channel/src/sync/semaphore_core.hpp
  line waiters;
};

void semaphore_acquire(semaphore_core& s, std::uint64_t count);
[[nodiscard]] bool semaphore_acquire_until(semaphore_core& s, std::uint64_t count, sync_time deadline);
[[nodiscard]] bool semaphore_try_acquire(semaphore_core& s, std::uint64_t count) noexcept;
void semaphore_release(semaphore_core& s, std::uint64_t count) noexcept;
void semaphore_destroyed(const semaphore_core& s) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// Permits are handed to those who wait in the order they came: none slips past a waiter, and who waits for many is not
// overtaken by those who want few. A waiter that is cancelled or too late has taken none. Permits belong to nobody:
// whoever likes may release.
//
// What happened before a release is seen after an acquire of what was released. Constant-initialised. Fibers of any
// runtime and plain threads may use one. It may be destroyed once nobody is inside acquire.
class semaphore {
 public:
  // At most so many.
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0} >> 2; }

  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr semaphore(Count permits) noexcept : core_{static_cast<std::uint64_t>(permits) << 1, {}} {}
  ~semaphore() {
    if ((core_.word.load(std::memory_order_relaxed) & 1) != 0) [[unlikely]]
      ::ramie::detail::semaphore_destroyed(core_);
  }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  // Waits until that many can be taken at once. A cancellation point: throws `cancelled`, and then has taken none.
  // Throws std::bad_alloc on a thread's first wait.
  void acquire(std::uint64_t count = 1) { ::ramie::detail::semaphore_acquire(core_, count); }
  // The same, no longer than that. False: too late, and none was taken. A cancellation point. Also throws
  // std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] bool try_acquire_until(std::chrono::steady_clock::time_point deadline, std::uint64_t count = 1) {
    return ::ramie::detail::semaphore_acquire_until(core_, count, deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> limit, std::uint64_t count = 1) {
    return try_acquire_until(::ramie::detail::time_after(limit), count);
  }
  // Never waits; not a cancellation point. False also while others wait.
  [[nodiscard]] bool try_acquire(std::uint64_t count = 1) noexcept {
    return ::ramie::detail::semaphore_try_acquire(core_, count);
  }
  // Any fiber or thread. Never waits; not a cancellation point. More than max() in all ends the program.
  void release(std::uint64_t count = 1) noexcept { ::ramie::detail::semaphore_release(core_, count); }

  // How many could be taken now. A snapshot.
  [[nodiscard]] std::uint64_t available() const noexcept { return core_.word.load(std::memory_order_acquire) >> 1; }

 private:
  ::ramie::detail::semaphore_core core_;
};

}  // namespace ramie::inline v0
