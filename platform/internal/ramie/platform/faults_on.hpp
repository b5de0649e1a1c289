// SPDX-License-Identifier: BSL-1.0
// See faults.hpp: a test decides what is refused.
#pragma once

#include <atomic>
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

inline bool strikes(fault at) noexcept {
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

}  // namespace ramie::platform::faults
