// SPDX-License-Identifier: BSL-1.0
// Buffers in front of streams: pieces as a model cuts them, limits, and nothing lost whatever goes wrong.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/streams.hpp>
#include <support/test.hpp>

namespace conformance_streams_buffered {

using namespace std::chrono_literals;
using ramie::as_text;
using ramie::basic_buffered_reader;
using ramie::basic_buffered_writer;
using ramie::buffered_reader;
using ramie::buffered_writer;
using ramie::stream_errc;
using test::as_thread_and_fiber;
using test::dice;
using test::findings;
using test::lines_of;
using test::manners;
using test::random_text;
using test::text_sink;
using test::text_source;
using test::writable;

static_assert(ramie::reader<buffered_reader> && ramie::writer<buffered_writer>);
static_assert(!std::is_move_constructible_v<buffered_reader> && !std::is_move_constructible_v<buffered_writer>);
static_assert(std::is_nothrow_move_constructible_v<basic_buffered_reader<text_source>>);
// Nothing is referred to that is about to go.
static_assert(std::is_constructible_v<buffered_reader, text_source&> &&
              !std::is_constructible_v<buffered_reader, text_source>);
static_assert(std::is_constructible_v<buffered_reader, ramie::any_reader>);
static_assert(!std::is_constructible_v<buffered_reader, basic_buffered_reader<text_source>>);
static_assert(std::is_constructible_v<buffered_writer, text_sink&> &&
              !std::is_constructible_v<buffered_writer, text_sink>);
static_assert(std::is_constructible_v<buffered_writer, ramie::any_writer>);
static_assert(!std::is_constructible_v<buffered_writer, ramie::duplex_end, std::size_t>);
static_assert(std::input_iterator<ramie::line_range::iterator>);

std::vector<std::string> all_lines(buffered_reader& in) {
  std::vector<std::string> lines;
  for (const std::string& line : in.lines()) lines.push_back(line);
  return lines;
}

TEST_CASE("lines are those of a reference, whatever the pieces and the buffer", "[conformance][streams][buffered]") {
  as_thread_and_fiber([](findings& found) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      dice d(seed);
      const std::string text = random_text(d, d.below(600));
      text_source source(text, {seed, 1 + d.below(40)});
      buffered_reader in(source, 1 + d.below(60));
      EXPECT(found, all_lines(in) == lines_of(text));
      std::string line = "old";
      EXPECT(found, !in.read_line(line), line.empty());
    }
  });
}

TEST_CASE("an end of line is \\n or \\r\\n, and the last line may have none", "[conformance][streams][buffered]") {
  const auto cut = [](std::string text) {
    text_source source(std::move(text), {1, 1});
    buffered_reader in(source, 1);
    return all_lines(in);
  };
  using lines = std::vector<std::string>;
  CHECK(cut("") == lines{});
  CHECK(cut("\n") == lines{""});
  CHECK(cut("\r\n\n") == lines{"", ""});
  CHECK(cut("a\r\nb\nc") == lines{"a", "b", "c"});
  CHECK(cut("a\r\r\nb\rc\n\r") == lines{"a\r", "b\rc", "\r"});
}

TEST_CASE("a line over the limit is an error, and nothing of it is lost", "[conformance][streams][buffered]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    dice d(seed);
    const std::string text = random_text(d, 1 + d.below(400));
    text_source source(text, {seed, 1 + d.below(20)});
    buffered_reader in(source, 1 + d.below(8));
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t limit = d.below(6);;) {
      std::error_code ec;
      line = "as it was";
      const bool got = in.read_line(line, limit, ec);
      if (ec) {
        CHECK(ec == stream_errc::limit_exceeded);
        CHECK(line == "as it was");
        ++limit;
      } else if (got) {
        CHECK(line.size() <= limit);
        lines.push_back(line);
        limit = d.below(6);
      } else {
        break;
      }
    }
    CHECK(lines == lines_of(text));
  }
}

