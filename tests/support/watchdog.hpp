// SPDX-License-Identifier: BSL-1.0
// Every test case is watched: one that has not ended after a minute (more under a sanitizer, under valgrind and at the
// large size) is told, with who waits where, and ends the process. SIGQUIT (Ctrl-\) has the same effect at any time.
// tools/lib/cases.py records such a case as failed and goes on with the next one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace test {

// For a case that takes long but shows that it goes on. While the object lives, every step makes the watchdog wait
// anew, and if there are no more of them, describe() prints to standard error what was being done. Main thread only,
// except for step() and steps(). describe() is called while the others hang, by a signal handler.
class watchdog {
 public:
  explicit watchdog(std::function<void()> describe) : describe_(std::move(describe)), outer_(innermost) {
    innermost = this;
  }
  ~watchdog() { innermost = outer_; }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  // Something happened. The new count, which also dates events: of two calls of which one happens before the other it
  // returns less. Relaxed, so that it orders nothing that the runtime ought to order.
  std::uint64_t step() noexcept { return steps_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }

  // Of all that live.
  [[nodiscard]] static std::uint64_t all_steps() noexcept {
    std::uint64_t sum = 0;
    for (const watchdog* each = innermost; each != nullptr; each = each->outer_) sum += each->steps();
    return sum;
  }
  static void describe_all() {
    for (const watchdog* each = innermost; each != nullptr; each = each->outer_) each->describe_();
  }

 private:
  static inline watchdog* innermost = nullptr;

  const std::function<void()> describe_;
  watchdog* const outer_;
  std::atomic<std::uint64_t> steps_{0};
};

// Watches the calling thread's process from now on, once, in a child that was forked out of a test case: the watch is
// not inherited. Half as patient, so that the child is told before the case that waits for it.
void watch_child() noexcept;

// The process ended because a case hung.
inline constexpr int exit_of_hung = 86;

}  // namespace test
