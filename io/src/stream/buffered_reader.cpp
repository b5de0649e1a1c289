// SPDX-License-Identifier: BSL-1.0
// A line or piece is searched for in the buffer. The buffer is filled until it holds all of it, and only then consumed.
#include <algorithm>
#include <cstring>

#include <ramie/buffered.hpp>
#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "transfer.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

// A piece in front of what is buffered.
struct buffered_piece {
  std::size_t length = 0;
  std::size_t with_end = 0;  // 0: it is not complete
};

// How a search goes on.
enum class search_result : std::uint8_t { found, too_long, needs_more };

class line_search {
 public:
  explicit line_search(std::size_t limit) noexcept : limit_(limit) {}

  [[nodiscard]] search_result look(std::string_view text, buffered_piece& found) noexcept {
    const std::size_t at = text.find('\n', seen_);
    seen_ = text.size();
    if (at == text.npos) return fits_without_end(text) ? search_result::needs_more : search_result::too_long;
    found = {at != 0 && text[at - 1] == '\r' ? at - 1 : at, at + 1};
    return found.length <= limit_ ? search_result::found : search_result::too_long;
  }
  // At the end of the stream, which has no more than `text`, and that is not empty.
  [[nodiscard]] std::error_code last(std::string_view text, buffered_piece& found) const noexcept {
    if (text.size() > limit_) return stream_errc::limit_exceeded;
    found = {text.size(), text.size()};
    return {};
  }

 private:
  // One more than the limit may be a \r before its \n.
  [[nodiscard]] bool fits_without_end(std::string_view text) const noexcept {
    return text.size() <= limit_ || (text.size() - limit_ == 1 && text.back() == '\r');
  }

  const std::size_t limit_;
  std::size_t seen_ = 0;
};

class delimiter_search {
 public:
  delimiter_search(std::string_view delimiter, std::size_t limit) noexcept : delimiter_(delimiter), limit_(limit) {}

  [[nodiscard]] search_result look(std::string_view text, buffered_piece& found) noexcept {
    const std::size_t at = text.find(delimiter_, seen_);
    const std::size_t may_be_begun = std::min(delimiter_.size() - 1, text.size());
    seen_ = text.size() - may_be_begun;
    if (at == text.npos) return seen_ > limit_ ? search_result::too_long : search_result::needs_more;
    found = {at, at + delimiter_.size()};
    return at <= limit_ ? search_result::found : search_result::too_long;
  }
  [[nodiscard]] std::error_code last(std::string_view, buffered_piece&) const noexcept {
    return stream_errc::end_of_stream;
  }

 private:
  const std::string_view delimiter_;
  const std::size_t limit_;
  std::size_t seen_ = 0;
};

// Leaves the piece in the buffer. Nothing found and no error: the stream has ended, and nothing is left.
template <class Search>
buffered_piece find_piece(buffered_reader& in, Search search, std::error_code& ec, deadline until) {
  buffered_piece found;
  ec.clear();
  bool ended = false;
  for (;;) {
    switch (search.look(as_text(in.buffered()), found)) {
      case search_result::found: return found;
      case search_result::too_long: ec = stream_errc::limit_exceeded; return {};
      case search_result::needs_more: break;
    }
    if (ended) break;
    ended = in.fill(ec, until) == 0;
    if (ec) return {};
  }
  if (!in.buffered().empty()) ec = search.last(as_text(in.buffered()), found);
  return found;
}

template <class Search>
bool take_piece(buffered_reader& in, std::string& to, const Search& search, std::error_code& ec, deadline until) {
  check_cancelled();
  const buffered_piece found = find_piece(in, search, ec, until);
  if (ec) return false;
  to.assign(as_text(in.buffered().first(found.length)));
  in.consume(found.with_end);
  return found.with_end != 0;
}

}  // namespace

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using namespace io_internal;

buffered_reader::buffered_reader(any_reader from, std::size_t capacity)
    : from_(from), buffer_(capacity, "buffered_reader::buffered_reader") {}

void buffered_reader::consume(std::size_t n) noexcept {
  buffer_.consume(n);
  buffer_.settle();
}

std::size_t buffered_reader::fill(std::error_code& ec, deadline until) {
  return fill_with(buffer_.usual_capacity(), ec, until);
}

