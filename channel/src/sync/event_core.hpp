// SPDX-License-Identifier: BSL-1.0
// The word of an event and the line behind it. A leaf: the explorer runs it.
//
//   happened  nobody need wait
//   waiting   somebody is listed (line.hpp, M1)
//
// Never both.
#pragma once

#include <cstdint>

#include <ramie/event.hpp>

#include "line.hpp"

namespace ramie::detail {

struct event_word {
  static constexpr std::uint32_t happened = 1, waiting = 2;

  [[nodiscard]] static bool has_happened(const event_core& e) noexcept {
    return (e.word.load(std::memory_order_acquire) & happened) != 0;  // pairs with the releases of `set`
  }

  // False: it has happened.
  [[nodiscard]] static bool publish(event_core& e, line_waiter& me) noexcept {
    line_guard hold(e.waiters);
    auto seen = e.word.load(std::memory_order_acquire);
    do {
      if ((seen & happened) != 0) return false;
    } while (!e.word.compare_exchange_weak(seen, waiting, std::memory_order_acquire, std::memory_order_acquire));
    hold.list(me);
    return true;
  }

  static void unpublish(event_core& e, line_waiter& me) noexcept {
    line_guard hold(e.waiters);
    hold.remove(me);
    if (hold.empty()) e.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

  static void set(event_core& e) noexcept {
    for (auto seen = e.word.load(std::memory_order_relaxed);;) {
      if (seen == waiting) {
        if (let_all_go(e)) return;
        seen = e.word.load(std::memory_order_relaxed);
      } else if (e.word.compare_exchange_weak(seen, happened, std::memory_order_release, std::memory_order_relaxed)) {
        return;  // also over itself: who waits sees what all who set it did
      }
    }
  }

  // Whoever takes back what has happened sees what was done before.
  static void reset(event_core& e) noexcept { e.word.fetch_and(~happened, std::memory_order_acq_rel); }

 private:
  // False: nobody waits any more (line.hpp, M4).
  static bool let_all_go(event_core& e) noexcept {
    tell_later later;
    line_guard hold(e.waiters);
    if (e.word.load(std::memory_order_relaxed) != waiting) return false;
    later.let_all_pass(hold);
    e.word.store(happened, std::memory_order_release);
    return true;
  }
};

class event_waitable final : public waitable {
 public:
  explicit event_waitable(event_core& e) noexcept : event_(e) {}
  bool try_complete(waiter& node) override {
    return static_cast<line_waiter&>(node).passed || event_word::has_happened(event_);
  }
  bool publish(waiter& node) override { return event_word::publish(event_, static_cast<line_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override { event_word::unpublish(event_, static_cast<line_waiter&>(node)); }

 private:
  event_core& event_;
};

}  // namespace ramie::detail
