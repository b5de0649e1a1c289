// SPDX-License-Identifier: BSL-1.0
// A fiber's wait for one operation. It lives on the fiber's stack, and is its fiber's again when it is done.
//
//   state: 0 idle; a ticket: the fiber waits under it; ~0: done.
//
// The thread that takes the completion reads `who`, then exchanges the state for `done`: after that the request may be
// gone. If it was a ticket the fiber is woken under that: frames are not freed while their runtime lives, and a stale
// ticket wakes no fiber (one that was cancelled has read the state in between, and needs no wake).
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

void fiber_wake(fiber& f, std::uint64_t ticket) noexcept;

class io_request final : public waitable {
 public:
  io_request(platform::io_operation& op, fiber& who) noexcept : who_(&who) { op.owner = this; }

  [[nodiscard]] bool done() const noexcept {
    return state_.load(std::memory_order_acquire) == is_done;  // pairs with the exchange in complete
  }

  // Once, by the thread that was handed its operation with the result.
  void complete() noexcept {
    fiber& f = *who_;
    const auto ticket = state_.exchange(is_done, std::memory_order_acq_rel);
    if (ticket != idle) fiber_wake(f, ticket);
  }

  bool try_complete(waiter&) override { return done(); }
  // False: it is done.
  bool publish(waiter& node) override {
    std::uint64_t before = idle;
    // Pairs with the exchange in complete: a thread that reads the ticket sees the frame that it belongs to; and as in
    // done.
    return state_.compare_exchange_strong(before, node.ticket, std::memory_order_release, std::memory_order_acquire);
  }
  void unpublish(waiter& node) noexcept override {
    std::uint64_t before = node.ticket;
    (void)state_.compare_exchange_strong(before, idle, std::memory_order_relaxed, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t idle = 0;
  static constexpr std::uint64_t is_done = ~std::uint64_t{0};

  fiber* const who_;
  platform::atomic<std::uint64_t> state_{idle};
};

}  // namespace ramie::runtime_internal
