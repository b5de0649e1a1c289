// SPDX-License-Identifier: BSL-1.0
// The word of a notify and the line behind it. A leaf: the explorer runs it.
//
//   permit   one notification that nobody has taken
//   waiting  somebody is listed (line.hpp, M1)
//
// Never both. While `waiting` is set, the word is changed only with the line held.
#pragma once

#include <cstdint>

#include <ramie/notify.hpp>

#include "line.hpp"

namespace ramie::detail {

struct notify_word {
  static constexpr std::uint32_t permit = 1, waiting = 2;

  [[nodiscard]] static bool try_take(notify_core& n) noexcept {
    std::uint32_t seen = permit;
    if (n.word.load(std::memory_order_relaxed) != permit) return false;
    return n.word.compare_exchange_strong(seen, 0, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // False: we have taken the permit.
  [[nodiscard]] static bool publish(notify_core& n, line_waiter& me) noexcept {
    line_guard hold(n.waiters);
    auto seen = n.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto wanted = seen == permit ? 0 : waiting;
      if (n.word.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    if (seen == permit) return false;
    hold.list(me);
    return true;
  }

  static void unpublish(notify_core& n, line_waiter& me) noexcept {
    line_guard hold(n.waiters);
    hold.remove(me);
    if (hold.empty()) n.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

  static void one(notify_core& n) noexcept {
    for (auto seen = n.word.load(std::memory_order_relaxed);;) {
      if (seen == waiting) {
        if (wake_first(n)) return;
        seen = n.word.load(std::memory_order_relaxed);
      } else if (n.word.compare_exchange_weak(seen, permit, std::memory_order_release, std::memory_order_relaxed)) {
        return;  // also over a permit: whoever takes it sees what all who gave it did
      }
    }
  }

  static void all(notify_core& n) noexcept {
    if (n.word.load(std::memory_order_acquire) != waiting) return;
    tell_later later;
    line_guard hold(n.waiters);
    later.let_all_pass(hold);
    n.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

 private:
  // False: nobody waits any more (line.hpp, M4).
  static bool wake_first(notify_core& n) noexcept {
    tell_later later;
    line_guard hold(n.waiters);
    if (n.word.load(std::memory_order_relaxed) != waiting) return false;
    waiter* const first = hold.claim_first();
    if (first != nullptr) later.add(*first);
    if (hold.empty()) n.word.store(first != nullptr ? 0 : permit, std::memory_order_release);
    return true;
  }
};

class notify_waitable final : public waitable {
 public:
  explicit notify_waitable(notify_core& n) noexcept : notify_(n) {}
  bool try_complete(waiter& node) override {
    return static_cast<line_waiter&>(node).passed || notify_word::try_take(notify_);
  }
  bool publish(waiter& node) override { return notify_word::publish(notify_, static_cast<line_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override { notify_word::unpublish(notify_, static_cast<line_waiter&>(node)); }

 private:
  notify_core& notify_;
};

}  // namespace ramie::detail
