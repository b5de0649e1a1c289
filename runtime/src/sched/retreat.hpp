// SPDX-License-Identifier: BSL-1.0
// Which workers stay out because the machine has no processor for them (crowding.hpp).
//
// A crowded worker asks for leave. It is granted to one after the other, with time in between to see what came of it,
// and never to the last one. Whoever is out runs no fibers, and is woken by nobody; it hands on what its operations and
// the time make runnable, and looks every few milliseconds whether the others get through what they have (retreat.cpp).
//
//   - At the end of its leave it comes back: processors may have become free. If it has to go again soon, for four
//     times as long: a look at a crowded machine every second costs little.
//   - If the last one stays crowded all the same, the processors go to strangers anyway, and what they leave is better asked
//     for by many: all are called back, and nobody goes out for a while.
//
// Any thread may call any of these at any time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::detail {

class retreat {
 public:
  struct leave {
    platform::time_point until;
    std::uint64_t recalls;  // before it
  };

  // One of so many workers is crowded, and has been for so many windows. None: it stays.
  [[nodiscard]] std::optional<leave> ask(std::uint32_t workers, unsigned windows, platform::time_point now) noexcept {
    std::lock_guard hold(mutex_);
    if (now < nobody_before_) return std::nullopt;
    if (out_ + 1 >= workers) {
      if (out_ != 0 && windows >= windows_before_recall) {
        nobody_before_ = now + longest_leave;
        recalls_.store(recalls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      }
      return std::nullopt;
    }
    ++out_;
    nobody_before_ = now + time_between_leaves;
    const bool again = now - last_return_ < soon_after_leave;
    span_ = again ? std::min(4 * span_, longest_leave) : shortest_leave;
    return leave{now + span_, recalls_.load(std::memory_order_relaxed)};
  }
  // Whoever was granted leave: whether it should come back at once.
  [[nodiscard]] bool is_recalled(const leave& from) const noexcept {
    return recalls_.load(std::memory_order_relaxed) != from.recalls;
  }
  // It is back.
  void end(platform::time_point now) noexcept {
    std::lock_guard hold(mutex_);
    --out_;
    last_return_ = now;
  }
  // How many are.
  [[nodiscard]] std::uint32_t out() const noexcept {
    std::lock_guard hold(mutex_);
    return out_;
  }

 private:
  mutable platform::mutex mutex_;
  std::uint32_t out_ = 0;
  platform::time_point nobody_before_{}, last_return_{};
  platform::nanoseconds span_ = shortest_leave;
  platform::atomic<std::uint64_t> recalls_{0};
};

// Whether the others get on without the one who is out. Its own.
class outlook {
 public:
  explicit outlook(std::uint64_t polls_of_others) noexcept : polls_(polls_of_others) {}

  // At every look: what the others have polled so far, and what is queued. False: they do not get through it, or there
  // has been nothing to leave to them for a while.
  [[nodiscard]] bool get_on(std::uint64_t polls_of_others, std::size_t queued) noexcept {
    const auto done = polls_of_others - std::exchange(polls_, polls_of_others);
    quiet_ = done + queued == 0 ? quiet_ + 1 : 0;
    return queued <= done && quiet_ < quiet_looks_before_return;
  }

 private:
  std::uint64_t polls_;
  unsigned quiet_ = 0;
};

}  // namespace ramie::detail
