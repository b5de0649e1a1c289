// SPDX-License-Identifier: BSL-1.0
// Functions on any reader and writer: all bytes, in order, and an account of how far they came.
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/streams.hpp>
#include <support/test.hpp>

namespace conformance_streams_transfer {

using ramie::any_reader;
using ramie::any_writer;
using ramie::stream_errc;
using test::as_fiber;
using test::as_thread_and_fiber;
using test::dice;
using test::findings;
using test::manners;
using test::random_text;
using test::text_sink;
using test::text_source;
using test::writable;

struct reads_nothing {
  int read_some(std::span<std::byte>, std::error_code&, ramie::deadline);
};
static_assert(ramie::reader<text_source> && !ramie::reader<text_sink> && !ramie::reader<reads_nothing>);
static_assert(ramie::writer<text_sink> && !ramie::writer<text_source>);
static_assert(ramie::reader<any_reader> && ramie::reader<const any_reader> && ramie::writer<any_writer>);
static_assert(!std::is_constructible_v<any_reader, text_sink&> &&
              !std::is_constructible_v<any_reader, const text_source&>);
static_assert(sizeof(any_reader) == 2 * sizeof(void*) && std::is_trivially_copyable_v<any_reader>);

TEST_CASE("what is read in any pieces is what was there", "[conformance][streams]") {
  as_thread_and_fiber([](findings& found) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      dice d(seed);
      const std::string text = random_text(d, d.below(3'000));
      const manners m{seed, 1 + d.below(700)};
      std::string exactly(text.size(), 0);
      text_source first(text, m);
      ramie::read_exactly(first, writable(exactly));
      EXPECT(found, exactly == text, first.rest().empty());

      text_source second(text, m);
      EXPECT(found, ramie::read_to_end(second, 3'000) == text);

      text_source third(text, m);
      std::vector<std::byte> bytes(3);
      EXPECT(found, ramie::read_to_end(third, bytes, text.size()) == text.size());
      EXPECT(found, ramie::as_text(std::span(bytes).subspan(3)) == text);
    }
  });
}

TEST_CASE("what is written in any pieces arrives whole, and so does what is copied", "[conformance][streams]") {
  as_thread_and_fiber([](findings& found) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      dice d(seed);
      const std::string text = random_text(d, d.below(3'000));
      text_sink written({seed, 1 + d.below(50)}), copied({seed, 1 + d.below(50)});
      ramie::write_all(written, text);
      EXPECT(found, written.text == text);

      text_source source(text, {seed + 1, 1 + d.below(50)});
      EXPECT(found, ramie::copy(source, copied, {.buffer_size = 1 + d.below(100)}) == text.size());
      EXPECT(found, copied.text == text);
    }
  });
}

TEST_CASE("a copy stops at its limit, and the rest stays where it was", "[conformance][streams]") {
  as_thread_and_fiber([](findings& found) {
    const std::string text(1'000, 'x');
    for (const std::uint64_t limit : {0u, 1u, 7u, 999u, 1'000u, 1'001u}) {
      text_source source(text, {limit + 1, 64});
      text_sink sink;
      const auto expected = std::min<std::uint64_t>(limit, text.size());
      EXPECT(found, ramie::copy(source, sink, {.limit = limit, .buffer_size = 16}) == expected);
      EXPECT(found, sink.text.size() == expected, source.rest().size() == text.size() - expected);
    }
    text_source source(text);
    text_sink sink;
    bool refused = false;
    try {
      ramie::copy(source, sink, {.buffer_size = 0});
    } catch (const ramie::usage_error&) {
      refused = true;
    }
    found.expect(refused);
  });
}

TEST_CASE("a stream that ends too early is an error that says how much there was", "[conformance][streams]") {
  text_source source("only this");
  std::string into(20, '-');
  try {
    ramie::read_exactly(source, writable(into));
    FAIL("nothing was thrown");
  } catch (const ramie::transfer_error& e) {
    CHECK(e.code() == stream_errc::end_of_stream);
    CHECK(e.transferred() == 9);
    CHECK(std::string(e.what()).starts_with("ramie: read_exactly: "));
  }
  CHECK(into == "only this-----------");
  std::error_code ec;
  CHECK(ramie::read_exactly(source, writable(into), ec) == 0);
  CHECK(ec == stream_errc::end_of_stream);
  CHECK(ec != stream_errc::limit_exceeded);
  CHECK(ramie::read_exactly(source, {}, ec) == 0);
  CHECK(!ec);
  CHECK(ec.category() != ramie::stream_category());
  CHECK(std::string(ramie::stream_category().name()) == "ramie.stream");
}

TEST_CASE("reading to the end takes no more than one byte over the limit, and gives it back",
          "[conformance][streams]") {
  for (const std::size_t limit : {0u, 1u, 511u, 512u, 513u, 1'535u, 1'536u, 4'999u}) {
    text_source source(std::string(5'000, 'x'), {limit + 1, 10'000});
    std::string into = "before";
    std::error_code ec;
    CHECK(ramie::read_to_end(source, into, limit, ec) == limit + 1);
    CHECK(ec == stream_errc::limit_exceeded);
    CHECK(ec == std::errc::message_size);
    CHECK(into.size() == 6 + limit + 1);
    CHECK(into.size() - 6 + source.rest().size() == 5'000);
  }
  text_source source(std::string(5'000, 'x'), {1, 10'000});
  CHECK(ramie::read_to_end(source, 5'000).size() == 5'000);
  CHECK_THROWS_AS(ramie::read_to_end(text_source("xx"), 1), ramie::transfer_error);
}

TEST_CASE("after an error in the middle the account is exact, and can be continued", "[conformance][streams]") {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    dice d(seed);
    const std::string text = random_text(d, 1 + d.below(2'000));
    const manners m{seed, 1 + d.below(100), 4};
    text_source first(text, m);
    std::string exactly(text.size(), 0);
    for (std::size_t done = 0; done < text.size();) {
      std::error_code ec;
      done += ramie::read_exactly(first, writable(exactly).subspan(done), ec);
      failures += ec == std::errc::connection_reset;
    }
    CHECK(exactly == text);

    text_source second(text, m);
    std::string all;
    for (std::error_code ec = std::make_error_code(std::errc::io_error); ec;) {
      const std::size_t before = all.size();
      const std::size_t came = ramie::read_to_end(second, all, 5'000, ec);
      CHECK(all.size() == before + came);
    }
    CHECK(all == text);

    text_sink sink(m);
    for (std::size_t done = 0; done < text.size();) {
      std::error_code ec;
      done += ramie::write_all(sink, std::string_view(text).substr(done), ec);
      CHECK(sink.text.size() == done);
    }
    CHECK(sink.text == text);

    // Of a copy: reading fails, and what was read has been written.
    text_source third(text, m);
    text_sink copied({seed, 1 + d.below(100)});
    std::uint64_t done = 0;
    for (std::error_code ec = std::make_error_code(std::errc::io_error); ec;) {
      done += ramie::copy(third, copied, {.buffer_size = 32}, ec);
      CHECK(copied.text.size() == done);
    }
    CHECK(copied.text == text);
  }
  CHECK(failures > 100);
}

TEST_CASE("a writer that takes nothing is an error and not a loop", "[conformance][streams]") {
  struct {
    std::size_t write_some(std::span<const std::byte>, ramie::deadline = {}) { return 0; }
    std::size_t write_some(std::span<const std::byte>, std::error_code& ec, ramie::deadline = {}) {
      ec.clear();
      return 0;
    }
  } lazy;
  std::error_code ec;
  CHECK(ramie::write_all(lazy, "x", ec) == 0);
  CHECK(ec == std::errc::io_error);
  CHECK(ramie::copy(text_source("x"), lazy, {}, ec) == 0);
  CHECK(ec == std::errc::io_error);
}

TEST_CASE("every function on streams is a cancellation point, also if there is nothing to do",
          "[conformance][streams][cancel]") {
  const test::reports of_swallowed_cancellations;
  as_fiber([](findings& found, auto&) {
    ramie::nursery n;
    n.spawn([&] {
      const auto throws = [](auto f) {
        try {
          f();
          return false;
        } catch (const ramie::cancelled&) {
          return true;
        }
      };
      n.cancel();
      text_source source("x");
      text_sink sink;
      std::error_code ec;
      ramie::buffered_reader in(source);
      ramie::buffered_writer out(sink);
      std::string line;
      EXPECT(found, throws([&] { ramie::read_exactly(source, {}); }), throws([&] { ramie::write_all(sink, ""); }));
      found.expect(throws([&] { ramie::read_to_end(source, line, 0, ec); }));
      found.expect(throws([&] { ramie::copy(source, sink, {.limit = 0}); }));
      found.expect(throws([&] { ramie::copy(in, sink, {.limit = 0}, ec); }));
      EXPECT(found, throws([&] { in.fill(); }), throws([&] { (void)in.peek(0); }));
      EXPECT(found, throws([&] { (void)in.read_some({}); }), throws([&] { in.read_exactly({}); }));
      EXPECT(found, throws([&] { in.read_line(line); }), throws([&] { in.read_until(line, ";", 9, ec); }));
      EXPECT(found, throws([&] { out.flush(); }), throws([&] { (void)out.write_some({}, ec); }));
      EXPECT(found, throws([&] { out.write("taken"); }), out.pending().size() == 5);
      out.discard();
      auto ends = ramie::make_duplex();
      EXPECT(found, throws([&] { (void)ends.first.read_some({}, ec); }),
             throws([&] { (void)ends.first.write_some({}); }));
      found.expect(throws([&] { (void)ends.first.write_some(ramie::bytes_of("there is room")); }));
      {
        const ramie::shield needed;
        ramie::write_all(ends.second, "there is something");
      }
      EXPECT(found, throws([&] { (void)ends.first.read_some(writable(line = "-")); }), ends.first.available() == 18);
      ramie::shutdown_source over;
      over.request();
      EXPECT(found, throws([&] { over.get_token().wait(); }), throws([&] { over.wait_pending(); }));
    });
    n.join();
  });
}

}  // namespace conformance_streams_transfer
