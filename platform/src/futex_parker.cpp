// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/futex_parker.hpp>

#include <ctime>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/futex.hpp>

namespace ramie::platform {

namespace {

timespec to_timespec(time_point t) noexcept {
  const auto ns = t.time_since_epoch().count();
  return {static_cast<std::time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

// Returns true if a token was there and has been consumed; else the state is `parked`.
bool futex_parker::announce() noexcept {
  std::uint32_t expected = unparked;
  if (state_.compare_exchange_strong(expected, parked, std::memory_order_acquire, std::memory_order_acquire)) {
    return false;
  }
  consume();
  return true;
}

// An RMW, not a store: a token that arrives meanwhile merges with this one, and what its giver did before is
// then seen by us.
void futex_parker::consume() noexcept {
  state_.exchange(unparked, std::memory_order_acquire);
}

void futex_parker::park() noexcept {
  if (announce()) return;
  while (state_.load(std::memory_order_acquire) != notified) {  // pairs with the release in unpark
    futex_wait(state_, parked, nullptr);
  }
  consume();
}

bool futex_parker::park_until(time_point deadline) noexcept {
  if (announce()) return true;
  const timespec until = to_timespec(deadline);
  while (state_.load(std::memory_order_acquire) != notified) {
    if (steady_clock::instance().now() >= deadline) {
      // The token may arrive right now: the exchange decides who was first.
      return state_.exchange(unparked, std::memory_order_acquire) == notified;
    }
    futex_wait(state_, parked, &until);
  }
  consume();
  return true;
}

void futex_parker::unpark() noexcept {
  const auto address = &state_;
  if (state_.exchange(notified, std::memory_order_release) == parked) {
    // The owner may already be gone with its memory; waking an address nobody waits on is harmless.
    futex_wake_one(address);
  }
}

}  // namespace ramie::platform
