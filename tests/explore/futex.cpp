// SPDX-License-Identifier: BSL-1.0
// The futex of the model. A wake is lost if nobody waits yet, as the kernel's is; time is the model's.
#include <ramie/platform/futex.hpp>

#include <map>

#include <explore/explorer.hpp>

namespace ramie::platform {

namespace {
// How often each address was woken. Addresses are all it looks at: the word may be gone.
std::map<const void*, std::uint64_t> wakes;

std::int64_t microsecond_of(const timespec& t) {
  return std::int64_t{t.tv_sec} * 1'000'000 + (t.tv_nsec + 999) / 1'000;
}
}  // namespace

void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* deadline) noexcept {
  const void* const address = &word;
  // The kernel compares and queues in one step, and reads the newest.
  std::uint32_t seen = expected;
  if (!word.compare_exchange_strong(seen, expected, std::memory_order_relaxed, std::memory_order_relaxed)) return;
  const auto before = wakes[address];
  const auto woken = [address, before] { return wakes[address] != before; };
  deadline != nullptr ? explore::until(woken, microsecond_of(*deadline)) : explore::until(woken);
}

void futex_wake_one(atomic<std::uint32_t>* word) noexcept {
  explore::step();
  ++wakes[word];
  explore::changed();
}

void choose_fences() noexcept {}

}  // namespace ramie::platform
