// SPDX-License-Identifier: BSL-1.0
// Connections that work: TCP and unix alike.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/net.hpp>

namespace conformance_net_streams {

using namespace std::chrono_literals;
using ramie::address;
using ramie::tcp_listener;
using ramie::tcp_stream;
using ramie::unix_stream;
using namespace test;

static_assert(ramie::reader<tcp_stream> && ramie::writer<tcp_stream>);
static_assert(ramie::reader<unix_stream> && ramie::writer<unix_stream>);
static_assert(ramie::reader<ramie::tcp_reader> && ramie::writer<ramie::tcp_writer>);
static_assert(ramie::reader<ramie::unix_reader> && ramie::writer<ramie::unix_writer>);

TEST_CASE("what is written to a connection is read at its other end, in order", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    ramie::nursery n;
    n.spawn([&] { test::echo(far, 7); });
    for (const char* const text : {"a", "some words", "a longer text, in pieces of seven bytes"}) {
      near.write_all(bytes(text));
      EXPECT(found, take(near, std::string(text).size()) == text);
    }
    near.shutdown(ramie::shutdown_part::write);
    n.join();
    far.close();
    EXPECT(found, take_all(near) == "");
  });
}

TEST_CASE("a server serves many connections at once", "[conformance][net]") {
  const int many = test::scaled(100, 10);
  on_each_io([&](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    const auto where = listener.local_address();
    EXPECT(found, where.port() != 0);
    std::atomic<int> served{0};
    ramie::nursery all;
    all.spawn([&] {
      ramie::nursery connections;
      for (int i = 0; i < many; ++i) {
        connections.spawn([&, s = listener.accept()]() mutable {
          test::echo(s);
          ++served;
        });
      }
      connections.join();
    });
    for (int i = 0; i < many; ++i) {
      all.spawn([&, i] {
        auto s = tcp_stream::connect(where);
        for (int round = 0; round < 3; ++round) {
          const auto text = std::to_string(i * 1000 + round);
          s.write_all(bytes(text));
          EXPECT(found, take(s, text.size()) == text);
        }
      });
    }
    all.join();
    EXPECT(found, served == many);
  });
}

TEST_CASE("both sides know where the other one is", "[conformance][net]") {
  on_each_io([](findings& found) {
    for (const auto& where : {address::ipv4_loopback(0), address::ipv6_loopback(0)}) {
      std::error_code ec;
      auto listener = tcp_listener::bind(where, {}, ec);
      if (ec == std::errc::address_not_available || ec == std::errc::address_family_not_supported) continue;  // no IPv6
      auto near = tcp_stream::connect(listener.local_address());
      address peer;
      auto far = listener.accept(peer);
      EXPECT(found, peer == near.local_address(), peer == far.peer_address());
      EXPECT(found, near.peer_address() == listener.local_address(), peer.family() == where.family());
      auto second = tcp_stream::connect(listener.local_address());
      peer = {};
      (void)listener.accept(peer, ec);
      EXPECT(found, !ec, peer == second.local_address());
    }
  });
}

TEST_CASE("more than the buffers hold goes through, in small pieces", "[conformance][net]") {
  const auto all = test::pattern(static_cast<std::size_t>(test::scaled(600'000, 200'000)));
  over_each_connection([&](findings& found, auto& near, auto& far) {
    near.set_send_buffer_size(20'000);
    far.set_receive_buffer_size(60'000);  // less than a segment of the loopback, and TCP waits for its timers
    EXPECT(found, near.send_buffer_size() >= 20'000, far.receive_buffer_size() >= 60'000);
    ramie::nursery n;
    n.spawn([&] {
      near.write_all(bytes(all));
      near.shutdown(ramie::shutdown_part::write);
    });
    EXPECT(found, take_all(far, 777) == all);
    n.join();
  });
}

TEST_CASE("several pieces of memory are written and read as one", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    const std::string a = "one", b, c = "two", d = "three";
    const std::array from{bytes(a), bytes(b), bytes(c), bytes(d)};
    EXPECT(found, near.write_some(ramie::const_buffers(from)) == 11);
    std::string x(2, ' '), y, z(9, ' ');
    const std::array into{room(x), room(y), room(z)};
    far.read_exactly(ramie::mutable_buffers(into));
    EXPECT(found, x == "on", z == "etwothree");

    near.write_all(ramie::const_buffers(from));
    EXPECT(found, far.read_some(ramie::mutable_buffers(into).first(2)) == 2, x == "on");
    EXPECT(found, take(far, 9) == "etwothree");
    EXPECT(found, near.write_some(ramie::const_buffers()) == 0);
    EXPECT(found, far.read_some(ramie::mutable_buffers(into).subspan(1, 1)) == 0);
  });
}

