// SPDX-License-Identifier: BSL-1.0
#include "parser.hpp"

#include <algorithm>

#include "characters.hpp"

namespace http {

namespace {

using character::all;

// A number of at most 19 digits, which can't overflow.
std::optional<std::uint64_t> decimal(std::string_view text) noexcept {
  if (text.empty() || text.size() > 19) return std::nullopt;
  std::uint64_t n = 0;
  for (const char c : text) {
    if (!character::digit(c)) return std::nullopt;
    n = n * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return n;
}

}  // namespace

std::optional<std::string_view> request_head::find(std::string_view lower_case_name) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (equals_ignoring_case(view(names_[i]), lower_case_name)) return view(values_[i]);
  }
  return std::nullopt;
}

bool request_head::keep_alive() const noexcept {
  if (close_) return false;
  return version_ == version::http_1_1 || keep_alive_;
}

head_parser::head_parser(const limits& l) noexcept : limits_(l) {
  limits_.head = std::min(l.head, limits::max_head);
  limits_.fields = std::min(l.fields, limits::max_fields);
}

void head_parser::reset() noexcept {
  part_ = part::request_line;
  line_ = scanned_ = 0;
  head_.version_ = version::http_1_1;
  head_.framing_ = framing::none;
  head_.close_ = head_.keep_alive_ = false;
  head_.has_host_ = head_.has_length_ = head_.has_coding_ = head_.expects_continue_ = false;
  head_.content_length_ = 0;
  head_.count_ = 0;
}

head_parser::progress head_parser::outcome() const noexcept {
  if (part_ == part::complete) return progress::complete;
  return part_ == part::refused ? progress::refused : progress::needs_more;
}

void head_parser::refuse(status s) noexcept {
  part_ = part::refused;
  refusal_ = s;
}

void head_parser::refuse_length() noexcept {
  refuse(part_ == part::request_line ? status::uri_too_long : status::header_fields_too_large);
}

head_parser::progress head_parser::advance(std::string_view bytes) noexcept {
  head_.bytes_ = bytes.data();
  while (part_ == part::request_line || part_ == part::fields) {
    const std::size_t feed = bytes.find('\n', scanned_);
    const std::size_t end = feed == bytes.npos ? bytes.size() : feed + 1;
    // The length comes first, so that a long line is refused alike before and after its end has come.
    if (end - line_ > limits_.line || end > limits_.head) {
      refuse_length();
      break;
    }
    scanned_ = end;
    if (feed == bytes.npos) break;
    const std::size_t at = line_;
    if (feed == at || bytes[feed - 1] != '\r') {
      refuse(status::bad_request);
      break;
    }
    line_ = end;
    take_line(at, bytes.substr(at, feed - 1 - at));
  }
  return outcome();
}

void head_parser::take_line(std::size_t at, std::string_view line) noexcept {
  if (part_ == part::request_line) {
    // One empty line before a request is forgiven: some clients end a body with it (RFC 9112, 2.2).
    if (!line.empty()) {
      take_request_line(at, line);
    } else if (at != 0) {
      refuse(status::bad_request);
    }
  } else if (!line.empty()) {
    take_field(at, line);
  } else {
    take_end();
  }
}

void head_parser::take_request_line(std::size_t at, std::string_view line) noexcept {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || first == last) return refuse(status::bad_request);
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (method.empty() || !all(method, character::token)) return refuse(status::bad_request);
  if (target.empty() || !all(target, character::target)) return refuse(status::bad_request);
  if (target.size() > limits_.target) return refuse(status::uri_too_long);
  head_.method_ = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(first)};
  head_.target_ = {static_cast<std::uint32_t>(at + first + 1), static_cast<std::uint32_t>(target.size())};
  part_ = part::fields;
  take_version(line.substr(last + 1));
}

void head_parser::take_version(std::string_view text) noexcept {
  const bool well_formed = text.size() == 8 && text.starts_with("HTTP/") && character::digit(text[5]) &&
                           text[6] == '.' && character::digit(text[7]);
  if (!well_formed) return refuse(status::bad_request);
  if (text[5] != '1') return refuse(status::version_not_supported);
  head_.version_ = text[7] == '0' ? version::http_1_0 : version::http_1_1;
}

void head_parser::take_field(std::size_t at, std::string_view line) noexcept {
  const std::size_t colon = line.find(':');
  // A line that begins with white space would continue the one before it; its "name" is no token.
  if (colon == line.npos || colon == 0) return refuse(status::bad_request);
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!all(name, character::token) || !all(value, character::value)) return refuse(status::bad_request);
  if (head_.count_ == limits_.fields) return refuse(status::header_fields_too_large);
  const auto value_at = static_cast<std::uint32_t>(at + static_cast<std::size_t>(value.data() - line.data()));
  head_.names_[head_.count_] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(colon)};
  head_.values_[head_.count_] = {value_at, static_cast<std::uint32_t>(value.size())};
  ++head_.count_;
  take_meaning(name, value);
}

// The fields that say where the request ends and what becomes of the connection.
void head_parser::take_meaning(std::string_view name, std::string_view value) noexcept {
  if (equals_ignoring_case(name, "host")) {
    if (head_.has_host_ || !all(value, character::host)) return refuse(status::bad_request);
    head_.has_host_ = true;
  } else if (equals_ignoring_case(name, "content-length")) {
    take_content_length(value);
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    take_transfer_encoding(value);
  } else if (equals_ignoring_case(name, "connection")) {
    take_connection(value);
  } else if (equals_ignoring_case(name, "expect")) {
    if (!equals_ignoring_case(value, "100-continue")) return refuse(status::expectation_failed);
    head_.expects_continue_ = true;
  }
}

void head_parser::take_content_length(std::string_view value) noexcept {
  const std::optional<std::uint64_t> length = decimal(value);
  if (head_.has_length_ || head_.has_coding_ || !length) return refuse(status::bad_request);
  head_.has_length_ = true;
  head_.content_length_ = *length;
  head_.framing_ = framing::length;
}

void head_parser::take_transfer_encoding(std::string_view value) noexcept {
  // HTTP/1.0 knows no codings: whoever passed the request on has not seen where it ends.
  const bool possible = head_.version_ == version::http_1_1 && !head_.has_coding_ && !head_.has_length_;
  if (!possible || value.empty()) return refuse(status::bad_request);
  if (!equals_ignoring_case(value, "chunked")) return refuse(status::not_implemented);
  head_.has_coding_ = true;
  head_.framing_ = framing::chunked;
}

void head_parser::take_connection(std::string_view value) noexcept {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view option = trimmed(value.substr(0, comma));
    if (equals_ignoring_case(option, "close")) head_.close_ = true;
    if (equals_ignoring_case(option, "keep-alive")) head_.keep_alive_ = true;
    value.remove_prefix(comma == value.npos ? value.size() : comma + 1);
  }
}

// What can only be said of the head as a whole.
void head_parser::take_end() noexcept {
  if (!head_.has_host_ && head_.version_ == version::http_1_1) return refuse(status::bad_request);
  if (head_.framing_ == framing::chunked && !limits_.chunked) return refuse(status::length_required);
  if (head_.content_length_ > limits_.body) return refuse(status::content_too_large);
  part_ = part::complete;
}

}  // namespace http
