// SPDX-License-Identifier: BSL-1.0
// See faults.hpp: a test decides what is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include <ramie/platform/random.hpp>

namespace ramie::platform::faults {

inline constexpr long for_good = std::numeric_limits<long>::max();

// Asked so far, and which of the questions are refused: from the first to the last, 0 for none.
struct plan {
  std::atomic<long> asked{0};
  std::atomic<long> first{0};
  std::atomic<long> last{0};
};
inline plan plans[fault_count];

// Called with every question, before it is answered: a test may hold up the thread that asks. Null: not called.
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

// The kinds that are enabled, a bit each by io_fault; and the state of the generator that decides when they occur.
inline std::atomic<unsigned> io_faults{0};
inline std::atomic<std::uint64_t> io_fault_steps{0};

[[nodiscard]] inline bool enabled(io_fault which) noexcept {
  return (io_faults.load(std::memory_order_relaxed) >> static_cast<unsigned>(which) & 1) != 0;
}
// A random number below `bound`.
[[nodiscard]] inline std::uint32_t draw(std::uint32_t bound) noexcept {
  return scaled_below(splitmix_of(io_fault_steps.fetch_add(splitmix_increment, std::memory_order_relaxed)), bound);
}
// One time in three.
[[nodiscard]] inline bool occurs(io_fault which) noexcept {
  return enabled(which) && draw(3) == 0;
}
// Enables `kinds`, a bit each by io_fault, from now on; 0: none.
inline void plan_io_faults(unsigned kinds, std::uint64_t seed) noexcept {
  io_fault_steps.store(seed);
  io_faults.store(kinds);
}

}  // namespace ramie::platform::faults
