// SPDX-License-Identifier: BSL-1.0
// The mechanisms behind io_backend.hpp, and what they share. Each throws std::system_error if the machine refuses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/unique_fd.hpp>

namespace ramie::platform {

[[nodiscard]] std::unique_ptr<io_backend> make_uring_backend();
[[nodiscard]] std::unique_ptr<io_backend> make_epoll_backend();
[[nodiscard]] std::unique_ptr<io_backend> make_poll_backend();

// In the build for tests: `inner`, or a backend around it with the io_faults that the test has enabled (faults.hpp).
// Else `inner`.
[[nodiscard]] std::unique_ptr<io_backend> with_faults(std::unique_ptr<io_backend> inner);

// From now, not less; nothing if it has passed.
struct time_span {
  std::int64_t seconds, nanoseconds;
};
[[nodiscard]] inline time_span time_left(time_point until) noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (until <= now) return {0, 0};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(until - now);
  return {seconds.count(), std::chrono::nanoseconds(until - now - seconds).count()};
}

// Written under a lock, read by anybody.
class counter {
 public:
  counter& operator++() noexcept { return *this += 1; }
  counter& operator+=(std::size_t by) noexcept {
    value_.store(*this + by, std::memory_order_relaxed);
    return *this;
  }
  counter& operator-=(std::size_t by) noexcept { return *this += 0 - by; }
  operator std::size_t() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  atomic<std::size_t> value_{0};
};

}  // namespace ramie::platform
