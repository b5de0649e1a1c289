// SPDX-License-Identifier: BSL-1.0
// A queue of bytes in one piece of memory. It is allocated with the first byte, has its usual capacity, and grows while
// more is needed. Used by one fiber or thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace ramie::io_internal {

class byte_buffer {
 public:
  // Throws usage_error, in the name of `function`, for no capacity.
  byte_buffer(std::size_t usual_capacity, const char* function);
  byte_buffer(byte_buffer&& other) noexcept
      : bytes_(std::move(other.bytes_)),
        usual_(other.usual_),
        capacity_(std::exchange(other.capacity_, 0)),
        begin_(std::exchange(other.begin_, 0)),
        end_(std::exchange(other.end_, 0)) {}
  byte_buffer& operator=(byte_buffer&& other) noexcept {
    byte_buffer taken(std::move(other));
    std::swap(bytes_, taken.bytes_);
    std::swap(usual_, taken.usual_);
    std::swap(capacity_, taken.capacity_);
    std::swap(begin_, taken.begin_);
    std::swap(end_, taken.end_);
    return *this;
  }

  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] std::size_t usual_capacity() const noexcept { return usual_; }
  [[nodiscard]] std::span<const std::byte> content() const noexcept { return {bytes_.get() + begin_, size()}; }

  // Free space for at least n more bytes, n > 0; `added` says how many have been put there. Throws std::bad_alloc:
  // nothing changed.
  [[nodiscard]] std::span<std::byte> free_space(std::size_t n);
  void added(std::size_t n) noexcept { end_ += n; }

  // After reserve(n) n bytes can be appended, however many are consumed meanwhile. Throws std::bad_alloc: nothing
  // changed.
  void reserve(std::size_t n);
  void append(std::span<const std::byte> bytes) noexcept;

  // Consuming more than there are ends the program.
  void consume(std::size_t n) noexcept;
  // Frees the memory of an empty buffer that has grown.
  void settle() noexcept;

 private:
  void compact() noexcept;
  void grow(std::size_t to);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t usual_;
  std::size_t capacity_ = 0;         // of bytes_
  std::size_t begin_ = 0, end_ = 0;  // of the content; both 0 if it is empty
};

}  // namespace ramie::io_internal
