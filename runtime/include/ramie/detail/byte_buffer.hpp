// SPDX-License-Identifier: BSL-1.0
// Bytes that are added behind and taken in front. Of a size of its own from the first byte on; larger while that is
// needed. Used by one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace ramie::detail {

class byte_buffer {
 public:
  // Throws usage_error for no capacity.
  explicit byte_buffer(std::size_t usual_capacity);
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

  // Room for at least n more, n > 0; `added` says how many have been put there. Throws std::bad_alloc: nothing changed.
  [[nodiscard]] std::span<std::byte> room(std::size_t n);
  void added(std::size_t n) noexcept { end_ += n; }

  // After reserve(n) n bytes can be appended, however many are consumed meanwhile. Throws std::bad_alloc: nothing
  // changed.
  void reserve(std::size_t n);
  void append(std::span<const std::byte> bytes) noexcept;

  // More than there are ends the program.
  void consume(std::size_t n) noexcept;
  // An empty buffer that has grown is given back.
  void settle() noexcept;

 private:
  void compact() noexcept;
  void grow(std::size_t to);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t usual_;
  std::size_t capacity_ = 0;         // of bytes_
  std::size_t begin_ = 0, end_ = 0;  // of the content; both 0 if it is empty
};

}  // namespace ramie::detail