TEST_CASE("more pieces than one system call takes are written and read all the same", "[conformance][net]") {
  const auto all = test::pattern(static_cast<std::size_t>(test::scaled(60'000, 20'000)));
  over_each_connection([&](findings& found, auto& near, auto& far) {
    std::vector<std::span<const std::byte>> from;
    std::vector<std::span<std::byte>> into;
    std::string got(all.size(), '\0');
    for (std::size_t at = 0, size = 0; at < all.size(); at += size) {  // of all sizes, some empty
      size = std::min(all.size() - at, from.size() % 30);
      from.push_back(bytes(all).subspan(at, size));
      into.push_back(room(got).last(at + size).first(size));  // other sizes at the other end
    }
    std::reverse(into.begin(), into.end());
    EXPECT(found, from.size() > 1024);
    near.set_send_buffer_size(4096);
    ramie::nursery n;
    n.spawn([&] { near.write_all(ramie::const_buffers(from)); });
    far.read_exactly(ramie::mutable_buffers(into));
    n.join();
    EXPECT(found, got == all);
  });
}

TEST_CASE("without room or bytes nothing is read or written, and nobody waits", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto&) {
    EXPECT(found, near.read_some(std::span<std::byte>()) == 0);
    EXPECT(found, near.write_some(std::span<const std::byte>()) == 0);
    near.read_exactly(std::span<std::byte>());
    near.read_exactly(ramie::mutable_buffers());
    near.write_all(std::span<const std::byte>());
    near.close();
    std::error_code ec;
    EXPECT(found, near.read_some(std::span<std::byte>(), ec) == 0, ec == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("who shuts writing down can still read", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    near.write_all(bytes("question"));
    near.shutdown(ramie::shutdown_part::write);
    EXPECT(found, take_all(far) == "question");
    far.write_all(bytes("answer"));
    far.close();
    EXPECT(found, take_all(near) == "answer");
    EXPECT(found, near.read_some(std::span<std::byte>()) == 0);
  });
}

TEST_CASE("read_exactly fails at the end of the stream, and tells how much has come", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    ramie::nursery n;
    n.spawn([&] {
      for (const char* const piece : {"ab", "cd", "ef", "g"}) {
        near.write_all(bytes(piece));
        ramie::yield();
      }
      near.shutdown(ramie::shutdown_part::write);
    });
    EXPECT(found, take(far, 6) == "abcdef");
    std::error_code ec;
    std::string text(6, '\0');
    EXPECT(found, far.read_exactly(room(text), ec) == 1, ec == ramie::stream_errc::end_of_stream, text[0] == 'g');
    EXPECT(found, far.read_exactly(std::span<std::byte>(), ec) == 0, !ec);
    EXPECT(found, error_of([&, &in = far] { in.read_exactly(room(text)); }) == ramie::stream_errc::end_of_stream);
    n.join();
    far.write_all(bytes("four"));
    far.shutdown(ramie::shutdown_part::write);
    std::string first(3, '\0'), empty, second(3, '\0');
    const std::array pieces{room(empty), room(first), room(empty), room(second)};
    try {
      near.read_exactly(ramie::mutable_buffers(pieces));
      found.expect(false);
    } catch (const ramie::transfer_error& e) {
      EXPECT(found, e.transferred() == 4, e.code() == ramie::stream_errc::end_of_stream);
      EXPECT(found, first == "fou", second[0] == 'r');
      EXPECT(found, std::string(e.what()).find("read_exactly") != std::string::npos);
    }
    EXPECT(found, near.read_exactly(ramie::mutable_buffers(pieces), ec) == 0, ec == ramie::stream_errc::end_of_stream);
    near.read_exactly(ramie::mutable_buffers(pieces).first(1));
  });
}

