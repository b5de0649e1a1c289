// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <charconv>
#include <string_view>

namespace test {

// The number at the beginning of a text, or -1. Unlike std::stoi it does not touch errno, which belongs to the thread:
// ThreadSanitizer takes fibers for threads.
[[nodiscard]] inline int number_in(std::string_view text) noexcept {
  int number = -1;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace test
