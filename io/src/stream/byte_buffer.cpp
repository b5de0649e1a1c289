// SPDX-License-Identifier: BSL-1.0
#include <ramie/detail/byte_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>

namespace ramie::io_internal {

byte_buffer::byte_buffer(std::size_t usual_capacity, const char* function) : usual_(usual_capacity) {
  if (usual_capacity == 0) {
    throw usage_error(std::string("ramie: ") + function + ": no capacity. Give it at least one byte.");
  }
}

// What is moved down is no more than what has been consumed since it was moved last: a byte is moved a few times at
// most, however little is consumed between two calls.
std::span<std::byte> byte_buffer::free_space(std::size_t n) {
  if (capacity_ - end_ < n) {
    const bool cheap = size() <= begin_ && n <= capacity_ - size();
    if (!cheap) reserve(std::max(n, capacity_));
    compact();
  }
  return {bytes_.get() + end_, capacity_ - end_};
}

void byte_buffer::reserve(std::size_t n) {
  if (n > static_cast<std::size_t>(-1) / 2 - size()) throw std::bad_alloc();
  if (capacity_ - size() < n) grow(std::max(usual_, size() + n));
}

void byte_buffer::append(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  if (capacity_ - end_ < bytes.size()) compact();
  if (capacity_ - end_ < bytes.size()) platform::fatal("a stream's buffer has no room for what it was to keep.");
  std::memcpy(bytes_.get() + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void byte_buffer::consume(std::size_t n) noexcept {
  if (n > size()) {
    platform::fatal("%zu bytes consumed of %zu buffered. Consume no more than buffered() has.", n, size());
  }
  begin_ += n;
  if (begin_ == end_) begin_ = end_ = 0;
}

void byte_buffer::settle() noexcept {
  if (end_ != 0 || capacity_ <= usual_) return;
  bytes_.reset();
  capacity_ = 0;
}

void byte_buffer::compact() noexcept {
  if (begin_ == 0) return;
  std::memmove(bytes_.get(), bytes_.get() + begin_, size());
  end_ = size();
  begin_ = 0;
}

void byte_buffer::grow(std::size_t to) {
  auto larger = std::make_unique_for_overwrite<std::byte[]>(to);
  if (size() != 0) std::memcpy(larger.get(), bytes_.get() + begin_, size());
  bytes_ = std::move(larger);
  capacity_ = to;
  end_ = size();
  begin_ = 0;
}

}  // namespace ramie::io_internal
