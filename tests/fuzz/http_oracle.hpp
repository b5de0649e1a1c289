// SPDX-License-Identifier: BSL-1.0
// What must hold of the HTTP leaves (examples/http) for every input. The fuzzer asks it for millions of inputs, a unit
// test for those of the corpus.
//
//   - A stream of requests read at once and in pieces is understood alike: the same heads, bodies and refusal.
//   - Nothing is read beyond what was given (every piece has a block of its own, for AddressSanitizer to guard), and
//     nothing after a head changes it.
//   - A head that was accepted, written out again, is understood as the same.
//   - A path that was accepted stays below the root; written out again it is the same path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <http/body.hpp>
#include <http/date.hpp>
#include <http/parser.hpp>
#include <http/range.hpp>
#include <http/target.hpp>
#include <support/random.hpp>

namespace test {

class http_oracle {
 public:
  // What does not hold of it, or "".
  static std::string wrong(std::string_view input) {
    http_oracle o(input);
    return o.judge();
  }

 private:
  using bytes = std::unique_ptr<char[]>;

  // A block with nothing behind it.
  static bytes exactly(std::string_view text) {
    bytes copy(new char[text.size()]);
    std::copy(text.begin(), text.end(), copy.get());
    return copy;
  }

  explicit http_oracle(std::string_view input) : input_(input) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    random_ = dice(hash);
    if (hash >> 60 == 0) limits_ = {.head = 96, .line = 48, .target = 16, .fields = 3, .body = 8, .chunked = true};
    if (hash >> 60 == 1) limits_.chunked = false;
  }

  std::string judge() {
    const std::string whole = read(input_.size());
    if (!wrong_.empty()) return wrong_;
    // Single bytes where there are few: every piece costs a block and a copy of the head so far.
    const std::size_t smallest = input_.size() / 50;
    const std::size_t sizes[] = {1, 7, 80};
    if (read(smallest + sizes[random_.below(3)]) != whole) wrong_ = "read differently in pieces";
    return wrong_;
  }

  // Reads requests, given pieces of up to `piece` bytes, as a connection does; tells what was understood.
  std::string read(std::size_t piece) {
    std::string log;
    log.reserve(2 * input_.size() + 64);
    http::head_parser parser(limits_);
    std::size_t start = 0;
    for (;;) {
      std::size_t given = start;
      bytes block;
      auto p = http::head_parser::progress::needs_more;
      for (; p == http::head_parser::progress::needs_more; p = advance(parser, block, start, given)) {
        if (given == input_.size()) return log += "|more in head";
        given = next(given, piece);
      }
      if (p == http::head_parser::progress::refused) return log += "|refused " + number(parser.refusal());
      log += describe(parser.head());
      if (piece == input_.size()) examine(parser, input_.substr(start, parser.size()));
      http::body_decoder body(parser.head(), limits_);
      start += parser.size();
      if (!read_body(body, start, std::max(given, start), piece, log)) return log;
      parser.reset();
    }
  }

  http::head_parser::progress advance(http::head_parser& parser, bytes& block, std::size_t start, std::size_t given) {
    const std::string_view all = input_.substr(start, given - start);
    block = exactly(all);
    return parser.advance({block.get(), all.size()});
  }

  std::size_t next(std::size_t given, std::size_t piece) {
    return given + std::min(input_.size() - given, piece == input_.size() ? piece : 1 + random_.below(piece));
  }

  // From `at`, of which bytes up to `given` have come. False: it does not end, or badly.
  bool read_body(http::body_decoder& body, std::size_t& at, std::size_t given, std::size_t piece, std::string& log) {
    using progress = http::body_decoder::progress;
    log += "|body ";
    for (;;) {
      const bytes block = exactly(input_.substr(at, given - at));
      std::string_view rest(block.get(), given - at);
      progress p;
      while ((p = body.advance(rest)) == progress::data) log += body.data();
      at = given - rest.size();
      if (p == progress::complete) return true;
      if (p == progress::refused) {
        log += "|refused " + number(body.refusal());
        return false;
      }
      if (!rest.empty()) wrong_ = "a body needs more but has not taken what there was";
      if (given == input_.size()) {
        log += "|more in body";
        return false;
      }
      given = next(given, piece);
    }
  }

