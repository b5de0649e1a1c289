// SPDX-License-Identifier: BSL-1.0
// From the target of a request to a path below the root, never out of it. A leaf: it sees names only; that the files
// behind them are below the root, too, is for root.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "status.hpp"

namespace http {

class target_path {
 public:
  static constexpr std::size_t capacity = 4096;

  // Takes the path of an origin-form ("/a/b?c") or absolute-form ("http://host/a") target. It is decoded once; then "."
  // and empty segments go, and ".." takes the segment before it along. Refused: ".." at the root, encoded slashes,
  // backslashes, control characters and NUL, broken escapes (400); what is too long (414); other forms (400).
  // status::ok: it is taken.
  [[nodiscard]] status parse(std::string_view target) noexcept;

  // "a/b", or "." for the root: relative, ends with a NUL, has no "." or ".." or empty segments.
  [[nodiscard]] const char* c_str() const noexcept { return size_ != 0 ? bytes_.data() : "."; }
  [[nodiscard]] std::string_view view() const noexcept { return c_str(); }
  // Whether it was written as a folder: with a slash at its end.
  [[nodiscard]] bool is_folder() const noexcept { return is_folder_; }

  // "a/b/index.html". False: too long.
  [[nodiscard]] bool append(std::string_view segment) noexcept;

 private:
  [[nodiscard]] status decode(std::string_view path) noexcept;
  [[nodiscard]] bool normalise() noexcept;

  std::array<char, capacity + 1> bytes_;  // one for the NUL
  std::size_t size_ = 0;
  bool is_folder_ = false;
};

// Writes a path as it may stand in a target or a Location: '/' before it, all else escaped but what is surely plain.
// Returns the end; `to` has room for 3 * path.size() + 1.
[[nodiscard]] char* write_encoded(std::string_view path, char* to) noexcept;

}  // namespace http
