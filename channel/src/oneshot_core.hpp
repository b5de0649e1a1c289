// SPDX-License-Identifier: BSL-1.0
// How the ends of a oneshot meet; the states are in oneshot.hpp.
//
//       receiver, leaving                       sender, or the other end that goes
//       1. RECEIVER_WAITING -> EMPTY?           1. RECEIVER_WAITING -> VALUE_SENT or CLOSED
//          then nobody will wake it             2. wake the receiver by its frame and ticket
//          else wait for `told`                 3. told = true
//
// The receiver's frame is used in 2, also when the receiver runs already: woken by its deadline or a cancellation, or
// by this very wake. So it must not go on, and perhaps end with its runtime, before 3.
#pragma once

#include <utility>

#include <ramie/oneshot.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

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
// Harmless if it was not published, or is no longer.
inline void unpublish_receiver(oneshot_core& core) noexcept {
  if (!std::exchange(core.published, false)) return;
  std::uint8_t before = oneshot_core::receiver_waiting;
  if (core.now.compare_exchange_strong(before, oneshot_core::empty, std::memory_order_acq_rel)) return;
  for (platform::backoff turn; !core.told.load(std::memory_order_acquire);) turn.wait();
}

class oneshot_arrival final : public waitable {
 public:
  explicit oneshot_arrival(oneshot_core& core) noexcept : core_(core) {}
  bool try_complete(waiter&) override { return is_final(core_); }
  bool publish(waiter& node) override { return publish_receiver(core_, node); }
  void unpublish(waiter&) noexcept override { unpublish_receiver(core_); }

 private:
  oneshot_core& core_;
};

// Final states are left only by the receiver that takes the value. An end that goes must not overwrite the other's
// word.
inline std::uint8_t settle(oneshot_core& core, oneshot_core::state to) noexcept {
  auto before = core.now.load(std::memory_order_relaxed);
  do {
    if (before >= oneshot_core::value_sent) {
      return core.now.load(std::memory_order_acquire);
    }
  } while (!core.now.compare_exchange_weak(before, to, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == oneshot_core::receiver_waiting) {
    waker(core.who, core.ticket).wake();
    core.told.store(true, std::memory_order_release);  // pairs with the acquire in unpublish_receiver
  }
  return before;
}

}  // namespace ramie::detail
