// SPDX-License-Identifier: BSL-1.0
#include "body.hpp"

#include <algorithm>

#include "characters.hpp"

namespace http {

body_decoder::body_decoder(const request_head& head, const limits& l) noexcept
    : part_(part::complete), max_trailer_(l.head), left_(head.content_length()), allowed_(l.body) {
  if (head.framing() == framing::chunked) part_ = part::size_first;
  if (head.framing() == framing::length && left_ != 0) part_ = part::length;
}

body_decoder::part body_decoder::refused(status s) noexcept {
  refusal_ = s;
  return part::refused;
}

body_decoder::progress body_decoder::advance(std::string_view& bytes) noexcept {
  data_ = {};
  for (;;) {
    if (part_ == part::complete) return progress::complete;
    if (part_ == part::refused) return progress::refused;
    if (bytes.empty()) return progress::needs_more;
    if (part_ == part::length || part_ == part::chunk) return take_data(bytes);
    part_ = overhead_-- != 0 ? after(bytes.front()) : refused(status::bad_request);
    bytes.remove_prefix(1);
  }
}

body_decoder::progress body_decoder::take_data(std::string_view& bytes) noexcept {
  data_ = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
  bytes.remove_prefix(data_.size());
  left_ -= data_.size();
  overhead_ += 2 * data_.size();
  if (left_ == 0) part_ = part_ == part::length ? part::complete : part::chunk_return;
  return progress::data;
}

body_decoder::part body_decoder::after(char c) noexcept {
  switch (part_) {
    case part::size_first: return character::hex(c) >= 0 ? after_digit(c) : refused(status::bad_request);
    case part::size: return character::hex(c) >= 0 ? after_digit(c) : after_size(c);
    case part::extension:
      if (c == '\r') return part::size_feed;
      if (!character::is(c, character::value) || ++extension_ > max_extension) return refused(status::bad_request);
      return part::extension;
    case part::size_feed: return c == '\n' ? after_size_line() : refused(status::bad_request);
    case part::chunk_return: return expect(c, '\r', part::chunk_feed);
    case part::chunk_feed: return expect(c, '\n', part::size_first);
    case part::line_first:
      if (c == '\r') return part::last_feed;
      return expect(c, character::is(c, character::token) ? c : '\r', part::name);
    case part::name:
      if (++trailer_ > max_trailer_) return refused(status::header_fields_too_large);
      if (c == ':') return part::value;
      return character::is(c, character::token) ? part::name : refused(status::bad_request);
    case part::value:
      if (++trailer_ > max_trailer_) return refused(status::header_fields_too_large);
      if (c == '\r') return part::value_feed;
      return character::is(c, character::value) ? part::value : refused(status::bad_request);
    case part::value_feed: return expect(c, '\n', part::line_first);
    case part::last_feed: return expect(c, '\n', part::complete);
    case part::length:
    case part::chunk:
    case part::complete:
    case part::refused: break;  // never asked
  }
  return part_;
}

body_decoder::part body_decoder::expect(char c, char wanted, part next) noexcept {
  return c == wanted ? next : refused(status::bad_request);
}

body_decoder::part body_decoder::after_digit(char c) noexcept {
  if (part_ == part::size_first) left_ = digits_ = 0;
  // 15 digits can't overflow, and nobody writes more zeros before a number than that.
  if (++digits_ > 15) return refused(status::bad_request);
  left_ = left_ * 16 + static_cast<std::uint64_t>(character::hex(c));
  return part::size;
}

body_decoder::part body_decoder::after_size(char c) noexcept {
  extension_ = 0;
  if (c == ';') return part::extension;
  return expect(c, '\r', part::size_feed);
}

body_decoder::part body_decoder::after_size_line() noexcept {
  if (left_ == 0) return part::line_first;
  if (left_ > allowed_) return refused(status::content_too_large);
  allowed_ -= left_;
  return part::chunk;
}

}  // namespace http
