// SPDX-License-Identifier: BSL-1.0
// The word of what is done once. A leaf: the explorer runs it.
//
//   0        nobody is at it
//   running  somebody is; perhaps with `waiting`: somebody is listed (line.hpp, M1)
//   done     for good
//
// Whoever is at it and fails hands `running` to the first of the line, if there is one: so a failure wakes one waiter,
// a success all.
#pragma once

#include <cstdint>

#include <ramie/once.hpp>

#include "line.hpp"

namespace ramie::detail {

struct once_waiter : line_waiter {
  bool ours = false;  // found free when it wanted to list itself
};

// The outcome in a waiter's node.
enum class once_turn : std::uint32_t { none, done, ours };

struct once_word {
  static constexpr std::uint32_t running = once_core::running, waiting = once_core::waiting, done = once_core::done;

  // True: it is ours to do.
  [[nodiscard]] static bool try_begin(once_core& o) noexcept {
    std::uint32_t free = 0;
    return o.word.compare_exchange_strong(free, running, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // False: it is done, or ours.
  [[nodiscard]] static bool publish(once_core& o, once_waiter& me) noexcept {
    line_guard hold(o.waiters);
    auto seen = o.word.load(std::memory_order_acquire);
    do {
      if (seen == done) return false;
    } while (!o.word.compare_exchange_weak(seen, seen == 0 ? running : seen | waiting, std::memory_order_acquire,
                                           std::memory_order_acquire));
    me.ours = seen == 0;
    if (!me.ours) hold.list(me);
    return !me.ours;
  }

  static void unpublish(once_core& o, once_waiter& me) noexcept {
    line_guard hold(o.waiters);
    hold.remove(me);
    if (hold.empty()) o.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

  // Whoever is at it.
  static void end(once_core& o, bool succeeded) noexcept {
    for (std::uint32_t alone = running;;) {
      if (o.word.compare_exchange_weak(alone, succeeded ? done : 0, std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
      if (alone == (running | waiting) && (succeeded ? finish(o) : pass_on(o))) return;
      alone = running;
    }
  }

 private:
  // Both: false if nobody waits any more (line.hpp, M4).
  static bool finish(once_core& o) noexcept {
    tell_later later;
    line_guard hold(o.waiters);
    if (hold.empty()) return false;
    later.let_all_pass(hold);
    o.word.store(done, std::memory_order_release);
    return true;
  }
  static bool pass_on(once_core& o) noexcept {
    tell_later later;
    line_guard hold(o.waiters);
    if (hold.empty()) return false;
    waiter* const next = hold.claim_first();
    if (next != nullptr) later.add(*next, static_cast<std::uint32_t>(once_turn::ours));
    if (hold.empty()) o.word.store(next != nullptr ? running : 0, std::memory_order_release);
    return true;
  }
};

class once_wait final : public waitable {
 public:
  explicit once_wait(once_core& o) noexcept : once_(o) {}
  bool try_complete(waiter&) override { return once_.is_done(); }
  bool publish(waiter& node) override { return once_word::publish(once_, static_cast<once_waiter&>(node)); }
  void unpublish(waiter& node) noexcept override { once_word::unpublish(once_, static_cast<once_waiter&>(node)); }

 private:
  once_core& once_;
};

}  // namespace ramie::detail
