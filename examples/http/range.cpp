// SPDX-License-Identifier: BSL-1.0
#include "range.hpp"

#include <algorithm>

#include "characters.hpp"

namespace http {

namespace {

// Takes digits from the front. False: there are none. What is too large is as large as can be.
bool take_number(std::string_view& text, std::uint64_t& n) noexcept {
  if (text.empty() || !character::digit(text.front())) return false;
  for (n = 0; !text.empty() && character::digit(text.front()); text.remove_prefix(1)) {
    const auto d = static_cast<std::uint64_t>(text.front() - '0');
    n = n > (UINT64_MAX - d) / 10 ? UINT64_MAX : n * 10 + d;
  }
  return true;
}

bool take(std::string_view& text, char c) noexcept {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

byte_range part(std::uint64_t first, std::uint64_t last) noexcept {
  return {byte_range::kind::part, first, last};
}

constexpr byte_range beyond{byte_range::kind::unsatisfiable, 0, 0};

}  // namespace

byte_range parse_range(std::string_view value, std::uint64_t size) noexcept {
  constexpr std::string_view unit = "bytes=";
  if (!equals_ignoring_case(value.substr(0, unit.size()), unit)) return {};
  value = trimmed(value.substr(unit.size()));
  std::uint64_t first = 0, last = 0;
  if (take(value, '-')) {
    if (!take_number(value, last) || !value.empty()) return {};
    return last == 0 || size == 0 ? beyond : part(size - std::min(last, size), size - 1);
  }
  if (!take_number(value, first) || !take(value, '-')) return {};
  const bool open = !take_number(value, last);
  if (!value.empty() || (!open && last < first)) return {};
  if (first >= size) return beyond;
  return part(first, open ? size - 1 : std::min(last, size - 1));
}

}  // namespace http
