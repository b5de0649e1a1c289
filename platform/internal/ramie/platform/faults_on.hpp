// SPDX-License-Identifier: BSL-1.0
// See faults.hpp: a test decides what is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace ramie::platform::faults {

inline constexpr long for_good = std::numeric_limits<long>::max();

// Asked so far, and which of the questions are refused: from the first to the last, 0 for none.
struct plan {
  std::atomic<long> asked{0};
  std::atomic<long> first{0};
  std::atomic<long> last{0};
};
inline plan plans[fault_count];

// Called with every question, before it is answered: a test may hold up who asks. Null: nobody is told.
inline std::atomic<void (*)(fault) noexcept> told{nullptr};

inline bool strikes(fault at) noexcept {
  if (const auto tell = told.load()) tell(at);
  plan& p = plans[static_cast<unsigned>(at)];
  const long now = p.asked.fetch_add(1) + 1;
  const long first = p.first.load();
  return first != 0 && now >= first && now <= p.last.load();
}

// From now on the k-th question is refused, and those after it up to the `last`-th. k 0: none is.
inline void plan_for(fault at, long k, long last) noexcept {
  plan& p = plans[static_cast<unsigned>(at)];
  p.first.store(0);
  p.asked.store(0);
  p.last.store(last);
  p.first.store(k);
}
[[nodiscard]] inline long asked(fault at) noexcept {
  return plans[static_cast<unsigned>(at)].asked.load();
}

// Bits by io_whim; and what they are drawn from, step by step.
inline std::atomic<unsigned> whims{0};
inline std::atomic<std::uint64_t> whim_steps{0};

[[nodiscard]] inline bool allowed(io_whim which) noexcept {
  return (whims.load(std::memory_order_relaxed) >> static_cast<unsigned>(which) & 1) != 0;
}
// Below `bound`, by splitmix64.
[[nodiscard]] inline std::uint32_t draw(std::uint32_t bound) noexcept {
  auto x = whim_steps.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>(((x ^ (x >> 31)) >> 32) * bound >> 32);
}
// One time in three.
[[nodiscard]] inline bool befalls(io_whim which) noexcept {
  return allowed(which) && draw(3) == 0;
}
// All of `kinds` from now on; none: 0.
inline void plan_whims(unsigned kinds, std::uint64_t seed) noexcept {
  whim_steps.store(seed);
  whims.store(kinds);
}

}  // namespace ramie::platform::faults
