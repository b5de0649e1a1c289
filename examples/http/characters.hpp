// SPDX-License-Identifier: BSL-1.0
// The characters of HTTP's grammar (RFC 9110, 9112), by table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace http {

namespace character {

enum class_bits : std::uint8_t {
  token = 1,   // of methods and field names
  value = 2,   // of field values: visible, obs-text, space, tab
  target = 4,  // of request targets: visible ASCII but '#', which never travels
  host = 8,    // of host and port
};

inline constexpr std::array<std::uint8_t, 256> table = [] {
  std::array<std::uint8_t, 256> t{};
  const auto add = [&t](std::string_view characters, std::uint8_t bits) {
    for (const char c : characters) t[static_cast<unsigned char>(c)] |= bits;
  };
  for (unsigned c = 0x21; c < 0x7f; ++c) t[c] |= value | target;
  for (unsigned c = 0x80; c < 0x100; ++c) t[c] |= value;
  add(" \t", value);
  t['#'] &= static_cast<std::uint8_t>(~target);
  constexpr std::string_view alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  add(alphanumeric, token | host);
  add("!#$%&'*+-.^_`|~", token);
  add("-._~!$&'()*+,;=:%[]", host);
  return t;
}();

[[nodiscard]] constexpr bool is(char c, class_bits bits) noexcept {
  return (table[static_cast<unsigned char>(c)] & bits) != 0;
}

[[nodiscard]] constexpr bool all(std::string_view text, class_bits bits) noexcept {
  for (const char c : text) {
    if (!is(c, bits)) return false;
  }
  return true;
}

// 0 to 15, or -1.
[[nodiscard]] constexpr int hex(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[nodiscard]] constexpr bool digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace character

// Whether `text` is `lower_case` but for the case of its ASCII letters. No locale has a say.
[[nodiscard]] constexpr bool equals_ignoring_case(std::string_view text, std::string_view lower_case) noexcept {
  if (text.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (character::lower(text[i]) != lower_case[i]) return false;
  }
  return true;
}

// Without spaces and tabs at both ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace http