  static std::string number(http::status s) { return std::to_string(static_cast<int>(s)); }

  static std::string describe(const http::request_head& h) {
    std::string text = written_out(h);
    text += std::to_string(static_cast<int>(h.framing())) + " " + std::to_string(h.content_length());
    text += h.keep_alive() ? " keep" : " close";
    text += h.expects_continue() ? " continue" : "";
    return text;
  }

  static std::string written_out(const http::request_head& h) {
    std::string text;
    text.reserve(2048);
    text.append(h.method()).append(" ").append(h.target());
    text += h.version() == http::version::http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
    for (std::size_t i = 0; i < h.fields(); ++i) text.append(h[i].name).append(":").append(h[i].value).append("\r\n");
    return text += "\r\n";
  }

  void examine(const http::head_parser& parser, std::string_view head) {
    using progress = http::head_parser::progress;
    http::head_parser again(limits_);
    const bytes alone = exactly(head);
    const std::string described = describe(parser.head());
    if (again.advance({alone.get(), head.size() - 1}) != progress::needs_more) wrong_ = "complete before its end";
    if (again.advance({alone.get(), head.size()}) != progress::complete) wrong_ = "not complete without what follows";
    if (wrong_.empty() && describe(again.head()) != described) wrong_ = "what follows changes the head";
    const std::string copy = written_out(parser.head());
    again.reset();
    if (again.advance(copy) != progress::complete) wrong_ = "written out again it is no head";
    if (wrong_.empty() && (again.size() != copy.size() || describe(again.head()) != described)) {
      wrong_ = "written out again it is another head";
    }
    examine_target(parser.head().target());
    examine_fields(parser.head());
  }

  void examine_target(std::string_view target) {
    http::target_path path;
    if (path.parse(target) != http::status::ok) return;
    const std::string_view name = path.view();
    if (name != "." && !stays_below(name)) wrong_ = "a path that may leave the root";
    const std::string plain = name == "." ? "" : std::string(name);
    std::string encoded(3 * plain.size() + 1, '\0');
    encoded.resize(static_cast<std::size_t>(http::write_encoded(plain, encoded.data()) - encoded.data()));
    http::target_path again;
    const http::status s = again.parse(encoded);
    if (s == http::status::uri_too_long && encoded.size() > http::target_path::capacity) return;
    if (s != http::status::ok || again.view() != name) wrong_ = "encoded again it is another path";
  }

  static bool stays_below(std::string_view path) {
    for (;;) {
      const std::size_t slash = path.find('/');
      const std::string_view segment = path.substr(0, slash);
      if (segment.empty() || segment == "." || segment == "..") return false;
      if (segment.find_first_of(std::string_view("\\\0", 2)) != segment.npos) return false;
      if (slash == path.npos) return true;
      path.remove_prefix(slash + 1);
    }
  }

  void examine_fields(const http::request_head& h) {
    constexpr http::seconds now = 1'700'000'000;
    for (std::size_t i = 0; i < h.fields(); ++i) {
      const std::uint64_t size = random_.below(3) == 0 ? random_.below(2) : 1 + random_.below(1000);
      const http::byte_range r = http::parse_range(h[i].value, size);
      const bool within = r.first <= r.last && r.last < size;
      if (r.what == http::byte_range::kind::part && !within) wrong_ = "a range beyond its file";
      const auto when = http::parse_date(h[i].value, now);
      if (!when) continue;
      const http::date_text text = http::write_date(*when);
      if (http::parse_date({text.data(), text.size()}, now) != when) wrong_ = "a date that is another when written";
    }
  }

  std::string_view input_;
  dice random_{0};
  http::limits limits_;
  std::string wrong_;
};

}  // namespace test