TEST_CASE("the halves of a connection are used by two fibers, and the writer's end is the stream's",
          "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    const auto all = test::pattern(30'000);
    const int fd = near.native_handle();
    auto halves = std::move(near).split();
    EXPECT(found, !near.is_open(), near.native_handle() == -1);
    EXPECT(found, halves.reader.native_handle() == fd, halves.writer.native_handle() == fd);
    ramie::nursery n;
    n.spawn([&] { test::echo(far); });
    n.spawn([&, out = std::move(halves.writer)]() mutable { out.write_all(bytes(all)); });
    EXPECT(found, take(halves.reader, all.size()) == all);
    n.join();  // echo has come to the end, because the writer is gone
    far.close();
    EXPECT(found, take_all(halves.reader) == "");
  });
}

TEST_CASE("a half that is asked to shut down or close does so for both", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    auto [in, out] = std::move(near).split();
    out.write_all(bytes("last words"));
    out.shutdown();
    EXPECT(found, take_all(far) == "last words");
    far.write_all(bytes("yes"));
    EXPECT(found, take(in, 3) == "yes");
    std::error_code ec;
    EXPECT(found, out.write_some(bytes("x"), ec) == 0, ec == std::errc::broken_pipe);
    in.close();
    found.expect(!out.is_open());
    EXPECT(found, out.write_some(bytes("x"), ec) == 0, ec == std::errc::bad_file_descriptor);
    out = {};
    found.expect(!out.is_open());
  });
}

TEST_CASE("one fiber reads while several write, and nothing is lost", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    ramie::nursery n;
    for (char c = 'a'; c < 'i'; ++c) {
      n.spawn([&near, c] {
        for (int k = 0; k < 50; ++k) near.write_all(bytes(std::string(10, c)));
      });
    }
    auto got = take(far, 4000);
    n.join();
    std::sort(got.begin(), got.end());
    for (char c = 'a'; c < 'i'; ++c)
      EXPECT(found, got.substr(500u * static_cast<unsigned>(c - 'a'), 500) == std::string(500, c));
  });
}

TEST_CASE("options of connections are what they were set to", "[conformance][net]") {
  auto ends = test::tcp_pair();
  auto& near = ends.first;
  for (const bool on : {true, false, true}) {
    near.set_no_delay(on);
    near.set_keep_alive(on);
    near.set_linger(on ? std::optional(3s) : std::nullopt);
    CHECK(near.no_delay() == on);
    CHECK(near.keep_alive() == on);
    CHECK(near.linger() == (on ? std::optional(3s) : std::nullopt));
  }
  near.set_linger(0s);
  CHECK(near.linger() == 0s);
  near.close();
  CHECK(test::error_of([&] { near.set_no_delay(true); }) == std::errc::bad_file_descriptor);
  CHECK(test::error_of([&] { (void)near.linger(); }) == std::errc::bad_file_descriptor);
  CHECK(test::error_of([&] { (void)near.local_address(); }) == std::errc::bad_file_descriptor);
}

TEST_CASE("plain threads use the sockets that fibers use", "[conformance][net]") {
  { auto warmed_up = test::tcp_pair(); }  // what threads wait by stays
  test::with_each_io([](const ramie::options& o) {
    findings found;
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    const auto where = listener.local_address();
    std::thread server([&] {
      for (int i = 0; i < 4; ++i) {
        auto s = listener.accept();
        test::echo(s, 3);
      }
    });
    const auto talk = [&] {
      auto s = tcp_stream::connect(where);
      s.write_all(bytes("from whomever"));
      s.shutdown(ramie::shutdown_part::write);
      EXPECT(found, take_all(s) == "from whomever");
    };
    std::thread client([&] {
      talk();
      talk();
    });
    ramie::run(o, [&] {
      talk();
      talk();
    });
    client.join();
    server.join();

    auto [near, far] = test::tcp_pair();
    std::atomic<bool> ended{false};
    std::thread reader([&, &in = near] {
      std::string text(1, '\0');
      std::error_code ec;
      EXPECT(found, in.read_some(room(text), ec) == 0, ec == std::errc::bad_file_descriptor);
      EXPECT(found, in.read_some(room(text), ec, ramie::deadline(1ms)) == 0);
      ended = true;
    });
    ramie::run(o, [&, &in = near] { in.close(); });
    reader.join();
    found.expect(ended);
    std::string text(1, '\0');
    std::error_code ec;
    EXPECT(found, far.read_some(room(text), ec) == 0, !ec);
    CHECK(found.wrong() == "");
  });
}

}  // namespace conformance_net_streams
