// SPDX-License-Identifier: BSL-1.0
// A worker's local queue: a ring of 256 that its owner uses from both ends while thieves take from
// the old end, half at a time.
//
//   push      owner, at the tail (young end); a full ring sheds its older half to `overflow`
//   pop_old   owner, at the head: fair order
//   pop_young owner, at the tail: what a join wants
//   steal     anybody, at the head, in three phases: claim, copy, release
//
// Head word: {tag:31, stolen:1, steal:16, real:16}, so that a bump of the tag is one addition. Slots [real, tail) hold
// entries. steal == real unless a thief is copying out [steal, real): those slots are claimed but must not be overwritten
// yet. `stolen`: a thief has claimed something since the owner last changed the head.
//
// Invariants (all clauses: spec/scheduler.md)
//   D1  steal <= real <= tail <= steal + capacity, as 16-bit distances.
//   D2  An entry belongs to whoever moved `real` past it, or, at the young end, to the owner who lowered the tail and
//       then bumped the tag, or found that it need not (D8).
//   D3  Every claim bumps the tag, and every pop but those of D8. A thief read {head, then tail}; if the owner has popped
//       the young end in between, the thief's claim fails on the tag, else it would take an entry twice; and the
//       head word does not come round again under a thief that was held up.
//   D4  The length a thief computes is signed: the tail it reads may already be below `real`.
//   D7  A thief takes no more than its own ring has room for: that one is empty, but somebody may still be copying
//       out of it, and those slots are not free yet (D1).
//   D8  A thief claims the older half at most. So the owner pops the young end without an RMW while it stays in the
//       younger half of the longest the ring was since its last one (`longest_`): whatever tail a thief has read, its
//       claim ends below that. This holds for one claim that the owner has not seen. A second one would reach
//       further: a thief that finds `stolen` set interrupts the owner first.
//
//         owner, pop_young without an RMW         thief, the second since the owner's last RMW
//         1. tail = t                             1. load head: stolen is set by the first claim
//         2. free fence                           2. heavy fence
//         3. load head: has it moved? then an     3. load tail
//            RMW                                  4. claim by CAS
//
//       Either the thief sees the tail of 1, or the owner sees the first claim, and its RMW fails the CAS of 4. A thief
//       that would have to interrupt for a ring that looks empty leaves instead. It must not look again without a fence.
//       (spec/decisions/021-pop-without-rmw.md)
//
//   D9  The owner pushes without a look at the head while the tail is not at `push_limit_`: where the ring was full when it
//       last looked. Thieves only ever make room. Whatever else moves the tail upwards puts the limit there.
//
// The pop with an RMW is a store and then the RMW, in this order. (Bumping first, no tag, or an unsigned
// length each take an entry twice: tests/explore shows it.)
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

// Overflow: void put(T*) and void put(T* const* items, count), each publishing in one step.
template <class T>
class deque {
 public:
  static constexpr std::uint32_t capacity = ring_capacity;

  // Indices may begin anywhere: tests begin near the wrap.
  explicit deque(std::uint16_t first = 0) noexcept
      : head_(head_view(first, first, 0).bits()), tail_(first), push_limit_(first) {}

  // Owner only; may run beside steal().
  template <class Overflow>
  void push(T* item, Overflow& overflow) noexcept {
    if (!try_push(item)) [[unlikely]]
      push_full(item, overflow);
  }

