// SPDX-License-Identifier: BSL-1.0
// Retreat: workers leave the work to the others because the machine has no processor for them (crowding.hpp).
//
// A crowded worker asks to be suspended. Suspensions are granted to one worker after the other, with time in between to
// see the effect, and never to the last worker. A suspended worker runs no fibers, and no producer wakes it. It moves
// what its operations and timers make runnable to the injection queue, and checks every few milliseconds whether the
// other workers keep up with what is queued (retreat.cpp).
//
//   - At the end of its suspension the worker comes back: processors may have become free. If it has to retreat again
//     soon, it does so for four times as long, up to a second.
//   - If the last worker stays crowded all the same, other programs take the processors anyway, and many workers get
//     more of what they leave than one: all workers are recalled, and no suspension is granted for a while.
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

namespace ramie::runtime_internal {

// Which workers of one runtime are suspended, and until when. retreat.cpp has what a worker does with a suspension.
class suspensions {
 public:
  struct suspension {
    platform::time_point until;
    std::uint64_t recalls;  // before it
    bool withdrawal;
  };

  // One of so many workers is crowded, and has been for so many windows. Nothing: no suspension is granted.
  [[nodiscard]] std::optional<suspension> request(std::uint32_t workers, unsigned windows,
                                                  platform::time_point now) noexcept {
    std::lock_guard hold(mutex_);
    if (now < retreats_.nobody_before) return std::nullopt;
    if (suspended_ + 1 >= workers) {
      if (suspended_ != 0 && windows >= windows_before_recall) {
        retreats_.nobody_before = now + longest_suspension;
        recalls_.store(recalls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      }
      return std::nullopt;
    }
    return grant(retreats_, now);
  }
  // One of so many workers is entangled.
  [[nodiscard]] std::optional<suspension> request_withdrawal(std::uint32_t workers, platform::time_point now) noexcept {
    std::lock_guard hold(mutex_);
    if (now < withdrawals_.nobody_before || suspended_ + 1 >= workers) return std::nullopt;
    return grant(withdrawals_, now);
  }
  // The suspended worker: whether it should come back at once.
  [[nodiscard]] bool is_recalled(const suspension& from) const noexcept {
    return recalls_.load(std::memory_order_relaxed) != from.recalls;
  }
  // The worker is back.
  void end(const suspension& of, platform::time_point now) noexcept {
    std::lock_guard hold(mutex_);
    --suspended_;
    (of.withdrawal ? withdrawals_ : retreats_).last_return = now;
  }
  // How many workers are suspended.
  [[nodiscard]] std::uint32_t suspended() const noexcept {
    std::lock_guard hold(mutex_);
    return suspended_;
  }

 private:
  // Suspensions for one reason: how long they are, and how far apart.
  struct series {
    const platform::nanoseconds between, soon, shortest, longest;
    platform::nanoseconds span = shortest;
    platform::time_point nobody_before{}, last_return{};
  };

  // With the mutex.
  [[nodiscard]] suspension grant(series& of, platform::time_point now) noexcept {
    ++suspended_;
    of.nobody_before = now + of.between;
    const bool again = now - of.last_return < of.soon;
    of.span = again ? std::min(4 * of.span, of.longest) : of.shortest;
    return {now + of.span, recalls_.load(std::memory_order_relaxed), &of == &withdrawals_};
  }

  mutable platform::mutex mutex_;
  std::uint32_t suspended_ = 0;
  series retreats_{time_between_suspensions, soon_after_suspension, shortest_suspension, longest_suspension};
  series withdrawals_{time_between_withdrawals, soon_after_withdrawal, shortest_withdrawal, longest_withdrawal};
  platform::atomic<std::uint64_t> recalls_{0};
};

// Owned by the retreated worker: do the others keep up without it?
class progress_of_others {
 public:
  explicit progress_of_others(std::uint64_t polls_of_others) noexcept : polls_(polls_of_others) {}

  // At every check: what the others have polled so far, and what is queued. False: they fall behind, or there has been
  // nothing to do for a while.
  [[nodiscard]] bool keep_up(std::uint64_t polls_of_others, std::size_t queued) noexcept {
    const auto done = polls_of_others - std::exchange(polls_, polls_of_others);
    quiet_ = done + queued == 0 ? quiet_ + 1 : 0;
    return queued <= done && quiet_ < quiet_checks_before_return;
  }

 private:
  std::uint64_t polls_;
  unsigned quiet_ = 0;
};

}  // namespace ramie::runtime_internal
