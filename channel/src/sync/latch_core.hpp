// SPDX-License-Identifier: BSL-1.0
// The word of a latch and the line behind it. A leaf: the explorer runs it.
//
//   bit 0   waiting: somebody is listed (line.hpp, M1)
//   others  the count
//
// Counting down is one RMW; only the last one, and only if somebody is listed, takes the line. At zero nobody is
// listed, and nobody lists itself any more.
#pragma once

#include <cstdint>

#include <ramie/latch.hpp>

#include "line.hpp"

namespace ramie::detail {

struct latch_word {
  static constexpr std::uint64_t waiting = 1;
  [[nodiscard]] static std::uint64_t count(std::uint64_t word) noexcept { return word >> 1; }

  [[nodiscard]] static bool is_open(const latch_core& l) noexcept {
    return count(l.word.load(std::memory_order_acquire)) == 0;  // pairs with the releases of count_down
  }

  // False: it is open.
  [[nodiscard]] static bool publish(latch_core& l, line_waiter& me) noexcept {
    line_guard hold(l.waiters);
    auto seen = l.word.load(std::memory_order_acquire);
    do {
      if (count(seen) == 0) return false;
    } while (!l.word.compare_exchange_weak(seen, seen | waiting, std::memory_order_acq_rel, std::memory_order_acquire));
    hold.list(me);
    return true;
  }

  static void unpublish(latch_core& l, line_waiter& me) noexcept {
    line_guard hold(l.waiters);
    hold.remove(me);
    if (hold.empty()) l.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

  // False: it would be below zero.
  [[nodiscard]] static bool count_down(latch_core& l, std::uint64_t by) noexcept {
    for (auto seen = l.word.load(std::memory_order_relaxed);;) {
      if (by > count(seen)) return false;
      if (by == count(seen) && (seen & waiting) != 0) {
        if (open(l)) return true;
        seen = l.word.load(std::memory_order_relaxed);
      } else if (l.word.compare_exchange_weak(seen, seen - (by << 1), std::memory_order_release,
                                              std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  // The last of the count is ours. False: nobody waits any more (line.hpp, M4).
  static bool open(latch_core& l) noexcept {
    tell_later later;
    line_guard hold(l.waiters);
    if ((l.word.load(std::memory_order_relaxed) & waiting) == 0) return false;
    later.let_all_pass(hold);
    l.word.exchange(0, std::memory_order_acq_rel);
    return true;
  }
};

class latch_waitable final : public waitable {
 public:
  explicit latch_waitable(latch_core& l) noexcept : latch_(l) {}
  bool try_complete(waiter&) override { return latch_word::is_open(latch_); }
  bool publish(waiter& node) override { return latch_word::publish(latch_, static_cast<line_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override { latch_word::unpublish(latch_, static_cast<line_waiter&>(node)); }

 private:
  latch_core& latch_;
};

}  // namespace ramie::detail
