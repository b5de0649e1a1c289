// SPDX-License-Identifier: BSL-1.0
// What only unix sockets have: names of this machine, and who is at the other end.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/finally.hpp>
#include <support/net.hpp>

namespace conformance_net_unix {

using namespace std::chrono_literals;
using ramie::address;
using ramie::unix_datagram;
using ramie::unix_listener;
using ramie::unix_stream;
using ramie::testing::wait_all_blocked;
using test::bytes;
using test::findings;
using test::on_each_io;

std::string unique_name() {
  static std::atomic<int> count{0};
  return "ramie-test-" + std::to_string(::getpid()) + '-' + std::to_string(++count);
}

TEST_CASE("unix sockets listen at a path or at a name of their own", "[conformance][net]") {
  on_each_io([](findings& found) {
    const auto path = (std::filesystem::temp_directory_path() / unique_name()).string();
    const test::finally removed([&] { std::filesystem::remove(path); });
    for (const auto& where : {address::unix_path(path), address::unix_abstract(unique_name())}) {
      auto listener = unix_listener::bind(where);
      EXPECT(found, listener.local_address() == where);
      std::error_code ec;
      EXPECT(found, !unix_listener::bind(where, {}, ec).is_open(), ec == std::errc::address_in_use);
      EXPECT(found, !unix_listener::bind(where, ec = {}).is_open(), ec == std::errc::address_in_use);
      ramie::nursery n;
      n.spawn([&] {
        auto s = listener.accept();
        EXPECT(found, s.local_address() == where);
        test::echo(s);
      });
      auto s = unix_stream::connect(where, ec);
      EXPECT(found, !ec, s.peer_address() == where);
      auto [in, out] = std::move(s).split();
      out.write_all(bytes("through a file, or not"));
      out.shutdown(ec);
      found.expect(!ec);
      EXPECT(found, test::take_all(in) == "through a file, or not");
      n.join();
    }
    found.expect(std::filesystem::exists(path));
  });
}

TEST_CASE("a unix socket knows who is at the other end", "[conformance][net]") {
  const auto [left, right] = unix_stream::pair();
  for (const unix_stream* const s : {&left, &right}) {
    const auto who = s->peer_credentials();
    CHECK(who.process == ::getpid());
    CHECK(who.user == ::geteuid());
    CHECK(who.group == ::getegid());
  }
  CHECK(test::error_of([] { (void)unix_stream().peer_credentials(); }) == std::errc::bad_file_descriptor);
}

TEST_CASE("a unix socket without a name can send", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto to = unix_datagram::bind(address::unix_abstract(unique_name()));
    auto from = unix_datagram::unbound();
    from.send_to(bytes("anonymous"), to.local_address());
    std::string text(20, '\0');
    address sender = to.local_address();
    const auto got = to.receive_from(test::room(text), sender);
    EXPECT(found, got.size == 9, sender.path().empty());
    from.connect(to.local_address());
    from.send(bytes("again"));
    EXPECT(found, to.receive(test::room(text)).size == 5);
  });
}

TEST_CASE("who connects to a unix socket whose backlog is full waits for room", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = unix_listener::bind(address::unix_abstract(unique_name()), {.backlog = 0});
    const auto first = unix_stream::connect(listener.local_address());
    std::error_code ec;
    const auto until = ramie::deadline(std::chrono::milliseconds(2));
    found.expect(!unix_stream::connect(listener.local_address(), ec, until).is_open());
    EXPECT(found, ec == std::errc::timed_out);
    ramie::nursery n;
    n.spawn([&] { found.expect(unix_stream::connect(listener.local_address()).is_open()); });
    for (int i = 0; i < 2; ++i) (void)listener.accept();
    n.join();
  });
}

TEST_CASE("a unix listener tells where its peer is bound", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = unix_listener::bind(address::unix_abstract(unique_name()));
    const auto where = listener.local_address();
    const auto from = address::unix_abstract(unique_name());
    const auto of = [](const address& a) { return static_cast<const sockaddr*>(a.data()); };
    const int bound = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(found, ::bind(bound, of(from), static_cast<socklen_t>(from.size())) == 0);
    EXPECT(found, ::connect(bound, of(where), static_cast<socklen_t>(where.size())) == 0);
    address peer;
    (void)listener.accept(peer);
    EXPECT(found, peer == from, ::close(bound) == 0);
    const auto unbound = unix_stream::connect(where);
    std::error_code ec;
    EXPECT(found, listener.accept(peer, ec).is_open(), !ec, peer.path().empty());
  });
}

// Sends until there is no more room; returns how often.
int fill(unix_datagram& from, const address& to, findings& found) {
  std::error_code ec;
  int sent = 0;
  for (;; ++sent) {
    from.send_to(bytes("x"), to, ec, ramie::deadline(ramie::now() - 1s));
    if (ec) break;
  }
  EXPECT(found, ec == std::errc::timed_out, sent > 0);
  return sent;
}

TEST_CASE("who sends to a full unix socket without being connected tries again by the clock", "[conformance][net]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    auto to = unix_datagram::bind(address::unix_abstract(unique_name()));
    auto from = unix_datagram::unbound();
    int there = fill(from, to.local_address(), found);
    std::string text(1, '\0');
    std::atomic<bool> sent{false};
    ramie::nursery n;
    n.spawn([&] {
      from.send_to(bytes("y"), to.local_address());
      sent = true;
    });
    wait_all_blocked();
    (void)to.receive(test::room(text));  // nobody is told
    wait_all_blocked();
    found.expect(!sent);
    clock.advance(1ms);
    n.join();
    for (; there > 0; --there) (void)to.receive(test::room(text));
    EXPECT(found, text == "y");
  });
}

TEST_CASE("a deadline, a cancellation and close end a send_to that waits for room", "[conformance][net]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    std::atomic<int> cancelled{0};
    auto to = unix_datagram::bind(address::unix_abstract(unique_name()));
    auto from = unix_datagram::unbound(), another = unix_datagram::unbound();
    (void)fill(from, to.local_address(), found);
    const auto error_of_send = [&](unix_datagram& by, ramie::deadline until = {}) {
      std::error_code ec;
      by.send_to(bytes("y"), to.local_address(), ec, until);
      return ec;
    };
    ramie::nursery late, closed, enough;
    late.spawn([&] { EXPECT(found, error_of_send(from, ramie::deadline(1h)) == std::errc::timed_out); });
    closed.spawn([&] { EXPECT(found, error_of_send(another) == std::errc::bad_file_descriptor); });
    enough.spawn([&] { test::count_cancelled(cancelled, [&] { (void)error_of_send(from); }); });
    wait_all_blocked();
    another.close();
    closed.join();
    enough.cancel("enough");
    enough.join();
    clock.advance(1h);
    late.join();
    EXPECT(found, cancelled == 1);
  });
}

TEST_CASE("a plain thread that sends to a full unix socket waits for room", "[conformance][net]") {
  findings found;
  auto to = unix_datagram::bind(address::unix_abstract(unique_name()));
  auto from = unix_datagram::unbound();
  const int there = fill(from, to.local_address(), found);
  std::thread sender([&] {
    for (int i = 0; i < 3; ++i) from.send_to(bytes("y"), to.local_address());
  });
  std::string text(1, '\0');
  for (int i = 0; i < there + 3; ++i) (void)to.receive(test::room(text));
  sender.join();
  CHECK(text == "y");
  CHECK(found.wrong() == "");
}

}  // namespace conformance_net_unix
