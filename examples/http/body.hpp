// SPDX-License-Identifier: BSL-1.0
// The body of a request, found as it comes. A leaf like the parser of heads (parser.hpp, HP1–HP4), of constant size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parser.hpp"
#include "status.hpp"

namespace http {

class body_decoder {
 public:
  enum class progress : std::uint8_t { needs_more, data, complete, refused };

  body_decoder(const request_head& head, const limits& l) noexcept;

  // Takes some of `bytes` and removes it from their front. `data`: that is in data(), call again. `needs_more`: all
  // were taken. `complete`: what is left belongs to the next request.
  progress advance(std::string_view& bytes) noexcept;

  // A part of the body, within the bytes of the last advance().
  [[nodiscard]] std::string_view data() const noexcept { return data_; }
  // When refused: what to answer.
  [[nodiscard]] status refusal() const noexcept { return refusal_; }

 private:
  enum class part : std::uint8_t {
    length,        // left_ bytes, then the end
    size_first,    // of a chunk: its first digit
    size,          // the others
    extension,     // after a ';', up to CR
    size_feed,     // LF after the size
    chunk,         // left_ bytes
    chunk_return,  // CR after them
    chunk_feed,
    line_first,  // after the last chunk: a trailer's first character, or the CR of the empty line
    name,        // of a trailer
    value,
    value_feed,
    last_feed,  // LF of the empty line
    complete,
    refused,
  };

  progress take_data(std::string_view& bytes) noexcept;
  // The state after `c`.
  [[nodiscard]] part after(char c) noexcept;
  [[nodiscard]] part after_digit(char c) noexcept;
  [[nodiscard]] part after_size(char c) noexcept;
  [[nodiscard]] part after_size_line() noexcept;
  [[nodiscard]] part expect(char c, char wanted, part next) noexcept;
  [[nodiscard]] part refused(status s) noexcept;

  static constexpr std::size_t max_extension = 256;       // bytes, of one chunk
  static constexpr std::size_t max_overhead = 16 * 1024;  // bytes that are not data, beside two for each byte of data

  part part_;
  status refusal_ = status::ok;
  std::uint8_t digits_ = 0;
  std::size_t extension_ = 0;
  std::size_t trailer_ = 0;
  std::size_t max_trailer_;
  std::uint64_t left_;     // of the chunk or the body
  std::uint64_t allowed_;  // bytes of data
  std::uint64_t overhead_ = max_overhead;
  std::string_view data_;
};

}  // namespace http
