// SPDX-License-Identifier: BSL-1.0
// Datagrams: UDP and unix alike.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/net.hpp>

namespace conformance_net_datagrams {

using namespace std::chrono_literals;
using ramie::address;
using ramie::deadline;
using ramie::udp_socket;
using ramie::unix_datagram;
using ramie::testing::wait_all_blocked;
using test::bytes;
using test::error_of;
using test::findings;
using test::on_each_io;
using test::room;

// f(found, one, other): bound, of each kind.
template <class F>
void over_each_kind(F f) {
  on_each_io([&](findings& found) {
    auto one = udp_socket::bind(address::ipv4_loopback(0)), other = udp_socket::bind(address::ipv4_loopback(0));
    f(found, one, other);
    const auto name = [](const char* of) {
      return address::unix_abstract("ramie-test-" + std::to_string(::getpid()) + of);
    };
    auto left = unix_datagram::bind(name("left")), right = unix_datagram::bind(name("right"));
    f(found, left, right);
  });
}

template <class Socket>
std::string next(Socket& from, std::size_t most = 100) {
  std::string text(most, '\0');
  text.resize(from.receive(room(text)).size);
  return text;
}

TEST_CASE("a datagram arrives as a whole, with where it came from", "[conformance][net]") {
  over_each_kind([](findings& found, auto& one, auto& other) {
    ramie::nursery n;
    std::string text(100, '\0');
    address from;
    n.spawn([&] {
      const auto got = other.receive_from(room(text), from);
      EXPECT(found, got.size == 5, got.full_size == 5, !got.truncated());
    });
    wait_all_blocked();
    one.send_to(bytes("hello"), other.local_address());
    n.join();
    EXPECT(found, text.substr(0, 5) == "hello", from == one.local_address());
    other.send_to(bytes("a"), from);
    other.send_to(bytes("bc"), from);
    EXPECT(found, next(one) == "a", next(one) == "bc");
  });
}

TEST_CASE("what a datagram has no room for is lost, and told", "[conformance][net]") {
  over_each_kind([](findings& found, auto& one, auto& other) {
    one.send_to(bytes("0123456789"), other.local_address());
    one.send_to(bytes("next"), other.local_address());
    std::string text(4, '\0');
    address from;
    const auto got = other.receive_from(room(text), from);
    EXPECT(found, text == "0123", got.size == 4, got.full_size == 10, got.truncated());
    EXPECT(found, from == one.local_address());
    EXPECT(found, next(other) == "next");
    one.send_to(bytes("0123456789"), other.local_address());
    std::error_code ec;
    const auto none = other.receive(std::span<std::byte>(), ec);
    EXPECT(found, !ec, none.size == 0, none.full_size == 10, none.truncated());
  });
}

TEST_CASE("a datagram may be empty", "[conformance][net]") {
  over_each_kind([](findings& found, auto& one, auto& other) {
    one.send_to({}, other.local_address());
    one.connect(other.local_address());
    one.send({});
    std::string text(4, '\0');
    for (int i = 0; i < 2; ++i) {
      const auto got = other.receive(room(text));
      EXPECT(found, got.size == 0, got.full_size == 0, !got.truncated());
    }
  });
}

TEST_CASE("a socket that is connected sends there, and hears from there only", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto one = udp_socket::bind(address::ipv4_loopback(0)), other = udp_socket::bind(address::ipv4_loopback(0));
    auto stranger = udp_socket::bind(address::ipv4_loopback(0));
    one.connect(other.local_address());
    EXPECT(found, one.peer_address() == other.local_address());
    stranger.send_to(bytes("not for you"), one.local_address());
    one.send(bytes("question"));
    EXPECT(found, next(other) == "question");
    other.send_to(bytes("answer"), one.local_address());
    EXPECT(found, next(one) == "answer");
    auto [left, right] = unix_datagram::pair();
    left.send(bytes("a"));
    left.send(bytes("bc"));
    EXPECT(found, next(right) == "a", next(right) == "bc");
  });
}

TEST_CASE("who sends to a unix socket that nobody reads waits for room", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto [left, right] = unix_datagram::pair();
    const int many = 700;  // more than any queue takes
    std::atomic<int> sent{0};
    ramie::nursery n;
    n.spawn([&, &to = left] {
      for (int i = 0; i < many; ++i, ++sent) to.send(bytes(std::to_string(i)));
    });
    wait_all_blocked();
    EXPECT(found, sent < many);
    for (int i = 0; i < many; ++i) EXPECT(found, next(right) == std::to_string(i));
    n.join();
  });
}

TEST_CASE("datagram sockets report what went wrong", "[conformance][net]") {
  over_each_kind([](findings& found, auto& one, auto& other) {
    std::error_code ec;
    std::string text(10, '\0');
    (void)one.receive(room(text), ec, deadline(1ms));
    EXPECT(found, ec == std::errc::timed_out);
    EXPECT(found, error_of([&] { (void)one.receive(room(text), deadline(1ms)); }) == std::errc::timed_out);
    EXPECT(found, error_of([&] { one.send(bytes("to whom")); }) != std::error_code());
    one.send_to(bytes("ok"), other.local_address(), ec);
    EXPECT(found, !ec, next(other) == "ok");
    one.send_to(bytes(std::string(1 << 20, 'x')), other.local_address(), ec);
    EXPECT(found, ec == std::errc::message_size);

    ramie::nursery n;
    n.spawn([&] {
      std::error_code closed;
      std::string byte(1, '\0');
      (void)one.receive(room(byte), closed);
      EXPECT(found, closed == std::errc::bad_file_descriptor);
    });
    wait_all_blocked();
    one.close();
    n.join();
    one.send_to(bytes("ok"), other.local_address(), ec);
    EXPECT(found, ec == std::errc::bad_file_descriptor);
    one.connect(other.local_address(), ec);
    EXPECT(found, ec == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a fiber that is cancelled while it waits for a datagram takes none", "[conformance][net]") {
  over_each_kind([](findings& found, auto& one, auto& other) {
    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)next(other); }));
    one.send_to(bytes("still there"), other.local_address());
    EXPECT(found, next(other) == "still there");
  });
}

TEST_CASE("broadcasting is allowed when asked for", "[conformance][net]") {
  auto s = udp_socket::bind(address::ipv4_loopback(0));
  CHECK_FALSE(s.broadcast());
  s.set_broadcast(true);
  CHECK(s.broadcast());
  s.set_broadcast(false);
  CHECK_FALSE(s.broadcast());
}

}  // namespace conformance_net_datagrams
