// SPDX-License-Identifier: BSL-1.0
// Connections that fail, end early, or are not waited for any longer: TCP and unix alike.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <type_traits>
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
using test::bytes;
using test::error_of;
using test::findings;
using test::on_each_io;
using test::room;

template <class F>
void over_each_kind(F f) {
  on_each_io([&](findings& found) {
    auto [near, far] = test::tcp_pair();
    f(found, near, far);
    auto [left, right] = unix_stream::pair();
    f(found, left, right);
  });
}

// What a read of one byte ends with.
template <class Stream>
std::error_code read_error(Stream& from, deadline until = {}) {
  std::string byte(1, '\0');
  std::error_code ec;
  (void)from.read_some(room(byte), ec, until);
  return ec;
}

// Writes as much as the buffers hold, and then waits.
template <class Stream>
std::error_code fill(Stream& to, deadline until = {}) {
  const std::string much(1 << 20, 'x');
  std::error_code ec;
  for (int i = 0; i < 64 && !ec; ++i) (void)to.write_all(bytes(much), ec, until);
  return ec;
}

// An address at which nobody answers: a listener whose backlog is full.
class silent_host {
 public:
  silent_host()
      : listener_(tcp_listener::bind(address::ipv4_loopback(0), {.backlog = 0})),
        first_(tcp_stream::connect(listener_.local_address())) {}
  [[nodiscard]] address where() const { return listener_.local_address(); }
  // The one that fills it.
  void make_room() { (void)listener_.accept(); }

 private:
  tcp_listener listener_;
  tcp_stream first_;
};

TEST_CASE("a connection that nobody listens for is refused", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    const auto where = listener.local_address();
    listener.close();
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

TEST_CASE("close ends what others wait for on that socket", "[conformance][net]") {
  over_each_kind([](findings& found, auto& near, auto& far) {
    ramie::nursery n;
    std::atomic<int> ended{0};
    const auto expect_end = [&](std::error_code ec) {
      EXPECT(found, ec == std::errc::bad_file_descriptor);
      ++ended;
    };
    for (int i = 0; i < 3; ++i) n.spawn([&] { expect_end(read_error(near)); });
    n.spawn([&] { expect_end(fill(near)); });
    wait_all_blocked();
    EXPECT(found, ended == 0);
    near.close();
    n.join();
    EXPECT(found, ended == 4, !near.is_open());
    (void)far;
  });
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] { EXPECT(found, error_of([&] { (void)listener.accept(); }) == std::errc::bad_file_descriptor); });
    }
    wait_all_blocked();
    listener.close();
    n.join();
  });
}

