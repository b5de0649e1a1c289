// SPDX-License-Identifier: BSL-1.0
// A ring of elements, first in, first out. The channel's lock protects it.
//
// Most elements are words: 4 or 8 bytes that may be copied. Those are moved by one load and one store, without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ramie/detail/element.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/compiler.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

class element_ring {
 public:
  // `slots` may be null for capacity 0.
  void use(void* slots, std::size_t capacity, const element_ops& ops) noexcept {
    slots_ = static_cast<char*>(slots);
    capacity_ = capacity;
    word_ = ops.store == nullptr && (ops.size == 8 || ops.size == 4) ? static_cast<std::uint8_t>(ops.size) : 0;
    ops_ = &ops;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool full() const noexcept { return count_.get() == capacity_; }
  [[nodiscard]] void* memory() const noexcept { return slots_; }
  // Whether elements are words.
  [[nodiscard]] bool holds_words() const noexcept { return word_ != 0; }

  // These move an element; they may throw what that throws, and then nothing has changed.
  RAMIE_ALWAYS_INLINE void push(void* from) {
    if (!holds_words()) return push_slow(from);
    push_word(from);
  }
  RAMIE_ALWAYS_INLINE void pop(void* landing) {
    if (!holds_words()) return pop_slow(landing);
    pop_word(landing);
  }
  // Past the ring, from a sender's variable to a receiver's landing.
  RAMIE_ALWAYS_INLINE void deliver(void* landing, void* from) const {
    if (!holds_words()) return deliver_slow(landing, from);
    copy_word(landing, from);
  }
  // The same for elements that are words.
  RAMIE_ALWAYS_INLINE void push_word(const void* from) noexcept {
    copy_word(slots_ + after(head_, count()) * word_, from);
    count_.add(1);
  }
  RAMIE_ALWAYS_INLINE void pop_word(void* landing) noexcept {
    copy_word(landing, slots_ + head_ * word_);
    head_ = after(head_, 1);
    count_.add(static_cast<std::size_t>(-1));
  }
  RAMIE_ALWAYS_INLINE void copy_word(void* to, const void* from) const noexcept {
    if (word_ == 8) {
      std::memcpy(to, from, 8);
    } else {
      std::memcpy(to, from, 4);
    }
  }
  void destroy_all() noexcept;

 private:
  [[nodiscard]] std::size_t after(std::size_t index, std::size_t steps) const noexcept {
    index += steps;
    return index < capacity_ ? index : index - capacity_;
  }
  void push_slow(void* from);
  void pop_slow(void* landing);
  void deliver_slow(void* landing, void* from) const;

  platform::owned<std::size_t> count_{0};  // without the lock racy: only a hint
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  char* slots_ = nullptr;
  std::size_t word_ = 0;  // the size of an element that is a word, else 0
  const element_ops* ops_ = nullptr;
};

}  // namespace ramie::channel_internal
