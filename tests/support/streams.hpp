// SPDX-License-Identifier: BSL-1.0
// Streams that behave badly by a seed: short transfers, and failures in between. And what is to come out of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <ramie/cancel.hpp>
#include <ramie/stream.hpp>
#include <support/seeds.hpp>

namespace test {

// How a stream of a test behaves.
struct manners {
  std::uint64_t seed = 1;
  unsigned longest = 8;       // bytes at once
  unsigned fails_one_in = 0;  // calls: an error and nothing transferred; 0: none
};

class bad_manners {
 public:
  explicit bad_manners(manners m) : how_(m), dice_(m.seed) {}
  // How many of n; 0 and an error now and then.
  std::size_t some_of(std::size_t n, std::error_code& ec) {
    ec.clear();
    ++calls;
    if (how_.fails_one_in != 0 && dice_.one_in(how_.fails_one_in)) {
      ec = std::make_error_code(std::errc::connection_reset);
      return 0;
    }
    return n == 0 ? 0 : std::min<std::size_t>(n, 1 + dice_.below(how_.longest));
  }
  int calls = 0;

 private:
  manners how_;
  dice dice_;
};

// The text, in pieces.
class text_source : public bad_manners {
 public:
  explicit text_source(std::string text, manners m = {}) : bad_manners(m), text_(std::move(text)) {}
  std::size_t read_some(std::span<std::byte> into, std::error_code& ec, ramie::deadline = {}) {
    ramie::check_cancelled();
    const std::size_t n = some_of(std::min(into.size(), text_.size() - at_), ec);
    if (n != 0) std::memcpy(into.data(), text_.data() + at_, n);
    at_ += n;
    return n;
  }
  std::size_t read_some(std::span<std::byte> into, ramie::deadline until = {}) {
    std::error_code ec;
    const std::size_t n = read_some(into, ec, until);
    if (ec) throw std::system_error(ec, "text_source");
    return n;
  }
  [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(at_); }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

// Keeps what is written.
class text_sink : public bad_manners {
 public:
  explicit text_sink(manners m = {}) : bad_manners(m) {}
  std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, ramie::deadline = {}) {
    ramie::check_cancelled();
    const std::size_t n = some_of(from.size(), ec);
    text += ramie::as_text(from.first(n));
    return n;
  }
  std::size_t write_some(std::span<const std::byte> from, ramie::deadline until = {}) {
    std::error_code ec;
    const std::size_t n = write_some(from, ec, until);
    if (ec) throw std::system_error(ec, "text_sink");
    return n;
  }
  std::string text;
};

inline std::span<std::byte> writable(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

// Any bytes, with as many ends of lines among them that there are short lines, empty ones, and lone \r.
inline std::string random_text(dice& d, std::size_t length) {
  static constexpr char letters[] = "\n\n\r\r\rabc\0xyz";
  std::string text(length, ' ');
  for (char& c : text) c = d.one_in(3) ? letters[d.below(sizeof letters)] : static_cast<char>(d.below(256));
  return text;
}

// Read byte by byte, as the specification says it.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> all;
  std::string line;
  for (const char c : text) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    all.push_back(std::move(line));
    line.clear();
  }
  if (!line.empty()) all.push_back(line);
  return all;
}

}  // namespace test