TEST_CASE("a fiber that is cancelled while it waits for a connection takes nothing from it", "[conformance][net]") {
  over_each_kind([](findings& found, auto& near, auto& far) {
    std::atomic<int> cancelled{0};
    const auto until_cancelled = [&](auto f) {
      try {
        f();
      } catch (const ramie::cancelled&) {
        ++cancelled;
        throw;
      }
      found.expect(false);
    };
    {
      ramie::nursery n;
      std::string byte(1, '\0');
      n.spawn([&] { until_cancelled([&] { (void)near.read_some(room(byte)); }); });
      n.spawn([&] { until_cancelled([&] { far.read_exactly(room(byte)); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 2);
    near.write_all(bytes("a"));
    far.write_all(bytes("b"));
    EXPECT(found, test::take(far, 1) == "a", test::take(near, 1) == "b");
    near.write_all(bytes("first"));
    {
      ramie::nursery n;
      n.spawn([&] { until_cancelled([&] { (void)fill(near); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 3);
    EXPECT(found, test::take(far, 5) == "first");
  });
}

TEST_CASE("a fiber that is cancelled while it accepts or connects leaves nothing behind", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    silent_host silent;
    std::atomic<int> cancelled{0}, connected{0};
    {
      ramie::nursery n;
      const auto until_cancelled = [&](auto f) {
        try {
          f();
          ++connected;
        } catch (const ramie::cancelled&) {
          ++cancelled;
          throw;
        }
      };
      n.spawn([&] { until_cancelled([&] { (void)listener.accept(); }); });
      n.spawn([&] { until_cancelled([&] { (void)tcp_stream::connect(silent.where()); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 2, connected == 0);
    auto near = tcp_stream::connect(listener.local_address());
    auto far = listener.accept();
    near.write_all(bytes("still there"));
    EXPECT(found, test::take(far, 11) == "still there");
  });
}

TEST_CASE("every operation of a cancelled fiber throws, also one that need not wait", "[conformance][net]") {
  over_each_kind([](findings& found, auto& near, auto& far) {
    far.write_all(bytes("there"));
    int thrown = 0;
    std::string text(5, '\0');
    std::error_code ec;
    const auto expect_thrown = [&](auto f) { thrown += !ramie::with_timeout(0s, f); };
    expect_thrown([&] { (void)near.read_some(room(text)); });
    expect_thrown([&] { (void)near.read_some(room(text), ec); });
    expect_thrown([&] { (void)near.read_some(std::span<std::byte>(), ec); });
    expect_thrown([&] { (void)near.write_some(bytes("x")); });
    expect_thrown([&] { near.write_all(std::span<const std::byte>()); });
    EXPECT(found, thrown == 5);
    EXPECT(found, test::take(near, 5) == "there");
    near.close();
    std::decay_t<decltype(near)> never;
    for (auto* const s : {&near, &never}) {
      expect_thrown([&] { (void)s->read_some(room(text), ec); });
      expect_thrown([&] { (void)s->write_all(bytes("x"), ec); });
    }
    EXPECT(found, thrown == 9);
  });
  on_each_io([](findings& found) {
    int thrown = 0;
    std::error_code ec;
    std::string text(5, '\0');
    const auto expect_thrown = [&](auto f) { thrown += !ramie::with_timeout(0s, f); };
    tcp_listener no_listener;
    ramie::unix_datagram no_datagrams;
    const auto local = address::unix_abstract("ramie-nobody-listens-here");
    expect_thrown([&] { (void)no_listener.accept(ec); });
    expect_thrown([&] { (void)no_datagrams.receive(room(text), ec); });
    expect_thrown([&] { (void)no_datagrams.send_to(bytes("x"), local, ec); });
    expect_thrown([&] { (void)unix_stream::connect(local, ec); });
    // To none of which a connection can be begun.
    const std::vector nowhere{address::parse("224.0.0.1:1"), address::parse("224.0.0.1:2")};
    expect_thrown([&] { (void)ramie::connect(nowhere, ec); });
    expect_thrown([&] { (void)ramie::resolve(std::string_view("a\0b", 3), 80, ec); });
    EXPECT(found, thrown == 6);
  });
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

TEST_CASE("what comes too late is timed_out, and what is there counts although it is late", "[conformance][net]") {
  over_each_kind([](findings& found, auto& near, auto& far) {
    EXPECT(found, read_error(near, deadline::after(1ms)) == std::errc::timed_out);
    EXPECT(found, error_of([&] {
                    std::string text(1, '\0');
                    near.read_exactly(room(text), deadline::after(1ms));
                  }) == std::errc::timed_out);
    EXPECT(found, fill(near, deadline::after(5ms)) == std::errc::timed_out);
    if (test::whimsical) return;  // what is there may not be at first
    far.write_all(bytes("ab"));
    std::string one(1, '\0');
    EXPECT(found, near.read_some(room(one)) == 1);
    EXPECT(found, near.read_some(room(one), deadline(ramie::now() - 1s)) == 1, one == "b");
  });
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    std::error_code ec;
    EXPECT(found, !listener.accept(ec, deadline::after(1ms)).is_open(), ec == std::errc::timed_out);
    silent_host silent;
    found.expect(!tcp_stream::connect(silent.where(), ec, deadline::after(1ms)).is_open());
    EXPECT(found, ec == std::errc::timed_out);
    EXPECT(found,
           error_of([&] { (void)tcp_stream::connect(silent.where(), deadline::after(1ms)); }) == std::errc::timed_out);
  });
}

TEST_CASE("deadlines of sockets go by the runtime's clock", "[conformance][net][clock]") {
  test::with_each_io([](ramie::options o) {
    ramie::manual_clock clock;
    o.clock = &clock;
    findings found;
    ramie::run(o, [&] {
      auto [near, far] = test::tcp_pair();
      std::atomic<bool> ended{false};
      ramie::nursery n;
      n.spawn([&, &in = near] {
        EXPECT(found, read_error(in, deadline::after(1h)) == std::errc::timed_out);
        ended = true;
      });
      wait_all_blocked();
      clock.advance(59min);
      wait_all_blocked();
      found.expect(!ended);
      clock.advance(1min);
      n.join();
    });
    CHECK(found.wrong() == "");
  });
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
  over_each_kind([](findings& found, auto& near, auto& far) {
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
