// SPDX-License-Identifier: BSL-1.0
// Calls of several steps that fail say how far they came, whatever they read or wrote.
#include <sys/ioctl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/channel_observer.hpp>
#include <support/net.hpp>

namespace conformance_accounts {

using namespace std::chrono_literals;
using ramie::deadline;
using test::findings;
using test::with_each_mechanism_and_without;

// The error that f() throws, and what it says was transferred.
struct account {
  std::error_code why;
  std::uint64_t transferred = 0;
};
template <class F>
std::optional<account> account_of(F f) {
  try {
    f();
  } catch (const ramie::transfer_error& e) {
    return account{e.code(), e.transferred()};
  }
  return {};
}

// How many bytes can be read there.
template <class From>
int readable(const From& from) {
  int count = 0;
  return ::ioctl(from.native_handle(), FIONREAD, &count) == 0 ? count : 0;
}

// The account of f(until), which is too late by the clock, but not before meanwhile() has returned.
template <class F, class Meanwhile>
std::optional<account> account_when_late(ramie::manual_clock& clock, F f, Meanwhile meanwhile) {
  ramie::nursery n;
  auto told = n.spawn([&] { return account_of([&] { f(deadline(1h)); }); });
  meanwhile();
  ramie::testing::wait_all_blocked();
  clock.advance(1h);
  auto result = told.get();
  n.join();
  return result;
}

// More than fits is written by write(text, until), and read from `from`.
template <class Write, class From>
void tells_what_was_written(findings& found, ramie::manual_clock& clock, Write write, From& from) {
  const std::string text(std::size_t{4} << 20, 'x');
  const auto told = account_when_late(
      clock, [&](deadline until) { write(std::string_view(text), until); },
      [&] { test::yield_until([&] { return readable(from) > 0; }); });
  EXPECT(found, told.has_value(), told->why == std::errc::timed_out, told->transferred > 0);
  EXPECT(found, told->transferred < text.size());
  std::vector<std::byte> all(told->transferred);
  ramie::read_exactly(from, all);
  EXPECT(found, readable(from) == 0);
}

TEST_CASE("a write of several steps that fails says how much was written, whatever it wrote to",
          "[conformance][files][net]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    auto ends = ramie::make_pipe();
    tells_what_was_written(
        found, clock, [&](auto text, auto until) { ends.writer.write_all(text, until); }, ends.reader);
    auto both = ramie::unix_stream::pair();
    tells_what_was_written(
        found, clock, [&](auto text, auto until) { both.first.write_all(text, until); }, both.second);
    tells_what_was_written(
        found, clock, [&](auto text, auto until) { ramie::write_all(both.second, text, until); }, both.first);
  });
  with_each_mechanism_and_without([](findings& found) {
    const auto no_file = account_of([] { ramie::file().write_all("x"); });
    EXPECT(found, no_file.has_value(), no_file->why == std::errc::bad_file_descriptor, no_file->transferred == 0);
    const auto no_end = account_of([] { ramie::file().append("x"); });
    EXPECT(found, no_end.has_value(), no_end->why == std::errc::bad_file_descriptor, no_end->transferred == 0);
    const auto no_pipe = account_of([] { ramie::pipe_writer().write_all("x"); });
    EXPECT(found, no_pipe.has_value(), no_pipe->why == std::errc::bad_file_descriptor, no_pipe->transferred == 0);
    const auto no_socket = account_of([] { ramie::unix_stream().write_all("x"); });
    EXPECT(found, no_socket.has_value(), no_socket->why == std::errc::bad_file_descriptor, no_socket->transferred == 0);
  });
}

TEST_CASE("a read to the end that fails says how much was read", "[conformance][files]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    auto ends = ramie::make_pipe();
    ends.writer.write_all("abc");
    const auto told = account_when_late(
        clock, [&](deadline until) { (void)ends.reader.read_all(until); },
        [&] { test::yield_until([&] { return readable(ends.reader) == 0; }); });
    EXPECT(found, told.has_value(), told->why == std::errc::timed_out, told->transferred == 3);
    const auto none = account_of([] { (void)ramie::file().read_all_bytes(); });
    EXPECT(found, none.has_value(), none->why == std::errc::bad_file_descriptor, none->transferred == 0);
  });
}

TEST_CASE("a text is written to a socket as its bytes are", "[conformance][net]") {
  with_each_mechanism_and_without([](findings& found) {
    auto both = ramie::unix_stream::pair();
    std::error_code ec;
    both.first.write_all("one, ");
    EXPECT(found, both.first.write_all(std::string("two, "), ec) == 5, !ec);
    auto halves = std::move(both.first).split();
    halves.writer.write_all("three");
    halves.writer.shutdown();
    EXPECT(found, ramie::read_to_end(both.second, 100) == "one, two, three");
  });
}

}  // namespace conformance_accounts
