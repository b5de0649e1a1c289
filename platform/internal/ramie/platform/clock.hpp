// SPDX-License-Identifier: BSL-1.0
// Time, as a collaborator that can be replaced: the machine's steady clock, or a virtual clock that
// moves only when a test moves it.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/platform/atomic.hpp>

namespace ramie::platform {

using nanoseconds = std::chrono::nanoseconds;
using time_point = std::chrono::steady_clock::time_point;

class clock_source {
 public:
  virtual ~clock_source() = default;
  [[nodiscard]] virtual time_point now() const noexcept = 0;
};

class steady_clock final : public clock_source {
 public:
  [[nodiscard]] time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] static const steady_clock& instance() noexcept;
};

// Starts at the epoch of steady_clock and never goes back. Any thread may read, any may advance.
class virtual_clock final : public clock_source {
 public:
  [[nodiscard]] time_point now() const noexcept override {
    return time_point(nanoseconds(elapsed_.load(std::memory_order_acquire)));
  }
  void advance(nanoseconds by) noexcept;

 private:
  std::atomic<std::int64_t> elapsed_{0};
};

}  // namespace ramie::platform
