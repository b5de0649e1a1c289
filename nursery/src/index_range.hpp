// SPDX-License-Identifier: BSL-1.0
// The indices that a loop has still to call. Its owner takes them from below without an RMW; a thief takes the upper half
// of what is left. A lock-free leaf: tests/explore runs it.
//
// Invariants
//   IX1  Every index is given out once: to the owner by take, or to a thief by split.
//   IX2  One thief at a time: whoever splits was let in by the entry of a queue, and another entry is pushed only after
//       that split has ended.
//   IX3  `splits_` is odd while a thief has lowered `limit_` and does not know yet whether it may keep what is above.
//
//       owner, take                            thief, split
//       1. next = i + 1                        1. limit = middle
//       2. light fence                         2. heavy fence
//       3. load limit: i below it is mine      3. load next: above the middle? then limit goes back
//
// Either the thief sees the owner's index, or the owner sees the lower limit. An owner that sees its index above the limit
// waits for the end of a split that is under way before it believes that: the thief may have seen the index. A thief whose
// middle the owner has passed begins again with what is left: if it went away with nothing, indices would be left that
// nobody offers, while the owner's call perhaps waits for one of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace ramie::nursery_internal {

class index_range {
 public:
  // Which were given out: [first, last), perhaps none.
  struct piece {
    std::size_t first;
    std::size_t last;
    [[nodiscard]] bool empty() const noexcept { return first >= last; }
  };

  explicit index_range(piece all) noexcept : next_(all.first), limit_(all.last) {}

  // The owner. False: there is none left; it must not be called again. May run beside split().
  [[nodiscard]] bool take(std::size_t& index) noexcept {
    index = next_.load(std::memory_order_relaxed);
    next_.store(index + 1, std::memory_order_relaxed);  // 1
    platform::light_fence();                            // 2
    if (index < limit_.load(std::memory_order_acquire)) [[likely]]  // 3; pairs with the release in split
      return true;
    return take_slow(index);
  }

  // The thief. May run beside take(); never beside another split(). Empty: the owner has taken all.
  [[nodiscard]] piece split() noexcept {
    const auto limit = limit_.load(std::memory_order_relaxed);
    auto next = next_.load(std::memory_order_relaxed);
    piece share{limit, limit};
    if (next >= limit) return share;
    const auto splits = splits_.load(std::memory_order_relaxed);
    splits_.store(splits + 1, std::memory_order_relaxed);  // seen by who sees the limit
    do {
      const auto middle = next + (limit - next) / 2;
      limit_.store(middle, std::memory_order_release);  // 1; pairs with the acquire in take
      platform::heavy_fence();                          // 2
      next = next_.load(std::memory_order_relaxed);     // 3
      if (next <= middle) {
        share.first = middle;
      } else {
        limit_.store(limit, std::memory_order_relaxed);
      }
    } while (share.empty() && next < limit);
    splits_.store(splits + 2, std::memory_order_release);  // pairs with the acquire in take_slow
    return share;
  }

  // A hint; exact for the owner while nobody splits.
  [[nodiscard]] bool any_left() const noexcept {
    return next_.load(std::memory_order_relaxed) < limit_.load(std::memory_order_relaxed);
  }

 private:
  // A limit that goes back was lowered by the split that is under way; one that is lowered later stays above the index,
  // because that split sees it.
  [[gnu::noinline]] bool take_slow(std::size_t index) const noexcept {
    for (platform::backoff turn; splits_.load(std::memory_order_acquire) % 2 != 0;) turn.wait();
    return index < limit_.load(std::memory_order_relaxed);
  }

  platform::atomic<std::size_t> next_;
  platform::atomic<std::size_t> limit_;
  platform::atomic<std::uint32_t> splits_{0};
};

}  // namespace ramie::nursery_internal