  // Like push, but false, and nothing has happened, if the ring is full. Owner only.
  [[nodiscard]] bool try_push(T* item) noexcept {
    if (tail_.load(std::memory_order_relaxed) == push_limit_.get()) find_room();
    return try_push_quick(item);
  }
  // Like try_push, but false, too, if the ring was full when the owner last looked.
  [[nodiscard]] bool try_push_quick(T* item) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == push_limit_.get()) [[unlikely]]
      return false;
    slot(tail).store(item, std::memory_order_relaxed);
    tail_.store(static_cast<std::uint16_t>(tail + 1), std::memory_order_release);  // pairs with steal
    return true;
  }

  // Owner only; the ring must have room for `count` more. Publishes them in one step.
  void push_batch(T* const* items, std::uint32_t count) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      slot(static_cast<std::uint16_t>(tail + i)).store(items[i], std::memory_order_relaxed);
    }
    tail_.store(static_cast<std::uint16_t>(tail + count), std::memory_order_release);
    push_limit_.set(static_cast<std::uint16_t>(tail + count));
  }

  // Owner only; may run beside steal().
  [[nodiscard]] T* pop_old() noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    std::uint64_t bits = head_.load(std::memory_order_relaxed);
    for (;;) {
      const head_view head(bits);
      if (head.real() == tail) return nullptr;
      // Release, for steal: who sees this head must not see a tail from before a pop of D8.
      if (head_.compare_exchange_weak(bits, head.popped_old().bits(), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return slot(head.real()).load(std::memory_order_relaxed);
      }
    }
  }

  // Owner only; may run beside steal().
  [[nodiscard]] T* pop_young() noexcept {
    T* item = nullptr;
    bool lowered = false;
    return pop_young_quick(item, lowered) ? item : pop_young_rest(lowered);
  }
  // In two steps, for a caller that calls nothing in between: without an RMW, if that is possible (D8); else false, and
  // pop_young_rest must follow.
  [[nodiscard]] bool pop_young_quick(T*& item, bool& has_lowered) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    const auto lowered = static_cast<std::uint16_t>(tail - 1);
    if (static_cast<std::uint16_t>(lowered - safe_from_.get()) >= safe_count_.get()) [[unlikely]]
      return false;
    tail_.store(lowered, std::memory_order_release);
    platform::free_fence();
    if (head_.load(std::memory_order_relaxed) != seen_head_.get()) [[unlikely]] {
      has_lowered = true;
      return false;
    }
    item = slot(lowered).load(std::memory_order_relaxed);
    return true;
  }
  [[nodiscard, gnu::noinline]] T* pop_young_rest(bool has_lowered) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    if (has_lowered) return take_lowered(static_cast<std::uint16_t>(tail + 1));
    return count_longest(static_cast<std::uint16_t>(tail - 1)) ? pop_young() : pop_young_slow(tail);
  }

  // Any thread but the victim's owner; `into` is the caller's own, empty ring. Returns one entry to
  // run at once, leaves the rest in `into`, and adds the number taken to `taken`.
  [[nodiscard]] T* steal(deque& into, std::uint32_t& taken) noexcept {
    std::uint64_t bits = head_.load(std::memory_order_acquire);  // head first, then tail: D3
    const head_view head(bits);
    if (head.steal() != head.real()) return nullptr;  // another thief is copying
    if (head.stolen()) {  // D8
      if (head.real() == tail_.load(std::memory_order_relaxed)) return nullptr;  // without an interrupt for nothing
      platform::heavy_fence();
    }
    const std::uint16_t tail = tail_.load(std::memory_order_acquire);
    const auto length = static_cast<std::int16_t>(tail - head.real());
    if (length <= 0) return nullptr;
    const auto count =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(length - length / 2, into.free_slots() + 1));  // D7
    if (!head_.compare_exchange_strong(bits, head.claimed(count).bits(), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
      return nullptr;
    }
    T* const first = slot(head.real()).load(std::memory_order_relaxed);
    into.copy_from(*this, static_cast<std::uint16_t>(head.real() + 1), static_cast<std::uint16_t>(count - 1));
    release_claim();
    taken += count;
    return first;
  }

  // Owner only: the entry pop_old would return if no thief is faster, or null. It may be gone by then: a hint.
  [[nodiscard]] const T* peek_old() noexcept {
    const head_view head(head_.load(std::memory_order_acquire));
    if (head.real() == tail_.load(std::memory_order_relaxed)) return nullptr;
    return slot(head.real()).load(std::memory_order_relaxed);
  }

  // Owner only: the entry pop_young would return if no thief is faster, or null. A hint, like peek_old.
  [[nodiscard]] const T* peek_young() noexcept {
    const head_view head(head_.load(std::memory_order_acquire));
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    if (head.real() == tail) return nullptr;
    return slot(static_cast<std::uint16_t>(tail - 1)).load(std::memory_order_relaxed);
  }

  // Owner only: how many entries fit without shedding. A thief may be about to make more.
  [[nodiscard]] std::uint32_t free_slots() const noexcept {
    const head_view head(head_.load(std::memory_order_acquire));
    return capacity - static_cast<std::uint16_t>(tail_.load(std::memory_order_relaxed) - head.steal());
  }

  // A hint for others, exact for the owner while nobody steals.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept {
    const head_view head(head_.load(std::memory_order_acquire));
    const auto length = static_cast<std::int16_t>(tail_.load(std::memory_order_acquire) - head.real());
    return length > 0 ? static_cast<std::uint32_t>(length) : 0;
  }

 private:
  class head_view {
   public:
    constexpr explicit head_view(std::uint64_t bits) noexcept : bits_(bits) {}
    constexpr head_view(std::uint16_t steal, std::uint16_t real, std::uint64_t tag_and_stolen) noexcept
        : bits_(tag_and_stolen | (std::uint64_t{steal} << 16) | real) {}
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::uint16_t steal() const noexcept { return static_cast<std::uint16_t>(bits_ >> 16); }
    [[nodiscard]] constexpr std::uint16_t real() const noexcept { return static_cast<std::uint16_t>(bits_); }
    [[nodiscard]] constexpr bool stolen() const noexcept { return (bits_ & stolen_mark) != 0; }
    // By the owner, whose RMW sees all claims before it.
    [[nodiscard]] constexpr head_view tagged() const noexcept { return head_view((bits_ & ~stolen_mark) + one_tag); }
    [[nodiscard]] constexpr head_view popped_old(std::uint16_t count = 1) const noexcept {
      const auto next = static_cast<std::uint16_t>(real() + count);
      return {steal() == real() ? next : steal(), next, (upper() & ~stolen_mark) + one_tag};
    }
    [[nodiscard]] constexpr head_view claimed(std::uint16_t count) const noexcept {
      return {steal(), static_cast<std::uint16_t>(real() + count), (upper() | stolen_mark) + one_tag};
    }
    [[nodiscard]] constexpr head_view released() const noexcept { return {real(), real(), upper()}; }

   private:
    static constexpr std::uint64_t stolen_mark = std::uint64_t{1} << 32;
    static constexpr std::uint64_t one_tag = std::uint64_t{1} << 33;
    [[nodiscard]] constexpr std::uint64_t upper() const noexcept { return bits_ >> 32 << 32; }
    std::uint64_t bits_;
  };

  static constexpr std::uint64_t no_head = std::uint64_t{1} << 16;  // steal is never past real

  // D9.
  void find_room() noexcept {
    const head_view head(head_.load(std::memory_order_acquire));  // pairs with a thief's release
    push_limit_.set(static_cast<std::uint16_t>(head.steal() + capacity));
  }

  // D8: what was pushed up to `youngest` counts for the longest. True: more than before. (If the ring is empty, or its head
  // has moved, there are 65,535 older ones.)
  [[nodiscard]] bool count_longest(std::uint16_t youngest) noexcept {
    const head_view head(seen_head_.get());
    const auto older = static_cast<std::uint16_t>(youngest - head.real());
    if (head.bits() == no_head || older < longest_.get() || older == 0 || older >= capacity) return false;
    set_longest(older + 1u);
    return true;
  }
  // The younger half of so many.
  void set_longest(std::uint32_t longest) noexcept {
    const auto older_half = (longest + 1) / 2;
    longest_.set(longest);
    safe_from_.set(static_cast<std::uint16_t>(head_view(seen_head_.get()).real() + older_half));
    safe_count_.set(seen_head_.get() != no_head ? static_cast<std::uint16_t>(longest - older_half) : 0);
  }

  T* pop_young_slow(std::uint16_t tail) noexcept {
    if (head_view(head_.load(std::memory_order_relaxed)).real() == tail) return nullptr;
    tail_.store(static_cast<std::uint16_t>(tail - 1), std::memory_order_release);  // before the RMW in take_lowered
    return take_lowered(tail);
  }

  // The tail was lowered from `tail`.
  T* take_lowered(std::uint16_t tail) noexcept {
    const auto lowered = static_cast<std::uint16_t>(tail - 1);
    std::uint64_t bits = head_.load(std::memory_order_relaxed);
    head_view mine(bits);
    do {
      if (head_view(bits).real() == tail) {  // a thief took the last one before our tag was seen
        tail_.store(tail, std::memory_order_relaxed);
        return nullptr;
      }
      mine = head_view(bits).tagged();
    } while (!head_.compare_exchange_weak(bits, mine.bits(), std::memory_order_acq_rel, std::memory_order_acquire));
    seen_head_.set(platform::asymmetric() ? mine.bits() : no_head);
    set_longest(static_cast<std::uint16_t>(lowered - mine.real()));
    return slot(lowered).load(std::memory_order_relaxed);
  }

  platform::atomic<T*>& slot(std::uint16_t index) noexcept { return slots_[index % capacity]; }

  template <class Overflow>
  [[gnu::noinline]] void push_full(T* item, Overflow& overflow) noexcept {
    do {
      const head_view head(head_.load(std::memory_order_acquire));
      if (head.steal() != head.real()) return overflow.put(item);  // a thief is making room; don't wait for it
      const bool full = static_cast<std::uint16_t>(tail_.load(std::memory_order_relaxed) - head.real()) >= capacity;
      if (full && shed_half(head, item, overflow)) return;
    } while (!try_push(item));
  }

  template <class Overflow>
  [[nodiscard]] bool shed_half(head_view head, T* item, Overflow& overflow) noexcept {
    std::uint64_t bits = head.bits();
    if (!head_.compare_exchange_strong(bits, head.popped_old(overflow_batch).bits(), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
      return false;
    }
    T* batch[overflow_batch + 1];
    for (std::uint32_t i = 0; i < overflow_batch; ++i) {
      batch[i] = slot(static_cast<std::uint16_t>(head.real() + i)).load(std::memory_order_relaxed);
    }
    batch[overflow_batch] = item;
    overflow.put(batch, overflow_batch + 1);
    return true;
  }

  void copy_from(deque& victim, std::uint16_t from, std::uint16_t count) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    for (std::uint16_t i = 0; i < count; ++i) {
      T* const item = victim.slot(static_cast<std::uint16_t>(from + i)).load(std::memory_order_relaxed);
      slot(static_cast<std::uint16_t>(tail + i)).store(item, std::memory_order_relaxed);
    }
    tail_.store(static_cast<std::uint16_t>(tail + count), std::memory_order_release);
    push_limit_.set(static_cast<std::uint16_t>(tail + count));
  }

  // The owner may have popped meanwhile: keep its `real` and its tag.
  void release_claim() noexcept {
    std::uint64_t bits = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(bits, head_view(bits).released().bits(), std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
    }
  }

  alignas(platform::cache_line) platform::atomic<std::uint64_t> head_;
  alignas(platform::cache_line) platform::atomic<std::uint16_t> tail_;
  // D8: the head that the owner's last RMW of pop_young left, if it may do without the next one; and the longest that the
  // ring was since, with that head, but perhaps now.
  platform::owned<std::uint64_t> seen_head_{no_head};
  platform::owned<std::uint32_t> longest_{0};
  platform::owned<std::uint16_t> safe_from_{0};  // the younger half of that: its first, and how many
  platform::owned<std::uint16_t> safe_count_{0};
  platform::owned<std::uint16_t> push_limit_;  // D9
  alignas(platform::cache_line) platform::atomic<T*> slots_[capacity] = {};
};

}  // namespace ramie::runtime_internal
