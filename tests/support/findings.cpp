// SPDX-License-Identifier: BSL-1.0
#include "findings.hpp"

#include <cctype>

#include <support/source_text.hpp>

namespace test {

void findings::note(ramie::source_location where, std::string text) {
  std::lock_guard hold(mutex_);
  auto& found = wrong_[{where.file_name(), where.line()}];
  if (found.times++ == 0) found.text = std::move(text);
}

void findings::note_line(ramie::source_location where) {
  note(where, text_at(where));
}

std::string findings::wrong() {
  std::lock_guard hold(mutex_);
  std::string all;
  for (const auto& [place, what] : wrong_) {
    all += place.first + ":" + std::to_string(place.second) + ": " + what.text;
    all += what.times == 1 ? "; " : " (" + std::to_string(what.times) + " times); ";
  }
  return all;
}

namespace telling {
namespace {

template <class T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

}  // namespace

std::string truth(const void* value) {
  return as<bool>(value) ? "true" : "false";
}
std::string letter(const void* value) {
  return {'\'', as<char>(value), '\''};
}
template <class Integer>
std::string integer(const void* value) {
  return std::to_string(as<Integer>(value));
}
std::string real(const void* value) {
  return std::to_string(as<double>(value));
}
std::string null(const void*) {
  return "null";
}
std::string pointer(const void* value) {
  return as<const void*>(value) == nullptr ? "null" : "a pointer";
}
std::string pointed_to(const void* value) {
  const char* const text = as<const char*>(value);
  return text == nullptr ? "null" : quoted(text);
}
std::string characters(const void* value) {
  return quoted(static_cast<const char*>(value));
}
std::string string(const void* value) {
  return quoted(as<std::string>(value));
}
std::string view(const void* value) {
  return quoted(as<std::string_view>(value));
}
std::string quoted(std::string_view text) {
  constexpr std::size_t most = 200;
  if (text.size() <= most) return '"' + std::string(text) + '"';
  return '"' + std::string(text.substr(0, most)) + "\"... (" + std::to_string(text.size()) + " bytes)";
}
std::string errc(const void* value) {
  return quoted(std::make_error_condition(as<std::errc>(value)).message());
}
std::string error_code(const void* value) {
  return quoted(as<std::error_code>(value).message());
}
std::string error_condition(const void* value) {
  return quoted(as<std::error_condition>(value).message());
}
std::string unknown(const void*) {
  return "?";
}

template std::string integer<signed char>(const void*);
template std::string integer<unsigned char>(const void*);
template std::string integer<short>(const void*);
template std::string integer<unsigned short>(const void*);
template std::string integer<int>(const void*);
template std::string integer<unsigned>(const void*);
template std::string integer<long>(const void*);
template std::string integer<unsigned long>(const void*);
template std::string integer<long long>(const void*);
template std::string integer<unsigned long long>(const void*);

}  // namespace telling

namespace {

// The n-th of what the preprocessor has separated by commas: those outside of parentheses and literals.
std::string_view nth_of(std::string_view all, int n) {
  std::size_t first = 0;
  int depth = 0;
  char literal = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    if (literal != 0) {
      if (c == '\\') ++i;
      if (c == literal) literal = 0;
    } else if (c == '"' || (c == '\'' && (i == 0 || std::isxdigit(static_cast<unsigned char>(all[i - 1])) == 0))) {
      literal = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      if (--n == 0) return all.substr(first, i - first);
      first = i + 1;
      while (first < all.size() && all[first] == ' ') ++first;
    }
  }
  return all.substr(first);
}

}  // namespace

bool judgement::differ(operand left, const char* by, operand right) {
  left_ = left;
  by_ = by;
  right_ = right;
  return false;
}

void judgement::tell(findings& found, const char* text, ramie::source_location where) const {
  std::string what(nth_of(text, conditions_));
  if (by_ != nullptr) what += ", where " + left_.tell(left_.value) + by_ + right_.tell(right_.value);
  found.note(where, std::move(what));
}

}  // namespace test
