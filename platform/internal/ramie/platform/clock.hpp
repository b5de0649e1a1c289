// SPDX-License-Identifier: BSL-1.0
// Time, as a collaborator that can be replaced: the machine's steady clock, or a virtual clock that
// moves only when a test moves it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>

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
  [[nodiscard]] time_point now() const noexcept override;
  [[nodiscard]] static const steady_clock& instance() noexcept;
};

// Called on the advancing thread after a virtual clock has moved.
class clock_listener {
 public:
  virtual void time_passed() noexcept = 0;

 protected:
  ~clock_listener() = default;
};

// Starts at the epoch of steady_clock and never goes back. Any thread may read, any may advance; listeners
// are called before advance() returns, and must not (un)subscribe then.
class virtual_clock final : public clock_source {
 public:
  // A clock that advances by itself is advanced by its only listener.
  explicit virtual_clock(bool by_itself = false) noexcept : advances_itself(by_itself) {}
  const bool advances_itself;
  [[nodiscard]] time_point now() const noexcept override {
    return time_point(nanoseconds(elapsed_.load(std::memory_order_acquire)));
  }
  void advance(nanoseconds by) noexcept;
  void advance_to(time_point when) noexcept;  // nothing if that has passed
  // False: there is a listener, and there can be only one.
  [[nodiscard]] bool subscribe(clock_listener& listener);
  void unsubscribe(clock_listener& listener) noexcept;

 private:
  void tell_listeners() noexcept;

  mutex mutex_;
  std::vector<clock_listener*> listeners_;
  atomic<std::int64_t> elapsed_{0};
};

}  // namespace ramie::platform
