// SPDX-License-Identifier: BSL-1.0
// Whether a worker's fibers are entangled with another worker's. Fibers that use one channel from two workers pass its
// lock to and fro, and with it the lines of its buffer and of whoever waits: each worker mostly waits until the other
// lets go. One worker runs them all faster than two, and where a theft has split them, nothing else brings them
// together again. So a worker that spends a large share of its time waiting for locks of others leaves its fibers to
// those (retreat.cpp).
//
// The worker looks when a tick ends and when the injection queue has its turn, if it has waited meanwhile. A window is
// the time from one look to another that is long enough that a single wait does not decide; and two in a row must agree.
// Eight to thirty-two fibers that send and receive on one channel, on two workers, wait for 45 to 60 % of nearly every
// window; a pipeline of two thousand channels waits for nothing, since nobody is using the lock that is asked for. Such
// waits, which end with a revocation, do not count (biased_lock.cpp). Owner only.
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

class entanglement {
 public:
  // Whether it has waited since the last window.
  [[nodiscard]] bool has_waited(platform::nanoseconds waited) const noexcept { return waited != waited_before_.get(); }
  // `waited`: for locks, by this worker so far. True: a window has ended in which that was too much, like the one before.
  [[nodiscard]] bool look(platform::nanoseconds waited, platform::time_point now) noexcept {
    const auto window = now - begun_.get();
    if (window < entanglement_window) return false;
    const auto lost = waited - waited_before_.get();
    begun_.set(now);
    waited_before_.set(waited);
    in_a_row_.set(lost * 100 >= window * entanglement_percent ? in_a_row_.get() + 1 : 0);
    return in_a_row_.get() >= windows_before_withdrawal;
  }

 private:
  platform::owned<platform::time_point> begun_{};
  platform::owned<platform::nanoseconds> waited_before_{platform::nanoseconds{0}};
  platform::owned<std::uint32_t> in_a_row_{0};
};

}  // namespace ramie::runtime_internal
