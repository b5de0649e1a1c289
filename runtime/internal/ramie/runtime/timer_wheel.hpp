// SPDX-License-Identifier: BSL-1.0
// Timers in O(1): five levels of 64 slots, a tick wide at level 0, 64 ticks at level 1, and so on; what lies beyond
// 64^5 ticks (12.4 days of milliseconds) waits in a list of its own. A leaf: ticks are passed in, nothing is allocated,
// nothing locked.
//
// A timer's slot is a digit of its tick in base 64, absolute, not relative to a cursor: at level L it shares all digits
// above L with `now`, and its digit L is larger. So
//
//   WH1  Timers of a lower level come before those of a higher one, and within a level the lowest occupied slot is
//        next. Nothing wraps round. Level by leading zeros, slot by trailing zeros of the level's occupancy.
//   WH2  When `now` reaches the first tick of a slot at level L > 0, its timers move to lower levels (cascade); a slot
//        at level 0 is due as a whole. When the digits above all levels change, the far list is sorted in anew.
//   U2   A timer is handed out once, at the first advance to or beyond its tick, and never before.
//
// (Tokio's wheel does the same. Rejected: one heap under one lock, which this replaced: O(log n) misses
// of the cache for every timeout that never fires, which is nearly all of them.)
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ramie::runtime_internal {

// Part of whatever waits; in at most one list.
struct timer_node {
  timer_node* next = nullptr;
  timer_node** link = nullptr;  // whatever points to this one; null: in no list
  timer_node* aside = nullptr;  // in a list: one that is some steps on, or was: only to be fetched
  std::uint64_t tick = 0;
  std::chrono::steady_clock::time_point when{};  // only timer_heap looks at it
  std::uint8_t level = 0;

  [[nodiscard]] bool listed() const noexcept { return link != nullptr; }
};

// Unordered, last in first out. Nodes know how to leave. They live on the stacks of who waits, each on a page of its
// own, so walking down a list is a miss of cache and TLB for every step; hence each node remembers one that is some
// steps on, which take_first fetches.
class timer_list {
 public:
  timer_list() noexcept = default;
  timer_list(const timer_list&) = delete;
  timer_list& operator=(const timer_list&) = delete;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] timer_node* first() const noexcept { return first_; }
  void add(timer_node& node) noexcept {
    node.next = first_;
    if (first_ != nullptr) first_->link = &node.next;
    node.aside = std::exchange(recent_[added_++ % stride], &node);
    first_ = &node;
    node.link = &first_;
  }
  [[nodiscard]] timer_node* take_first() noexcept {
    timer_node* const node = first_;
    if (node == nullptr) return nullptr;
    __builtin_prefetch(node->aside, 1);
    remove(*node);
    return node;
  }
  // All of `from`, without looking at them; this one is empty.
  void take_all(timer_list& from) noexcept {
    first_ = from.first_;
    if (first_ != nullptr) first_->link = &first_;
    from.first_ = nullptr;
  }
  static void remove(timer_node& node) noexcept {
    *node.link = node.next;
    if (node.next != nullptr) node.next->link = node.link;
    node.link = nullptr;
  }

 private:
  static constexpr unsigned stride = 16;

  timer_node* first_ = nullptr;
  unsigned added_ = 0;
  timer_node* recent_[stride] = {};  // the last ones that were added
};

class timer_wheel {
 public:
  static constexpr unsigned levels = 5;
  static constexpr unsigned slot_bits = 6;
  static constexpr unsigned slots = 1u << slot_bits;
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  explicit timer_wheel(std::uint64_t now = 0) noexcept : now_(now) {}

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  // A tick that has passed is due at once. Returns when take_due has to be called because of it: what next() would
  // return if this were the only timer.
  std::uint64_t insert(timer_node& node, std::uint64_t tick) noexcept {
    node.tick = tick;
    place(node);
    ++count_;
    if (node.level == at_due) return now_;
    const unsigned below = slot_bits * node.level;
    return node.level == at_far ? beyond_all_levels() : tick >> below << below;
  }