TEST_CASE("the limit of a line does not count its end", "[conformance][streams][buffered]") {
  for (const std::string end : {"\n", "\r\n", ""}) {
    for (const unsigned at_once : {1u, 100u}) {
      text_source fits("12345" + end, {1, at_once}), does_not("123456" + end, {1, at_once});
      buffered_reader first(fits, 1), second(does_not, 1);
      std::string line;
      CHECK(first.read_line(line, 5));
      CHECK(line == "12345");
      std::error_code ec;
      CHECK(!second.read_line(line, 5, ec));
      CHECK(ec == stream_errc::limit_exceeded);
      CHECK(second.read_line(line, 6));
      CHECK(line == "123456");
    }
  }
  // No more is read than it takes to know.
  text_source endless(std::string(100'000, 'x'), {1, 10'000});
  buffered_reader in(endless, 16);
  std::string line;
  CHECK_THROWS_AS(in.read_line(line, 100), std::system_error);
  CHECK(in.buffered().size() + endless.rest().size() == 100'000);
  CHECK(in.buffered().size() <= 101 + 16);
  text_source trailing("12345\r", {1, 1});
  buffered_reader last(trailing);
  std::error_code ec;
  CHECK(!last.read_line(line, 5, ec));
  CHECK(ec == stream_errc::limit_exceeded);
  CHECK(last.read_line(line, 6));
}

TEST_CASE("pieces end at a delimiter of any length, and what has none stays", "[conformance][streams][buffered]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    dice d(seed);
    std::string text(d.below(200), ' ');
    for (char& c : text) c = "ab"[d.below(2)];
    const std::string delimiter = std::vector<std::string>{"a", "ab", "aab", "abab", "aaaa"}[d.below(5)];
    text_source source(text, {seed, 1 + d.below(9)});
    buffered_reader in(source, 1 + d.below(9));
    std::string piece, together;
    std::error_code ec;
    while (in.read_until(piece, delimiter, 200, ec)) {
      CHECK((piece + delimiter).find(delimiter) == piece.size());
      together += piece + delimiter;
    }
    const std::string rest(as_text(in.buffered()));
    CHECK(static_cast<bool>(ec) == !rest.empty());
    if (ec) CHECK(ec == stream_errc::end_of_stream);
    CHECK(rest.find(delimiter) == rest.npos);
    CHECK(together + rest == text);
  }
  text_source source("key: value\r\n\r\nbody");
  buffered_reader in(source);
  std::string head;
  std::error_code ec;
  CHECK(!in.read_until(head, "\r\n\r\n", 9, ec));
  CHECK(ec == stream_errc::limit_exceeded);
  CHECK(in.read_until(head, "\r\n\r\n", 10));
  CHECK(head == "key: value");
  CHECK(ramie::read_to_end(in, 10) == "body");
  CHECK_THROWS_AS(in.read_until(head, "", 1), ramie::usage_error);
}

// One call of many, by the dice; appends what it got.
void read_somehow(dice& d, buffered_reader& in, std::string& all, bool& ended) {
  std::error_code ec;
  switch (d.below(5)) {
    case 0: {
      std::string some(d.below(30), 0);
      const std::size_t n = in.read_some(writable(some), ec);
      all += some.substr(0, n);
      ended = !ec && n == 0 && !some.empty();
      break;
    }
    case 1: {
      std::string exactly(d.below(40), 0);
      in.read_exactly(writable(exactly), ec);
      if (!ec) all += exactly;
      break;
    }
    case 2: {
      const std::size_t wanted = d.below(40);
      const auto seen = in.peek(wanted, ec);
      const std::size_t n = seen.empty() ? 0 : d.below(static_cast<unsigned>(seen.size()) + 1);
      all += as_text(seen.first(n));
      in.consume(n);
      break;
    }
    case 3: {
      std::string piece;
      if (in.read_until(piece, "a", d.below(30), ec)) all += piece + "a";
      break;
    }
    default: (void)in.fill(ec); break;
  }
}

TEST_CASE("all ways to read give the same bytes once, whatever fails in between", "[conformance][streams][buffered]") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    dice d(seed);
    const std::string text = random_text(d, d.below(1'500));
    text_source source(text, {seed, 1 + d.below(60), 3});
    buffered_reader in(source, 1 + d.below(50));
    std::string all;
    for (bool ended = false; !ended;) {
      read_somehow(d, in, all, ended);
      if (all + std::string(as_text(in.buffered())) + std::string(source.rest()) != text) break;
    }
    CHECK(all == text);
  }
}

TEST_CASE("read_exactly takes all or nothing", "[conformance][streams][buffered]") {
  text_source source("0123456789", {1, 3});
  buffered_reader in(source, 2);
  std::string into(11, '-');
  std::error_code ec;
  in.read_exactly(writable(into), ec);
  CHECK(ec == stream_errc::end_of_stream);
  CHECK(into == "-----------");
  CHECK(as_text(in.buffered()) == "0123456789");
  in.read_exactly(writable(into).first(10));
  CHECK(into == "0123456789-");
  CHECK(in.buffered().empty());
}

