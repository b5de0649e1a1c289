// SPDX-License-Identifier: BSL-1.0
// A worker's local queue: a ring of 256 that its owner uses from both ends while thieves take from
// the old end, half at a time.
//
//   push      owner, at the tail (young end); a full ring sheds its older half to `overflow`
//   pop_old   owner, at the head: fair order
//   pop_young owner, at the tail: what a join wants
//   steal     anybody, at the head, in three phases: claim, copy, release
//
// Head word: {tag:32, steal:16, real:16}, so that a bump of the tag is one addition. Slots [real, tail) hold entries.
// steal == real unless a thief is copying out [steal, real): those slots are claimed but must not be overwritten yet.
//
// Invariants (all clauses: spec/scheduler.md)
//   D1  steal <= real <= tail <= steal + capacity, as 16-bit distances.
//   D2  An entry belongs to whoever moved `real` past it, or, at the young end, to the owner whose tag
//       bump succeeded after it lowered the tail.
//   D3  Every pop and every claim bumps the tag. A thief read {head, then tail}; if the owner has popped the
//       young end in between, the thief's claim fails on the tag, else it would take an entry twice; and the
//       head word does not come round again under a thief that was held up.
//   D4  The length a thief computes is signed: the tail it reads may already be below `real`.
//   D7  A thief takes no more than its own ring has room for: that one is empty, but somebody may still be copying
//       out of it, and those slots are not free yet (D1).
//
// Pop at the young end is a store and then an RMW; in this order. (Bumping first, no tag, or an unsigned
// length each take an entry twice: tests/explore shows it.)
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

// Overflow: void put(T*) and void put(T* const* items, count), each publishing in one step.
template <class T>
class deque {
 public:
  static constexpr std::uint32_t capacity = ring_capacity;

  // Indices may begin anywhere: tests begin near the wrap.
  explicit deque(std::uint16_t first = 0) noexcept : head_(head_view(first, first, 0).bits()), tail_(first) {}

  // Owner only; may run beside steal().
  template <class Overflow>
  void push(T* item, Overflow& overflow) noexcept {
    if (!try_push(item)) [[unlikely]]
      push_full(item, overflow);
  }

  // Like push, but false, and nothing has happened, if the ring is full. Owner only.
  [[nodiscard]] bool try_push(T* item) noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    const head_view head(head_.load(std::memory_order_acquire));  // pairs with a thief's release
    if (static_cast<std::uint16_t>(tail - head.steal()) >= capacity) [[unlikely]]
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
  }

  // Owner only; may run beside steal().
  [[nodiscard]] T* pop_old() noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    std::uint64_t bits = head_.load(std::memory_order_relaxed);
    for (;;) {
      const head_view head(bits);
      if (head.real() == tail) return nullptr;
      if (head_.compare_exchange_weak(bits, head.popped_old().bits(), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return slot(head.real()).load(std::memory_order_relaxed);
      }
    }
  }

  // Owner only; may run beside steal().
  [[nodiscard]] T* pop_young() noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    std::uint64_t bits = head_.load(std::memory_order_relaxed);
    if (head_view(bits).real() == tail) return nullptr;
    const auto lowered = static_cast<std::uint16_t>(tail - 1);
    tail_.store(lowered, std::memory_order_release);  // before the RMW below
    while (!head_.compare_exchange_weak(bits, head_view(bits).tagged().bits(), std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      if (head_view(bits).real() == tail) {  // a thief took the last one before our tag was seen
        tail_.store(tail, std::memory_order_relaxed);
        return nullptr;
      }
    }
    return slot(lowered).load(std::memory_order_relaxed);
  }

  // Any thread but the victim's owner; `into` is the caller's own, empty ring. Returns one entry to
  // run at once, leaves the rest in `into`, and adds the number taken to `taken`.
  [[nodiscard]] T* steal(deque& into, std::uint32_t& taken) noexcept {
    std::uint64_t bits = head_.load(std::memory_order_acquire);  // head first, then tail: D3
    const std::uint16_t tail = tail_.load(std::memory_order_acquire);
    const head_view head(bits);
    if (head.steal() != head.real()) return nullptr;  // another thief is copying
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
    constexpr head_view(std::uint16_t steal, std::uint16_t real, std::uint32_t tag) noexcept
        : bits_((std::uint64_t{tag} << 32) | (std::uint64_t{steal} << 16) | real) {}
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::uint16_t steal() const noexcept { return static_cast<std::uint16_t>(bits_ >> 16); }
    [[nodiscard]] constexpr std::uint16_t real() const noexcept { return static_cast<std::uint16_t>(bits_); }
    [[nodiscard]] constexpr std::uint32_t tag() const noexcept { return static_cast<std::uint32_t>(bits_ >> 32); }
    [[nodiscard]] constexpr head_view tagged() const noexcept { return head_view(bits_ + (std::uint64_t{1} << 32)); }
    [[nodiscard]] constexpr head_view popped_old(std::uint16_t count = 1) const noexcept {
      const auto next = static_cast<std::uint16_t>(real() + count);
      return {steal() == real() ? next : steal(), next, tag() + 1};
    }
    [[nodiscard]] constexpr head_view claimed(std::uint16_t count) const noexcept {
      return {steal(), static_cast<std::uint16_t>(real() + count), tag() + 1};
    }
    [[nodiscard]] constexpr head_view released() const noexcept { return {real(), real(), tag()}; }

   private:
    std::uint64_t bits_;
  };

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
  alignas(platform::cache_line) platform::atomic<T*> slots_[capacity] = {};
};

}  // namespace ramie::runtime_internal
