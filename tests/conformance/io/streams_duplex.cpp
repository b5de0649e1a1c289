// SPDX-License-Identifier: BSL-1.0
// duplex: a connection in memory. Every byte once and in order, back-pressure, and ends that close.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/seeds.hpp>
#include <support/streams.hpp>
#include <support/test.hpp>

namespace conformance_streams_duplex {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::duplex_end;
using ramie::make_duplex;
using ramie::nursery;
using ramie::write_all;
using test::as_fiber;
using test::as_thread_and_fiber;
using test::dice;
using test::fate;
using test::findings;
using test::let_wait;
using test::writable;

static_assert(ramie::reader<duplex_end> && ramie::writer<duplex_end>);
static_assert(std::is_nothrow_move_constructible_v<duplex_end> && !std::is_copy_constructible_v<duplex_end>);

std::string read_up_to(duplex_end& from, std::size_t n) {
  std::string text(n, 0);
  text.resize(from.read_some(writable(text)));
  return text;
}
std::error_code error_of_read(duplex_end& from, deadline until = {}) {
  std::error_code ec;
  std::byte one;
  (void)from.read_some({&one, 1}, ec, until);
  return ec;
}
std::error_code error_of_write(duplex_end& to, deadline until = {}) {
  std::error_code ec;
  (void)to.write_some(ramie::bytes_of("x"), ec, until);
  return ec;
}

TEST_CASE("what goes in at one end of a duplex comes out at the other", "[conformance][streams][duplex]") {
  as_thread_and_fiber([](findings& found) {
    auto [a, b] = make_duplex(8);
    EXPECT(found, a.write_some(ramie::bytes_of("0123456789")) == 8);  // as much as fits
    EXPECT(found, b.available() == 8, a.available() == 0);
    EXPECT(found, b.write_some(ramie::bytes_of("back")) == 4);
    EXPECT(found, read_up_to(b, 5) == "01234", read_up_to(a, 100) == "back");
    EXPECT(found, a.write_some(ramie::bytes_of("abc")) == 3);
    EXPECT(found, read_up_to(b, 100) == "567abc");  // round the corner
    EXPECT(found, b.read_some({}) == 0, a.write_some({}) == 0);
  });
  CHECK_THROWS_AS(make_duplex(0), ramie::usage_error);
}

TEST_CASE("who shuts a duplex for writing is read to the end, and can still read", "[conformance][streams][duplex]") {
  as_thread_and_fiber([](findings& found) {
    auto [a, b] = make_duplex();
    write_all(a, "last words");
    a.shutdown(ramie::shutdown_part::write);
    EXPECT(found, error_of_write(a) == std::errc::broken_pipe);
    EXPECT(found, ramie::read_to_end(b, 100) == "last words", read_up_to(b, 1).empty());
    write_all(b, "answer");
    b.close();
    EXPECT(found, ramie::read_to_end(a, 100) == "answer", a.is_open(), !b.is_open());
    a.close();
    std::error_code ec;
    a.shutdown(ramie::shutdown_part::write, ec);
    EXPECT(found, ec == std::errc::bad_file_descriptor);
    EXPECT(found, error_of_write(a) == std::errc::bad_file_descriptor);
    EXPECT(found, error_of_read(a) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("who shuts a duplex for reading is at its end, and can still write", "[conformance][streams][duplex]") {
  as_thread_and_fiber([](findings& found) {
    auto [a, b] = make_duplex();
    write_all(b, "dropped");
    a.shutdown(ramie::shutdown_part::read);
    a.shutdown(ramie::shutdown_part::read);
    EXPECT(found, a.is_open(), a.available() == 0, read_up_to(a, 10).empty());
    EXPECT(found, error_of_write(b) == std::errc::broken_pipe);
    write_all(a, "answer");
    a.shutdown(ramie::shutdown_part::both);
    EXPECT(found, ramie::read_to_end(b, 100) == "answer", error_of_write(a) == std::errc::broken_pipe, a.is_open());
    a.close();
    EXPECT(found, error_of_read(a) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a duplex end that was moved from refuses everything", "[conformance][streams][duplex]") {
  as_thread_and_fiber([](findings& found) {
    auto [a, b] = make_duplex();
    const duplex_end to = std::move(a);
    EXPECT(found, !a.is_open(), a.available() == 0);
    EXPECT(found, error_of_read(a) == std::errc::bad_file_descriptor);
    EXPECT(found, error_of_write(a) == std::errc::bad_file_descriptor);
    try {
      a.shutdown(ramie::shutdown_part::write);
      found.expect(false);
    } catch (const std::system_error& e) {
      EXPECT(found, e.code() == std::errc::bad_file_descriptor, e.code().category() == std::system_category());
      EXPECT(found, std::string(e.what()).starts_with("ramie: duplex_end::shutdown: "));
    }
  });
}

TEST_CASE("a duplex whose other end is closed or gone can't be written", "[conformance][streams][duplex]") {
  as_thread_and_fiber([](findings& found) {
    auto [a, b] = make_duplex();
    write_all(b, "kept");
    { const duplex_end gone = std::move(b); }
    EXPECT(found, error_of_write(a) == std::errc::broken_pipe);
    EXPECT(found, ramie::read_to_end(a, 100) == "kept");
    bool named = false;
    try {
      write_all(a, "x");
    } catch (const std::system_error& e) {
      named = e.code() == std::errc::broken_pipe;
    }
    found.expect(named);
    auto [c, d] = make_duplex();
    a = std::move(c);                           // closes what it was
    EXPECT(found, !c.is_open(), a.is_open());   // NOLINT: moved from
    write_all(d, "new");
    EXPECT(found, read_up_to(a, 10) == "new");
  });
}

TEST_CASE("a full duplex makes the writer wait, an empty one the reader", "[conformance][streams][duplex]") {
  as_fiber([](findings& found, auto&) {
    auto [a, b] = make_duplex(4);
    fate wrote = fate::running, read = fate::running;
    nursery n;
    write_all(a, "1234");
    let_wait(n, wrote, [&, &to = a] { return to.write_some(ramie::bytes_of("5678")) == 2; });
    EXPECT(found, wrote == fate::running);
    EXPECT(found, read_up_to(b, 2) == "12", b.available() == 4);  // the writer's bytes are there already
    ramie::yield();
    EXPECT(found, wrote == fate::done, read_up_to(b, 9) == "3456");
    let_wait(n, read, [&, &from = b] { return read_up_to(from, 10) == "x"; });
    EXPECT(found, read == fate::running);
    write_all(a, "x");
    EXPECT(found, b.available() == 0);  // handed over
    n.join();
    EXPECT(found, read == fate::done);
  });
}

TEST_CASE("readers and writers of a duplex are served in the order they came", "[conformance][streams][duplex]") {
  as_fiber([](findings& found, auto&) {
    auto [a, b] = make_duplex(1);
    std::string first(3, ' '), got;
    {
      nursery n;
      for (const std::size_t who : {0u, 1u, 2u}) {
        n.spawn([&, &from = b, who] { first[who] = read_up_to(from, 1)[0]; });
        ramie::yield();
      }
      write_all(a, "abc");
      n.join();
      EXPECT(found, first == "abc");
    }
    write_all(a, "0");
    nursery n;
    for (const char c : {'x', 'y', 'z'}) {
      n.spawn([&, &to = a, c] { write_all(to, std::string(1, c)); });
      ramie::yield();
    }
    for (int i = 0; i < 4; ++i) got += read_up_to(b, 1);
    n.join();
    EXPECT(found, got == "0xyz");
  });
}

TEST_CASE("a duplex keeps deadlines, and who was served is not too late", "[conformance][streams][duplex]") {
  as_fiber([](findings& found, auto& clock) {
    auto [a, b] = make_duplex(1);
    EXPECT(found, error_of_read(b, deadline(ramie::now())) == std::errc::timed_out);
    write_all(a, "1");
    EXPECT(found, error_of_write(a, deadline(ramie::now())) == std::errc::timed_out);
    found.expect(!error_of_read(b, deadline(ramie::now())));  // it has come, but there is something
    fate late = fate::running, served = fate::running;
    nursery n;
    let_wait(n, late, [&, &from = b] { return error_of_read(from, deadline(1s)) != std::errc::timed_out; });
    clock.advance(2s);
    n.spawn([] {}).get();
    ramie::testing::wait_all_blocked();
    EXPECT(found, late == fate::failed);
    let_wait(n, served, [&, &from = b] { return !error_of_read(from, deadline(1s)); });
    write_all(a, "2");
    clock.advance(2s);
    n.join();
    EXPECT(found, served == fate::done);
  });
  auto [a, b] = make_duplex(1);
  CHECK(error_of_read(b, deadline(1ms)) == std::errc::timed_out);  // a plain thread
  write_all(a, "1");
  CHECK(error_of_write(a, deadline(1ms)) == std::errc::timed_out);
  CHECK(read_up_to(b, 9) == "1");
}

TEST_CASE("who is cancelled at a duplex has transferred nothing, who was served is not cancelled",
          "[conformance][streams][duplex][cancel]") {
  as_fiber([](findings& found, auto&) {
    auto [a, b] = make_duplex(1);
    fate reads = fate::running, writes = fate::running, served = fate::running;
    {
      nursery n;
      let_wait(n, reads, [&, &from = b] { return read_up_to(from, 1) == "1"; });
      n.cancel();
      n.join();
    }
    write_all(a, "1");
    {
      nursery n;
      let_wait(n, writes, [&, &to = a] { return to.write_some(ramie::bytes_of("2")) == 1; });
      n.cancel();
      n.join();
    }
    EXPECT(found, reads == fate::cut_short, writes == fate::cut_short, read_up_to(b, 9) == "1");
    nursery n;
    let_wait(n, served, [&, &from = b] { return read_up_to(from, 1) == "3"; });
    write_all(a, "3");
    n.cancel();
    n.join();
    EXPECT(found, served == fate::done, b.available() == 0);
  });
}

TEST_CASE("closing an end of a duplex ends all calls under way at both", "[conformance][streams][duplex]") {
  as_fiber([](findings& found, auto&) {
    for (const bool shut_first : {false, true}) {
      auto [a, b] = make_duplex(1);
      write_all(a, "1");
      write_all(b, "1");
      (void)read_up_to(b, 1);
      write_all(a, "2");  // both directions are full
      fate a_writes = fate::running, b_writes = fate::running, a_reads = fate::running;
      nursery n;
      const auto other = shut_first ? std::errc::broken_pipe : std::errc::bad_file_descriptor;
      let_wait(n, a_writes, [&, &to = a] { return error_of_write(to) == other; });
      let_wait(n, b_writes, [&, &to = b] { return error_of_write(to) == std::errc::broken_pipe; });
      if (shut_first) {
        a.shutdown(ramie::shutdown_part::write);
        ramie::yield();
        EXPECT(found, a_writes == fate::done, b_writes == fate::running);
      }
      a.close();
      n.join();
      EXPECT(found, a_writes == fate::done, b_writes == fate::done);
      EXPECT(found, read_up_to(b, 9) == "2", read_up_to(b, 9).empty());

      auto [c, d] = make_duplex(1);
      fate d_reads = fate::running;
      nursery m;
      let_wait(m, a_reads, [&, &from = c] { return error_of_read(from) == std::errc::bad_file_descriptor; });
      let_wait(m, d_reads, [&, &from = d] { return read_up_to(from, 1).empty(); });
      c.close();
      m.join();
      EXPECT(found, a_reads == fate::done, d_reads == fate::done);
    }
  });
}

TEST_CASE("who never has to wait at a duplex lets others have their turn", "[conformance][streams][duplex]") {
  as_fiber([](findings& found, auto&) {
    auto [a, b] = make_duplex();
    bool had_its_turn = false;
    nursery n;
    n.spawn([&] { had_its_turn = true; });
    for (int i = 0; i < 1'000 && !had_its_turn; ++i) {
      write_all(a, "x");
      (void)read_up_to(b, 1);
    }
    found.expect(had_its_turn);
    n.join();
  });
}

TEST_CASE("a duplex cuts transfers short by its seed, and the same way every time", "[conformance][streams][duplex]") {
  const auto sizes = [](std::uint64_t seed) {
    auto [a, b] = make_duplex({.capacity = 64, .short_seed = seed});
    std::vector<std::size_t> all;
    const std::string text(64, 'x');
    std::string into(64, 0);
    for (int i = 0; i < 50; ++i) {
      all.push_back(a.write_some(ramie::bytes_of(text)));
      all.push_back(b.read_some(writable(into)));
    }
    return all;
  };
  CHECK(sizes(7) == sizes(7));
  CHECK(sizes(7) != sizes(8));
  const auto whole = sizes(0), cut = sizes(7);
  CHECK(std::count(whole.begin(), whole.end(), 64u) == 100);
  CHECK(std::count(cut.begin(), cut.end(), 1u) > 3);
  CHECK(std::count(cut.begin(), cut.end(), 0u) == 0);
}

// Sends `text` through both directions at once, each in pieces, and compares.
void exchange(const std::string& there, const std::string& back, const ramie::duplex_options& how, std::uint64_t seed,
              findings& found) {
  auto ends = make_duplex(how);
  const auto send = [&found, seed](duplex_end& to, const std::string& text) {
    dice d(seed);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n =
          to.write_some(ramie::bytes_of(text).subspan(at, std::min<std::size_t>(1 + d.below(90), text.size() - at)));
      EXPECT(found, n != 0);
      at += n;
    }
    to.shutdown(ramie::shutdown_part::write);
  };
  const auto receive = [&found, seed](duplex_end& from, const std::string& text) {
    dice d(seed + 1);
    std::string all;
    for (;;) {
      const std::string some = read_up_to(from, 1 + d.below(90));
      if (some.empty()) break;
      all += some;
    }
    EXPECT(found, all == text);
  };
  std::thread outside([&] { receive(ends.first, back); });
  nursery n;
  n.spawn([&] { send(ends.first, there); });
  n.spawn([&] { receive(ends.second, there); });
  n.spawn([&] { send(ends.second, back); });
  n.join();
  outside.join();
}

test::random_test exchanges("exchanges over a duplex");
TEST_CASE("both directions of a duplex carry random pieces whole, among fibers and threads, in chaos",
          "[conformance][streams][duplex]") {
  exchanges.for_each_seed(test::scaled(6, 2), 100, [](const test::setting& s) {
    INFO(s);
    dice d(s.seed);
    const std::string there = test::random_text(d, d.below(5'000)), back = test::random_text(d, d.below(5'000));
    const ramie::duplex_options how{1 + d.below(100), d.one_in(2) ? s.seed : 0};
    findings found;
    ramie::run(s.options(), [&] { exchange(there, back, how, s.seed, found); });
    CHECK(found.wrong() == "");
  });
}

// Many writers and readers at one pipe: each byte says who wrote it, each writer's bytes come in order.
TEST_CASE("many fibers and threads at one duplex: every byte is counted once", "[conformance][streams][duplex]") {
  const int each = test::scaled(3'000, 200);
  test::for_all_workers([each](unsigned workers) {
    constexpr int fibers = 12, threads = 2, parties = fibers + threads, writers = parties / 2;
    auto ends = make_duplex({.capacity = 16, .short_seed = workers});
    std::vector<std::atomic<long>> written(writers), read(writers);
    std::atomic<int> still_writing{writers};
    test::together(workers, fibers, threads, [&](int who) {
      if (who % 2 == 0) {
        const std::string mine(5, static_cast<char>(who / 2));
        for (int i = 0; i < each; ++i) {
          written[static_cast<std::size_t>(who) / 2] += static_cast<long>(ends.first.write_some(ramie::bytes_of(mine)));
        }
        if (still_writing.fetch_sub(1) == 1) ends.first.shutdown(ramie::shutdown_part::write);
        return;
      }
      for (std::string some = read_up_to(ends.second, 7); !some.empty(); some = read_up_to(ends.second, 7)) {
        for (const char c : some) ++read[static_cast<std::size_t>(c)];
      }
    });
    long all = 0;
    for (std::size_t w = 0; w < writers; ++w) {
      CHECK(written[w] == read[w]);
      all += read[w];
    }
    CHECK(all >= writers * each);
  });
}

TEST_CASE("no byte of a duplex is lost or doubled while its parties are cancelled and late",
          "[conformance][streams][duplex][cancel]") {
  const int rounds = test::scaled(200, 20);
  for (const bool chaos : {false, true}) {
    test::for_all_workers([rounds, chaos](unsigned workers) {
      std::atomic<long> written{0}, read{0};
      test::setting s{workers, workers, chaos};
      long left = -1;
      ramie::run(s.options(), [&] {
        auto ends = make_duplex(3);
        for (int i = 0; i < rounds; ++i) {
          nursery n;
          for (int k = 0; k < 4; ++k) {
            n.spawn([&, k] {
              std::error_code ec;
              for (int times = 0; times < 4; ++times) {
                const auto until = k == 0 ? deadline(ramie::now()) : deadline();
                written += static_cast<long>(ends.first.write_some(ramie::bytes_of("xx"), ec, until));
              }
            });
            n.spawn([&] {
              std::string into(3, 0);
              std::error_code ec;
              for (int times = 0; times < 3; ++times) {
                read += static_cast<long>(ends.second.read_some(writable(into), ec));
              }
            });
          }
          if (i % 3 != 0) ramie::yield();
          n.cancel();
          n.join();
        }
        left = static_cast<long>(ends.second.available());
      });
      CHECK(written == read + left);
      CHECK(written > 0);
    });
  }
}

TEST_CASE("in every schedule a duplex that is closed leaves nobody waiting", "[conformance][streams][duplex]") {
  ramie::testing::explore_options o;
  o.schedules = static_cast<unsigned>(test::scaled(300, 60));
  CHECK_NOTHROW(ramie::testing::explore(o, [] {
    auto ends = make_duplex(2);
    nursery n;
    std::string got;
    n.spawn([&] {
      std::error_code ec;
      write_all(ends.first, "abcdef", ec);
      ends.first.close();
    });
    n.spawn([&] { got += read_up_to(ends.second, 3); });
    n.spawn([&] {
      std::string into;
      std::error_code ec;
      ramie::read_to_end(ends.second, into, 100, ec);
    });
    n.spawn([&] {
      std::byte one;
      std::error_code ec;
      (void)ends.first.read_some({&one, 1}, ec);
      ramie::testing::check(ec == std::errc::bad_file_descriptor, "the end was closed");
    });
    n.join();
  }));
}

// ST15
TEST_CASE("a duplex end that another one is moved onto is closed", "[conformance][streams][duplex]") {
  auto [here, there] = make_duplex();
  auto [other, far] = make_duplex();
  here = std::move(other);
  const std::byte one[1] = {};
  std::error_code ec;
  (void)there.write_some(one, ec);
  CHECK(ec == std::errc::broken_pipe);
  CHECK(far.write_some(one, ec) == 1);
  CHECK(here.available() == 1);
}

}  // namespace conformance_streams_duplex
