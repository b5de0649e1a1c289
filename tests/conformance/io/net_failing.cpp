// SPDX-License-Identifier: BSL-1.0
// Connections that fail or end early: TCP and unix alike.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/finally.hpp>
#include <support/net.hpp>

namespace conformance_net_failing {

using namespace std::chrono_literals;
using ramie::address;
using ramie::deadline;
using ramie::tcp_listener;
using ramie::tcp_stream;
using ramie::unix_listener;
using ramie::unix_stream;
using ramie::testing::wait_all_blocked;
using namespace test;

TEST_CASE("a connection that nobody listens for is refused", "[conformance][net]") {
  on_each_io([](findings& found) {
    const refusing_host nobody;
    const auto where = nobody.where();
    std::error_code ec;
    auto s = tcp_stream::connect(where, ec);
    EXPECT(found, ec == std::errc::connection_refused, !s.is_open());
    try {
      s = tcp_stream::connect(where);
      found.expect(false);
    } catch (const std::system_error& e) {
      EXPECT(found, e.code() == std::errc::connection_refused);
      EXPECT(found, std::string(e.what()).find("connect") != std::string::npos);
    }
    auto u = unix_stream::connect(address::unix_abstract("ramie-nobody-listens-here"), ec);
    EXPECT(found, ec == std::errc::connection_refused, !u.is_open());
    u = unix_stream::connect(address::unix_path("/no/such/place"), ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
  });
}

TEST_CASE("an address of the wrong kind, or in use, is refused", "[conformance][net]") {
  const auto ip = address::ipv4_loopback(0), local = address::unix_abstract("ramie-test");
  CHECK_THROWS_AS(tcp_listener::bind(local), ramie::usage_error);
  CHECK_THROWS_AS(tcp_stream::connect(local), ramie::usage_error);
  CHECK_THROWS_AS(ramie::udp_socket::bind(local), ramie::usage_error);
  CHECK_THROWS_AS(unix_listener::bind(ip), ramie::usage_error);
  CHECK_THROWS_AS(unix_stream::connect(ip), ramie::usage_error);
  CHECK_THROWS_AS(ramie::unix_datagram::bind(ip), ramie::usage_error);
  CHECK_THROWS_AS(tcp_listener::bind(address()), ramie::usage_error);

  const int before = test::open_descriptors();
  {
    const auto listener = tcp_listener::bind(ip);
    const auto where = listener.local_address();
    CHECK(error_of([&] { (void)tcp_listener::bind(where); }) == std::errc::address_in_use);
    std::error_code ec;
    CHECK_FALSE(tcp_listener::bind(where, {}, ec).is_open());
    CHECK(ec == std::errc::address_in_use);
    CHECK_FALSE(tcp_listener::bind(where, ec = {}).is_open());
    CHECK(ec == std::errc::address_in_use);
    const auto one = tcp_listener::bind(ip, {.reuse_port = true});
    const auto two = tcp_listener::bind(one.local_address(), {.reuse_port = true}, ec);
    CHECK_FALSE(ec);
    CHECK(two.local_address() == one.local_address());
  }
  CHECK(test::open_descriptors() == before);
}

TEST_CASE("errors of sockets name the function, and misuse says what to do", "[conformance][net]") {
  const auto told = [](auto f) -> std::string {
    try {
      f();
    } catch (const std::system_error& e) {
      return e.code().category() == std::system_category() ? e.what() : "another category";
    } catch (const std::logic_error& e) {  // usage_error, std::invalid_argument
      return e.what();
    }
    return "nothing";
  };
  const auto ip = address::ipv4_loopback(0), local = address::unix_abstract("ramie-nobody-listens-here");
  tcp_stream t;
  tcp_listener l;
  ramie::udp_socket d;
  std::byte one[1] = {};
  CHECK(told([&] { (void)t.read_some(one); }) == "ramie: stream_socket::read_some: Bad file descriptor");
  CHECK(told([&] { t.write_all(one); }) == "ramie: stream_socket::write_all: Bad file descriptor");
  CHECK(told([&] { (void)t.no_delay(); }) == "ramie: tcp_stream::no_delay: Bad file descriptor");
  CHECK(told([&] { (void)t.local_address(); }) == "ramie: socket_base::local_address: Bad file descriptor");
  CHECK(told([&] { (void)l.accept(); }) == "ramie: tcp_listener::accept: Bad file descriptor");
  CHECK(told([&] { d.send(one); }) == "ramie: datagram_socket::send: Bad file descriptor");
  CHECK(told([&] { (void)unix_stream::connect(local); }) == "ramie: unix_stream::connect: Connection refused");
  CHECK(told([&] { (void)tcp_stream::connect(local); }) ==
        "ramie: tcp_stream::connect: '@ramie-nobody-listens-here' is no internet address. Pass one like 127.0.0.1:80, or use "
        "the sockets of <ramie/unix.hpp>.");
  CHECK(told([&] { (void)unix_listener::bind(ip); }).starts_with("ramie: unix_listener::bind: '127.0.0.1:0' is no"));
  CHECK(told([] { (void)ramie::connect(std::vector<address>()); }) ==
        "ramie: connect: there is no address to connect to. Pass at least one.");
  CHECK(told([] { (void)address::parse("here"); }) ==
        "ramie: address::parse: 'here' is no address with a port. Write it like 127.0.0.1:80 or [::1]:80.");
}

TEST_CASE("a listener for IPv6 alone leaves its port to IPv4", "[conformance][net]") {
  std::error_code ec;
  const auto six = tcp_listener::bind(address::ipv6_any(0), {.ipv6_only = true}, ec);
  if (ec) LEFT_OUT("no IPv6 here: " << ec.message());
  const auto four = tcp_listener::bind(address::any(six.local_address().port()), {}, ec);
  CHECK_FALSE(ec);
  CHECK(four.is_open());
}

TEST_CASE("a socket that is not open refuses everything", "[conformance][net]") {
  on_each_io([](findings& found) {
    tcp_stream never;
    auto [near, far] = test::tcp_pair();
    const tcp_stream moved_to = std::move(near);
    far.close();
    far.close();
    for (tcp_stream* const s : {&never, &near, &far}) {
      EXPECT(found, !s->is_open(), s->native_handle() == -1);
      EXPECT(found, read_error(*s) == std::errc::bad_file_descriptor);
      EXPECT(found, error_of([&] { (void)s->write_some(bytes("x")); }) == std::errc::bad_file_descriptor);
      EXPECT(found, error_of([&] { s->shutdown(ramie::shutdown_part::both); }) == std::errc::bad_file_descriptor);
      std::error_code ec;
      s->shutdown(ramie::shutdown_part::both, ec);
      EXPECT(found, ec == std::errc::bad_file_descriptor);
      s->write_all(std::span<const std::byte>(), ec = {});
      EXPECT(found, ec == std::errc::bad_file_descriptor);
      EXPECT(found, error_of([&] { (void)s->peer_address(); }) == std::errc::bad_file_descriptor);
      s->close();
    }
    tcp_listener none;
    std::error_code ec;
    EXPECT(found, !none.accept(ec).is_open(), ec == std::errc::bad_file_descriptor);
    EXPECT(found, error_of([&] { (void)none.accept(); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("what does not wait has a form with an error_code as well", "[conformance][net]") {
  const auto refused = [](auto f) {
    std::error_code ec;
    f(ec);
    return ec == std::errc::bad_file_descriptor;
  };
  tcp_stream t;
  unix_stream u;
  ramie::udp_socket d;
  CHECK(refused([&](auto& ec) { CHECK(t.local_address(ec) == address()); }));
  CHECK(refused([&](auto& ec) { CHECK(t.peer_address(ec) == address()); }));
  CHECK(refused([&](auto& ec) { CHECK(d.peer_address(ec) == address()); }));
  CHECK(refused([&](auto& ec) { CHECK(t.send_buffer_size(ec) == 0); }));
  CHECK(refused([&](auto& ec) { CHECK(t.receive_buffer_size(ec) == 0); }));
  CHECK(refused([&](auto& ec) { t.set_send_buffer_size(1, ec); }));
  CHECK(refused([&](auto& ec) { t.set_receive_buffer_size(1, ec); }));
  CHECK(refused([&](auto& ec) { CHECK_FALSE(t.no_delay(ec)); }));
  CHECK(refused([&](auto& ec) { t.set_no_delay(true, ec); }));
  CHECK(refused([&](auto& ec) { CHECK_FALSE(t.keep_alive(ec)); }));
  CHECK(refused([&](auto& ec) { t.set_keep_alive(true, ec); }));
  CHECK(refused([&](auto& ec) { CHECK_FALSE(t.linger(ec)); }));
  CHECK(refused([&](auto& ec) { t.set_linger(0s, ec); }));
  CHECK(refused([&](auto& ec) { CHECK_FALSE(d.broadcast(ec)); }));
  CHECK(refused([&](auto& ec) { d.set_broadcast(true, ec); }));
  CHECK(refused([&](auto& ec) { CHECK(u.peer_credentials(ec).process == 0); }));

  std::error_code ec = std::make_error_code(std::errc::io_error);
  auto [left, right] = unix_stream::pair(ec);
  CHECK_FALSE(ec);
  CHECK(left.peer_credentials(ec).process == ::getpid());
  left.shutdown(ramie::shutdown_part::write, ec);
  CHECK_FALSE(ec);
  CHECK(test::take_all(right) == "");
  CHECK(ramie::unix_datagram::pair(ec).first.is_open());
  CHECK(ramie::unix_datagram::unbound(ec).is_open());
  d = ramie::udp_socket::bind(address::ipv4_loopback(0), ec);
  d.set_broadcast(true, ec);
  CHECK((d.broadcast(ec) && !ec));
  CHECK((d.local_address(ec).port() != 0 && !ec));
  auto [near, far] = test::tcp_pair();
  near.set_no_delay(false, ec);
  CHECK((!near.no_delay(ec) && !ec));
  near.set_keep_alive(true, ec);
  CHECK((near.keep_alive(ec) && !ec));
  near.set_linger(2s, ec);
  CHECK((near.linger(ec) == 2s && !ec));
  near.set_linger({}, ec);
  near.set_send_buffer_size(20'000, ec);
  near.set_receive_buffer_size(20'000, ec);
  CHECK((near.send_buffer_size(ec) >= 20'000 && near.receive_buffer_size(ec) >= 20'000 && !ec));
  CHECK((near.peer_address(ec) == far.local_address() && !ec));
}

TEST_CASE("a connection lingers no shorter than it is told", "[conformance][net]") {
  auto [near, far] = test::tcp_pair();
  CHECK_FALSE(near.linger());
  near.set_linger(2s);
  CHECK(near.linger() == 2s);
  near.set_linger(std::chrono::seconds(1LL << 32));  // zero would drop what was not sent
  CHECK(near.linger() > 24h);
  near.set_linger(-1s);
  CHECK(near.linger() == 0s);
  near.set_linger(std::nullopt);
  CHECK_FALSE(near.linger());
}

TEST_CASE("a connection that is reset is an error at the other end", "[conformance][net]") {
  on_each_io([](findings& found) {
    for (const bool waits : {false, true}) {
      auto [near, far] = test::tcp_pair();
      near.set_linger(0s);
      ramie::nursery n;
      std::error_code got;
      const auto read = [&, &out = far] { got = read_error(out); };
      if (waits) {
        n.spawn(read);
        wait_all_blocked();
      }
      near.close();
      if (!waits) read();
      n.join();
      EXPECT(found, got == std::errc::connection_reset);
      EXPECT(found, error_of([&, &out = far] { out.write_all(bytes("x")); }) == std::errc::broken_pipe);
    }
  });
}

TEST_CASE("writing to a peer that has closed is an error, and no signal", "[conformance][net]") {
  struct sigaction deadly {
  }, before{};
  deadly.sa_handler = SIG_DFL;  // it would end this program
  REQUIRE(::sigaction(SIGPIPE, &deadly, &before) == 0);
  const test::finally as_before([&before] { ::sigaction(SIGPIPE, &before, nullptr); });
  over_each_connection([](findings& found, auto& near, auto& far) {
    far.close();
    std::error_code ec;
    for (int i = 0; i < 1000 && !ec; ++i) near.write_all(bytes("x"), ec);
    EXPECT(found, ec == std::errc::broken_pipe || ec == std::errc::connection_reset);
    const std::array pieces{bytes("a"), bytes("b")};
    (void)near.write_some(ramie::const_buffers(pieces), ec);
    EXPECT(found, ec == std::errc::broken_pipe);
    EXPECT(found, error_of([&] { (void)near.write_some(bytes("x")); }) == std::errc::broken_pipe);
  });
}

// A process that connects, says a word, and then does nothing until it is killed.
class peer_process {
 public:
  explicit peer_process(const address& to) : id_(::fork()) {
    if (id_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const bool connected = ::connect(fd, static_cast<const sockaddr*>(to.data()), socklen_t(to.size())) == 0;
    if (!connected || ::send(fd, "hello", 5, 0) != 5) ::_exit(1);
    for (;;) ::pause();
  }
  ~peer_process() {
    kill();
    ::waitpid(id_, nullptr, 0);
  }
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;
  void kill() const { ::kill(id_, SIGKILL); }

 private:
  const pid_t id_;
};

TEST_CASE("a peer that is killed is the end of the stream, or a reset if it had not read everything",
          "[conformance][net]") {
  for (const bool unread : {false, true}) {
    test::with_each_io([&](const ramie::options& o) {
      findings found;
      auto listener = tcp_listener::bind(address::ipv4_loopback(0));
      const peer_process peer(listener.local_address());
      ramie::run(o, [&] {
        auto s = listener.accept();
        EXPECT(found, test::take(s, 5) == "hello");
        if (unread) s.write_all(bytes("not read"));
        std::error_code ec;
        ramie::nursery n;
        n.spawn([&] { ec = read_error(s); });
        wait_all_blocked();
        peer.kill();
        n.join();
        if (unread) EXPECT(found, ec == std::errc::connection_reset);
        if (!unread) found.expect(!ec);
      });
      CHECK(found.wrong() == "");
    });
  }
}

}  // namespace conformance_net_failing
