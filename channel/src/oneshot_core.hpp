// SPDX-License-Identifier: BSL-1.0
// How the ends of a oneshot hand the value over; the states are in oneshot.hpp.
//
//       receiver, leaving                       sender, or the other end that goes
//       1. RECEIVER_WAITING -> EMPTY?           1. RECEIVER_WAITING -> VALUE_SENT or CLOSED
//          then the other end won't wake it     2. wake the receiver by its frame and ticket
//          else wait for `wake_done`                 3. wake_done = true
//
// Step 2 uses the receiver's frame, even if the receiver runs already, because its deadline, a cancellation or this
// very wake has woken it. So the receiver must not go on, and perhaps end with its runtime, before step 3.
#pragma once

#include <utility>

#include <ramie/oneshot.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

[[nodiscard]] inline bool is_final(const oneshot_core& core) noexcept {
  return core.now.load(std::memory_order_acquire) >= oneshot_core::value_sent;  // pairs with the exchange of settle
}

// The receiver's side, for its own wait and for select.
[[nodiscard]] inline bool publish_receiver(oneshot_core& core, const waiter& node) noexcept {
  std::uint8_t before = core.now.load(std::memory_order_acquire);
  if (before != oneshot_core::empty) return before == oneshot_core::receiver_waiting;  // twice in one select
  core.who = node.who;
  core.ticket = node.ticket;
  // acq_rel: who and ticket are there for whoever leaves the state; a value that has come is here for us.
  core.published = core.now.compare_exchange_strong(before, oneshot_core::receiver_waiting, std::memory_order_acq_rel);
  return core.published;
}
// Idempotent, and harmless if it was not published.
inline void unpublish_receiver(oneshot_core& core) noexcept {
  if (!std::exchange(core.published, false)) return;
  std::uint8_t before = oneshot_core::receiver_waiting;
  if (core.now.compare_exchange_strong(before, oneshot_core::empty, std::memory_order_acq_rel)) return;
  for (platform::backoff turn; !core.wake_done.load(std::memory_order_acquire);) turn.wait();
}

class oneshot_arrival final : public waitable {
 public:
  explicit oneshot_arrival(oneshot_core& core) noexcept : core_(core) {}
  static oneshot_arrival of(const ready_source& t) noexcept {
    return oneshot_arrival(*static_cast<oneshot_core*>(t.what));
  }
  bool try_complete(waiter&) override { return is_final(core_); }
  bool publish(waiter& node) override { return publish_receiver(core_, node); }
  void unpublish(waiter&) noexcept override { unpublish_receiver(core_); }

 private:
  oneshot_core& core_;
};

// Final states are left only by the receiver that takes the value: an end that goes must not overwrite what the other
// end has written.
inline std::uint8_t settle(oneshot_core& core, oneshot_core::state to) noexcept {
  auto before = core.now.load(std::memory_order_relaxed);
  do {
    if (before >= oneshot_core::value_sent) {
      return core.now.load(std::memory_order_acquire);
    }
  } while (!core.now.compare_exchange_weak(before, to, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == oneshot_core::receiver_waiting) {
    waker(core.who, core.ticket).wake();
    core.wake_done.store(true, std::memory_order_release);  // pairs with the acquire in unpublish_receiver
  }
  return before;
}

}  // namespace ramie::channel_internal