TEST_CASE("a large read goes past the buffer, and a buffer that has grown is given back",
          "[conformance][streams][buffered]") {
  text_source source(std::string(10'000, 'x'), {1, 10'000});
  buffered_reader in(source, 16);
  std::string into(4'000, 0);
  std::error_code ec;
  const auto before = test::allocations();
  const std::size_t direct = in.read_some(writable(into), ec);
  CHECK(direct > 16);
  CHECK(test::allocations() == before);
  CHECK(in.peek(1'000).size() >= 1'000);
  in.consume(in.buffered().size());
  const auto at_first = test::allocations();
  CHECK(in.fill() <= 16);
  CHECK(test::allocations() == at_first + 1);
}

TEST_CASE("a copy from a buffer keeps what could not be written", "[conformance][streams][buffered]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    dice d(seed);
    const std::string text = random_text(d, d.below(1'000));
    text_source source(text, {seed, 1 + d.below(60), 5});
    text_sink sink({seed + 1, 1 + d.below(60), 5});
    buffered_reader in(source, 1 + d.below(100));
    std::uint64_t done = 0;
    for (std::error_code ec = std::make_error_code(std::errc::io_error); ec || done < text.size();) {
      done += ramie::copy(in, sink, {.limit = 1 + d.below(200)}, ec);
      if (sink.text.size() != done) break;
    }
    CHECK(sink.text == text);
  }
}

TEST_CASE("an owner moves with its stream", "[conformance][streams][buffered]") {
  basic_buffered_reader first(text_source("one\ntwo\nthree", {1, 5}), 4);
  std::string line;
  CHECK(first.read_line(line));
  auto second = std::move(first);
  CHECK(second.read_line(line));
  CHECK(line == "two");
  first = std::move(second);
  CHECK(first.read_line(line));
  CHECK(line == "three");
  CHECK(first.source().rest().empty());

  basic_buffered_writer out(text_sink{}, 4);
  out.write("one, ");
  auto moved = std::move(out);
  moved.write("two");
  moved.flush();
  CHECK(moved.sink().text == "one, two");
}

TEST_CASE("a buffered writer that another is moved onto reports what it had", "[conformance][streams][buffered]") {
  const test::reports all;
  basic_buffered_writer out(text_sink{}, 16), other(text_sink{}, 16), flushed(text_sink{}, 16);
  out.write("lost");
  other.write("kept");
  out = std::move(other);
  REQUIRE(all.taken().size() == 1);
  CHECK(all.taken()[0].kind == ramie::report_kind::lost_output);
  CHECK(all.taken()[0].text == "4 bytes");
  flushed.write("x");
  flushed.flush();
  flushed = std::move(out);
  flushed.write(", more");
  flushed.flush();
  CHECK(flushed.sink().text == "kept, more");
  CHECK(all.taken().size() == 1);
}

TEST_CASE("a buffered writer keeps what could not be written, in order", "[conformance][streams][buffered]") {
  const test::reports quiet;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    dice d(seed);
    text_sink sink({seed, 1 + d.below(60), 3});
    buffered_writer out(sink, 1 + d.below(50));
    std::string expected;
    bool whole = true;
    for (int i = 0; i < 60; ++i) {
      const std::string text = random_text(d, d.below(d.one_in(4) ? 200 : 20));
      std::error_code ec;
      switch (d.below(3)) {
        case 0: expected += text.substr(0, out.write_some(ramie::bytes_of(text), ec)); break;
        case 1: out.flush(ec); break;
        default:
          out.write(text, ec);
          expected += text;  // taken, in any case
          break;
      }
      whole = whole && sink.text + std::string(as_text(out.pending())) == expected;
    }
    CHECK(whole);
    for (std::error_code ec = std::make_error_code(std::errc::io_error); ec;) out.flush(ec);
    CHECK(sink.text == expected);
    CHECK(out.pending().empty());
  }
}

TEST_CASE("writes are collected, and large ones go past the buffer", "[conformance][streams][buffered]") {
  text_sink sink({1, 1'000'000});
  buffered_writer out(sink, 100);
  for (int i = 0; i < 10; ++i) out.write("0123456789");
  CHECK(sink.calls == 0);
  out.write("x");
  CHECK(sink.calls == 1);
  CHECK(out.pending().size() == 1);
  out.write(std::string(100'000, 'y'));
  CHECK(out.pending().size() < 100);
  out.flush();
  CHECK(sink.text.size() == 100'101);
  CHECK_THROWS_AS(buffered_writer(sink, 0), ramie::usage_error);
}

TEST_CASE("without memory a write takes nothing, and later ones go on", "[conformance][streams][buffered]") {
  text_sink sink({1, 1'000});
  buffered_writer out(sink, 10);
  out.write("12345");
  const std::string large(1'000, 'x');
  bool refused = false;
  test::fail_allocation(1);
  try {
    out.write(large);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  test::fail_allocation(0);
  CHECK(refused);
  CHECK(sink.text.empty());
  out.write(large);
  out.flush();
  CHECK(sink.text == "12345" + large);
}

// Fails so many times, then takes everything.
struct flaky_sink {
  explicit flaky_sink(unsigned times) : failures(times) {}
  std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, ramie::deadline = {}) {
    ec = failures != 0 ? std::make_error_code(std::errc::io_error) : std::error_code();
    if (ec) return --failures, 0;
    text += as_text(from);
    return from.size();
  }
  std::size_t write_some(std::span<const std::byte> from, ramie::deadline until = {}) {
    std::error_code ec;
    const std::size_t n = write_some(from, ec, until);
    if (ec) throw std::system_error(ec, "flaky_sink");
    return n;
  }
  unsigned failures;
  std::string text;
};

TEST_CASE("what was not flushed is reported, unless that is no surprise", "[conformance][streams][buffered]") {
  const test::reports all;
  text_sink sink, broken({1, 8, 1});
  unsigned line = 0;
  {
    line = __LINE__ + 1;
    buffered_writer forgotten(sink);
    forgotten.write("four");
  }
  REQUIRE(all.taken().size() == 1);
  CHECK(all.taken()[0].kind == ramie::report_kind::lost_output);
  CHECK(all.taken()[0].who.find("streams_buffered.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(all.taken()[0].text == "4 bytes");
  {
    buffered_writer flushed(sink), thrown_away(sink), failed(broken);
    flushed.write("x");
    flushed.flush();
    thrown_away.write("x");
    thrown_away.discard();
    failed.write("x");
    CHECK_THROWS_AS(failed.flush(), std::system_error);
    buffered_writer failed_before(broken, 2);
    CHECK_THROWS_AS(failed_before.write("too much to keep"), std::system_error);
  }
  {
    flaky_sink recovers(1);
    buffered_writer recovered(recovers);
    recovered.write("first");
    std::error_code ec;
    recovered.flush(ec);
    CHECK(ec == std::errc::io_error);
    recovered.flush(ec);  // what failed before has been written now, so a loss would be a surprise again
    CHECK_FALSE(ec);
    CHECK(recovers.text == "first");
    recovered.write("more");
  }
  REQUIRE(all.taken().size() == 2);
  CHECK(all.taken()[1].text == "4 bytes");
  try {
    buffered_writer unwound(sink);
    unwound.write("x");
    throw std::runtime_error("on the way");
  } catch (const std::runtime_error&) {
  }
  CHECK(all.taken().size() == 2);
  CHECK(sink.text == "x");
}

TEST_CASE("a call that was too late or cancelled is made again, and nothing is missing",
          "[conformance][streams][buffered][cancel]") {
  test::as_fiber([](findings& found, auto& clock) {
    auto [near, far] = ramie::make_duplex();
    buffered_reader in(near);
    std::string line;
    ramie::write_all(far, "half a ");
    ramie::nursery n;
    bool late = false, cut = false;
    n.spawn([&] {
      std::error_code ec;
      in.read_line(line, 100, ec, ramie::deadline(1s));
      late = ec == std::errc::timed_out;
    });
    ramie::yield();
    clock.advance(2s);
    n.join();
    ramie::nursery m;
    m.spawn([&] {
      try {
        in.read_line(line);
      } catch (const ramie::cancelled&) {
        cut = true;
        throw;
      }
    });
    ramie::yield();
    m.cancel();
    m.join();
    ramie::write_all(far, "line\n");
    EXPECT(found, late, cut, in.read_line(line), line == "half a line");
  });
}

}  // namespace conformance_streams_buffered
