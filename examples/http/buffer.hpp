// SPDX-License-Identifier: BSL-1.0
// Bytes that come in at one end and go out at the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace http {

class buffer {
 public:
  explicit buffer(std::size_t capacity) : bytes_(new char[capacity]), capacity_(capacity) {}

  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get() + first_, last_ - first_}; }
  [[nodiscard]] std::size_t size() const noexcept { return last_ - first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == last_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // Done with the first n bytes.
  void consume(std::size_t n) noexcept {
    first_ += n;
    if (first_ == last_) first_ = last_ = 0;
  }
  void clear() noexcept { first_ = last_ = 0; }
  // The last n bytes were never there.
  void take_back(std::size_t n) noexcept { last_ -= n; }

  // Room behind what there is, at least for so many; it may move or grow for that. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> room(std::size_t at_least) {
    if (capacity_ - last_ < at_least) make_room(at_least);
    return std::as_writable_bytes(std::span(bytes_.get() + last_, capacity_ - last_));
  }
  // n bytes were put there.
  void commit(std::size_t n) noexcept { last_ += n; }

  void append(std::string_view text) {
    std::memcpy(room(text.size()).data(), text.data(), text.size());
    commit(text.size());
  }

  // Back to that capacity, if it is empty and has grown beyond it.
  void shrink(std::size_t capacity) {
    if (empty() && capacity_ > capacity) *this = buffer(capacity);
  }

 private:
  void make_room(std::size_t at_least) {
    if (capacity_ - size() >= at_least) {
      std::memmove(bytes_.get(), bytes_.get() + first_, size());
    } else {
      const std::size_t capacity = std::max(2 * capacity_, size() + at_least);
      std::unique_ptr<char[]> larger(new char[capacity]);
      std::memcpy(larger.get(), bytes_.get() + first_, size());
      bytes_ = std::move(larger);
      capacity_ = capacity;
    }
    last_ -= first_;
    first_ = 0;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_;
  std::size_t first_ = 0, last_ = 0;
};

}  // namespace http