// Once, and no more than that, so that a buffer that has grown for one long line is not filled with what follows.
std::size_t buffered_reader::fill_with(std::size_t at_most, std::error_code& ec, deadline until) {
  const auto room = buffer_.free_space(1);
  const std::size_t got = from_.read_some(room.first(std::min(room.size(), at_most)), ec, until);
  buffer_.added(got);
  return got;
}

std::span<const std::byte> buffered_reader::peek(std::size_t n, std::error_code& ec, deadline until) {
  ec.clear();
  check_cancelled();
  while (buffer_.size() < n) {
    const std::size_t missing = n - buffer_.size();
    if (fill_with(std::max(missing, buffer_.usual_capacity()), ec, until) == 0) break;
  }
  return buffered();
}

std::size_t buffered_reader::read_some(std::span<std::byte> into, std::error_code& ec, deadline until) {
  ec.clear();
  if (buffer_.size() == 0 && !into.empty()) {
    if (into.size() >= buffer_.usual_capacity()) return from_.read_some(into, ec, until);
    if (fill(ec, until) == 0) return 0;
  } else {
    check_cancelled();
  }
  const std::size_t n = std::min(into.size(), buffer_.size());
  if (n != 0) std::memcpy(into.data(), buffered().data(), n);
  consume(n);
  return n;
}

void buffered_reader::read_exactly(std::span<std::byte> into, std::error_code& ec, deadline until) {
  if (peek(into.size(), ec, until).size() < into.size()) {
    if (!ec) ec = stream_errc::end_of_stream;
    return;
  }
  if (ec || into.empty()) return;
  std::memcpy(into.data(), buffered().data(), into.size());
  consume(into.size());
}

bool buffered_reader::read_line(std::string& line, std::size_t limit, std::error_code& ec, deadline until) {
  return take_piece(*this, line, line_search(limit), ec, until);
}

bool buffered_reader::read_until(std::string& piece, std::string_view delimiter, std::size_t limit, std::error_code& ec,
                                 deadline until) {
  if (delimiter.empty()) {
    throw usage_error("ramie: buffered_reader::read_until: no delimiter. Pass one, or use read_some or read_to_end.");
  }
  return take_piece(*this, piece, delimiter_search(delimiter, limit), ec, until);
}

// The same, throwing.

std::size_t buffered_reader::fill(deadline until) {
  return or_throw("ramie: buffered_reader::fill", [&](auto& ec) { return fill(ec, until); });
}

std::span<const std::byte> buffered_reader::peek(std::size_t n, deadline until) {
  return or_throw("ramie: buffered_reader::peek", [&](auto& ec) { return peek(n, ec, until); });
}

std::size_t buffered_reader::read_some(std::span<std::byte> into, deadline until) {
  return or_throw("ramie: buffered_reader::read_some", [&](auto& ec) { return read_some(into, ec, until); });
}

void buffered_reader::read_exactly(std::span<std::byte> into, deadline until) {
  or_throw("ramie: buffered_reader::read_exactly", [&](auto& ec) { read_exactly(into, ec, until); });
}

bool buffered_reader::read_line(std::string& line, std::size_t limit, deadline until) {
  return or_throw("ramie: buffered_reader::read_line", [&](auto& ec) { return read_line(line, limit, ec, until); });
}

bool buffered_reader::read_until(std::string& piece, std::string_view delimiter, std::size_t limit, deadline until) {
  return or_throw("ramie: buffered_reader::read_until",
                  [&](auto& ec) { return read_until(piece, delimiter, limit, ec, until); });
}

// What is written is consumed, step by step.
std::uint64_t copy(buffered_reader& from, any_writer to, const copy_options& how, std::error_code& ec, deadline until) {
  ec.clear();
  check_cancelled();
  std::uint64_t done = 0;
  while (done < how.limit) {
    if (from.buffered().empty() && (from.fill(ec, until) == 0 || ec)) break;
    const auto there = from.buffered();
    const auto some = there.first(static_cast<std::size_t>(std::min<std::uint64_t>(there.size(), how.limit - done)));
    const std::size_t written = write_or_stop(to, some, ec, until);
    from.consume(written);
    done += written;
    if (ec) break;
  }
  return done;
}

std::uint64_t copy(buffered_reader& from, any_writer to, const copy_options& how, deadline until) {
  return transferred_or_throw("ramie: copy", [&](auto& ec) { return copy(from, to, how, ec, until); });
}

}  // namespace ramie::inline v0