  // The node is in this wheel. (What is due may still say level 0: its slot is empty, or holds those of another round.)
  void remove(timer_node& node) noexcept {
    timer_list::remove(node);
    --count_;
    if (node.level >= levels) return;
    const auto slot = digit(node.tick, node.level);
    if (lists_[node.level][slot].empty()) occupied_[node.level] &= ~bit(slot);
  }

  // Time goes on, never back, as far as the next timer that is due by then, which is no longer in the wheel; or to
  // `to`, and null. A slot of level 0 becomes due without a look at its timers: each of them is a cache miss.
  [[nodiscard]] timer_node* take_due(std::uint64_t to) noexcept {
    while (due_.empty()) {
      const event next = next_event();
      if (next.tick > to) {
        if (to > now_) now_ = to;
        return nullptr;
      }
      pass(next);
    }
    --count_;
    return due_.take_first();
  }

  // Of an empty wheel: time has passed up to `to`.
  void skip_to(std::uint64_t to) noexcept {
    if (to > now_) now_ = to;
  }

  // When take_due has to be called next; no timer is due before. `now` if some are due, `never` if there are none; the
  // tick of the next timer if that is less than 64 ticks away, else the tick at which its slot has to be sorted in.
  [[nodiscard]] std::uint64_t next() const noexcept {
    if (!due_.empty()) return now_;
    return next_event().tick;
  }

 private:
  static constexpr std::uint8_t at_far = levels;
  static constexpr std::uint8_t at_due = levels + 1;

  struct event {
    std::uint64_t tick;
    unsigned level;
    unsigned slot;
  };

  static constexpr std::uint64_t bit(unsigned slot) noexcept { return std::uint64_t{1} << slot; }
  static constexpr unsigned digit(std::uint64_t tick, unsigned level) noexcept {
    return static_cast<unsigned>(tick >> (slot_bits * level)) & (slots - 1);
  }
  // The highest digit in which they differ; 0 if none.
  [[nodiscard]] static unsigned level_for(std::uint64_t now, std::uint64_t tick) noexcept {
    return (63u - static_cast<unsigned>(std::countl_zero((now ^ tick) | (slots - 1)))) / slot_bits;
  }

  void pass(const event& next) noexcept {
    now_ = next.tick;
    if (next.level == levels) return sort_in(far_);
    occupied_[next.level] &= ~bit(next.slot);
    timer_list& slot = lists_[next.level][next.slot];
    if (next.level == 0) {
      due_.take_all(slot);
    } else {
      sort_in(slot);
    }
  }

  void place(timer_node& node) noexcept {
    if (node.tick <= now_) {
      node.level = at_due;
      return due_.add(node);
    }
    const unsigned level = level_for(now_, node.tick);
    if (level >= levels) {
      node.level = at_far;
      return far_.add(node);
    }
    const unsigned slot = digit(node.tick, level);
    node.level = static_cast<std::uint8_t>(level);
    lists_[level][slot].add(node);
    occupied_[level] |= bit(slot);
  }

  // Each goes where it belongs now, perhaps back: so the list is emptied first.
  void sort_in(timer_list& from) noexcept {
    timer_list all;
    all.take_all(from);
    while (timer_node* const node = all.take_first()) place(*node);
  }

  [[nodiscard]] event next_event() const noexcept {
    for (unsigned level = 0; level < levels; ++level) {
      if (occupied_[level] == 0) continue;
      const auto slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
      const unsigned shift = slot_bits * level;
      const std::uint64_t above = now_ >> (shift + slot_bits) << (shift + slot_bits);
      return {above | std::uint64_t{slot} << shift, level, slot};
    }
    return {far_.empty() ? never : beyond_all_levels(), levels, 0};
  }
  // When the far list is sorted in anew.
  [[nodiscard]] std::uint64_t beyond_all_levels() const noexcept {
    constexpr unsigned all = slot_bits * levels;
    return ((now_ >> all) + 1) << all;
  }

  std::uint64_t now_;
  std::size_t count_ = 0;
  std::uint64_t occupied_[levels] = {};
  timer_list lists_[levels][slots];
  timer_list far_;
  timer_list due_;
};

}  // namespace ramie::runtime_internal
