// SPDX-License-Identifier: BSL-1.0
// One range of bytes, as a Range field asks for it.
#pragma once

#include <cstdint>
#include <string_view>

namespace http {

struct byte_range {
  enum class kind : std::uint8_t {
    whole,          // no range, or one we don't answer: several of them, other units, broken syntax
    part,           // first to last, both included
    unsatisfiable,  // beyond the end
  };
  kind what = kind::whole;
  std::uint64_t first = 0, last = 0;
};

// "bytes=0-99", "bytes=100-", "bytes=-5" of something that has `size` bytes.
[[nodiscard]] byte_range parse_range(std::string_view value, std::uint64_t size) noexcept;

}  // namespace http
