// SPDX-License-Identifier: BSL-1.0
// Elements in a row, first in, first out. The channel's lock protects it.
//
// Most elements are small and move as bytes: those of 4 and 8 bytes by one instruction each way, without a call.
#pragma once

#include <cstddef>
#include <cstring>

#include <ramie/detail/element.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/compiler.hpp>

namespace ramie::detail {

RAMIE_ALWAYS_INLINE void copy_word(void* to, const void* from, std::size_t size) noexcept {
  if (size == 8) {
    std::memcpy(to, from, 8);
  } else {
    std::memcpy(to, from, 4);
  }
}

RAMIE_ALWAYS_INLINE void copy_bytes(void* to, const void* from, std::size_t size) noexcept {
  if (size == 8) {
    std::memcpy(to, from, 8);
  } else if (size == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, size);
  }
}

// A run of slots used as a ring.
class element_ring {
 public:
  // `slots` may be null for capacity 0.
  void use(void* slots, std::size_t capacity, const element_ops& ops) noexcept {
    slots_ = static_cast<char*>(slots);
    capacity_ = capacity;
    size_ = ops.size;
    ops_ = &ops;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool full() const noexcept { return count_.get() == capacity_; }
  void push(void* from);  // may throw; then nothing has changed
  void pop(void* landing);
  // The same for elements that are a word of 4 or 8 bytes.
  RAMIE_ALWAYS_INLINE void push_word(const void* from, std::size_t size) noexcept {
    copy_word(slots_ + after(head_, count()) * size, from, size);
    count_.add(1);
  }
  RAMIE_ALWAYS_INLINE void pop_word(void* landing, std::size_t size) noexcept {
    copy_word(landing, slots_ + head_ * size, size);
    head_ = after(head_, 1);
    count_.add(static_cast<std::size_t>(-1));
  }
  void destroy_all() noexcept;
  [[nodiscard]] void* memory() const noexcept { return slots_; }

 private:
  [[nodiscard]] std::size_t after(std::size_t index, std::size_t steps) const noexcept {
    index += steps;
    return index < capacity_ ? index : index - capacity_;
  }
  platform::owned<std::size_t> count_{0};  // without the lock, a hint
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  char* slots_ = nullptr;
  std::size_t size_ = 0;  // of an element
  const element_ops* ops_ = nullptr;
};

}  // namespace ramie::detail
