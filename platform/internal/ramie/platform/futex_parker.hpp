// SPDX-License-Identifier: BSL-1.0
// The thread parker on a Linux futex. See thread_parker.hpp for the contract.
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>

namespace ramie::platform {

class futex_parker {
 public:
  void park() noexcept;
  [[nodiscard]] bool park_until(time_point deadline) noexcept;
  [[nodiscard]] bool has_token() const noexcept { return state_.load(std::memory_order_relaxed) == notified; }
  void unpark() noexcept;

 private:
  enum state : std::uint32_t { unparked = 0, parked = 1, notified = 2 };

  [[nodiscard]] bool announce() noexcept;
  void consume() noexcept;

  atomic<std::uint32_t> state_{unparked};
};

}  // namespace ramie::platform
