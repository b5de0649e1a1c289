// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/futex_parker.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

namespace {

// Results are ignored on purpose: every return, spurious or not, re-reads the state.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* until) noexcept {
  if (faults::strikes(fault::sleep)) return;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

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
    if (std::chrono::steady_clock::now() >= deadline) {
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
    ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace ramie::platform
