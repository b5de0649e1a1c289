// SPDX-License-Identifier: BSL-1.0
// Names, and connections to whichever of their addresses answers.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/held_calls.hpp>
#include <support/names.hpp>
#include <support/net.hpp>
#include <support/channel_observer.hpp>

namespace conformance_net_resolve {

using namespace std::chrono_literals;
using ramie::address;
using ramie::deadline;
using ramie::resolve;
using ramie::resolve_errc;
using ramie::tcp_listener;
using ramie::tcp_stream;
using ramie::testing::wait_all_blocked;
using test::error_of;
using test::findings;
using test::held_calls;
using test::known_name;
using test::on_each_io;
using addresses = std::vector<address>;
using test::refusing_host;
using test::silent_host;

TEST_CASE("a name is looked up, figures are not", "[conformance][net][resolve]") {
  const known_name two("two.test", {"::1", "127.0.0.1", "::1"});
  const auto both = [](findings& found) {
    const addresses expected{address::ipv6_loopback(80), address::ipv4_loopback(80)};
    EXPECT(found, resolve("two.test", 80) == expected);
    EXPECT(found, resolve("two.test", "80") == expected);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    EXPECT(found, resolve("two.test", 80, ec, deadline(1h)) == expected, !ec);
    EXPECT(found, resolve("two.test", "80", ec, deadline(1h)) == expected, !ec);
    EXPECT(found, resolve("127.0.0.1", 5) == addresses{address::ipv4_loopback(5)});
    EXPECT(found, resolve("::1", "5") == addresses{address::ipv6_loopback(5)});
  };
  on_each_io(both);
  test::as_thread_and_fiber(both);
  const known_name blocks("127.0.0.2", {}, EAI_FAIL);  // would be asked, if it were a name
  CHECK(resolve("127.0.0.2", 5).size() == 1);
}

TEST_CASE("a look-up that fails says why, in a category of its own", "[conformance][net][resolve]") {
  const known_name none("none.test", {}, EAI_NONAME), later("later.test", {}, EAI_AGAIN), empty("empty.test", {}),
      broken("broken.test", {}, EAI_SYSTEM), memory("memory.test", {}, EAI_MEMORY);
  test::as_thread_and_fiber([](findings& found) {
    try {
      (void)resolve("none.test", 80);
      found.expect(false);
    } catch (const std::system_error& e) {
      EXPECT(found, e.code() == resolve_errc::not_found, e.code().category() == ramie::resolve_category());
      EXPECT(found, std::string(e.what()).find("none.test") != std::string::npos);
      EXPECT(found, e.code().message() == ::gai_strerror(EAI_NONAME));
    }
    std::error_code ec;
    EXPECT(found, resolve("later.test", 80, ec).empty(), ec == resolve_errc::try_again);
    EXPECT(found, ec == std::errc::resource_unavailable_try_again);
    EXPECT(found, resolve("empty.test", 80, ec).empty(), ec == resolve_errc::not_found);
    EXPECT(found, resolve("broken.test", 80, ec).empty(), ec == std::errc::network_down);
    EXPECT(found, resolve("memory.test", 80, ec).empty(), ec == std::errc::not_enough_memory);
    EXPECT(found, resolve(std::string("a\0b", 3), 80, ec).empty(), ec == resolve_errc::not_found);
    EXPECT(found, resolve("::1", std::string("80\0x", 4), ec).empty(), ec == resolve_errc::no_service);
    EXPECT(found, !ramie::connect("none.test", 80, ec).is_open(), ec == resolve_errc::not_found);
    EXPECT(found, error_of([] { (void)ramie::connect("later.test", 80); }) == resolve_errc::try_again);
  });
}

TEST_CASE("a look-up that is cancelled or too late is left behind at once", "[conformance][net][resolve]") {
  for (const bool cancels : {true, false}) {
    test::with_each_io([&](ramie::options o) {
      ramie::manual_clock clock;
      o.clock = &clock;
      held_calls held;
      const known_name slow("slow.test", {"::1"}, 0, &held);
      findings found;
      std::atomic<int> cancelled{0};
      {
        ramie::runtime rt(o);
        rt.run([&] {
          ramie::nursery n;
          n.spawn([&] {
            try {
              std::error_code ec;
              found.expect(resolve("slow.test", 80, ec, deadline(1h)).empty());
              EXPECT(found, !cancels, ec == std::errc::timed_out);
            } catch (const ramie::cancelled&) {
              ++cancelled;
              throw;
            }
          });
          test::yield_until([&] { return held.inside() == 1; });
          if (cancels) {
            n.cancel("enough");
          } else {
            clock.advance(1h);
          }
          n.join();
          EXPECT(found, held.inside() == 1);
          held.let_go(1);
        });
      }
      CHECK(found.wrong() == "");
      CHECK(cancelled == (cancels ? 1 : 0));
    });
  }
}

TEST_CASE("connecting by name reaches whichever address answers", "[conformance][net][resolve]") {
  const known_name both("both.test", {"127.0.0.1", "::1"});
  on_each_io([](findings& found) {
    for (const auto& where : {address::ipv4_loopback(0), address::ipv6_loopback(0)}) {
      std::error_code ec;
      auto listener = tcp_listener::bind(where, {}, ec);
      if (ec) continue;  // no IPv6
      const auto port = listener.local_address().port();
      auto s = ramie::connect("both.test", port);
      EXPECT(found, s.peer_address() == where.with_port(port));
      auto served = listener.accept();
      served.write_all(test::bytes("hello"));
      EXPECT(found, test::take(s, 5) == "hello");
      EXPECT(found, ramie::connect("both.test", port, ec, deadline(1h)).is_open(), !ec);
      (void)listener.accept();
      listener.close();
      EXPECT(found, error_of([&] { (void)ramie::connect("both.test", port); }) == std::errc::connection_refused);
    }
  });
}

TEST_CASE("IPv6 is tried first", "[conformance][net][resolve]") {
  const known_name both("both.test", {"127.0.0.1", "::1"});
  std::error_code ec;
  auto six = tcp_listener::bind(address::ipv6_loopback(0), {.ipv6_only = true}, ec);
  if (ec) LEFT_OUT("no IPv6 here: " << ec.message());
  const auto four = tcp_listener::bind(address::ipv4_loopback(six.local_address().port()), {}, ec);
  if (ec) LEFT_OUT("somebody else has that port");
  // Time stands still: however slow the machine is, the first one has not been silent for 250 ms.
  test::on_each_io_by_clock([&](findings& found, ramie::manual_clock&) {
    const auto s = ramie::connect("both.test", six.local_address().port());
    EXPECT(found, s.peer_address() == six.local_address());
    (void)six.accept();
  });
}

TEST_CASE("an address that fails is followed by the next one at once", "[conformance][net][resolve]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    const refusing_host nobody, nobody_else;
    const auto s = ramie::connect(addresses{nobody.where(), nobody_else.where(), listener.local_address()});
    EXPECT(found, s.peer_address() == listener.local_address());
    const silent_host silent;
    ramie::nursery n;
    n.spawn([&] {
      const auto third = ramie::connect(addresses{silent.where(), nobody.where(), listener.local_address()});
      EXPECT(found, third.peer_address() == listener.local_address());
    });
    wait_all_blocked();
    clock.advance(250ms);  // for the second; the third needs no more, although the first is still under way
    n.join();
    std::error_code ec;
    found.expect(!ramie::connect(addresses{nobody.where(), nobody_else.where()}, ec).is_open());
    EXPECT(found, ec == std::errc::connection_refused);
    EXPECT(found, !ramie::connect(addresses{address::parse("[::ffff:127.0.0.1]:1"), nobody.where()}, ec).is_open(), ec);
  });
}

TEST_CASE("an address that does not answer for 250 ms is joined by the next one", "[conformance][net][resolve]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    const silent_host silent, another;
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    const auto began = ramie::now();
    std::atomic<bool> connected{false};
    ramie::nursery n;
    n.spawn([&] {
      const auto s = ramie::connect(addresses{silent.where(), another.where(), listener.local_address()});
      EXPECT(found, s.peer_address() == listener.local_address(), ramie::now() - began >= 500ms);
      connected = true;
    });
    while (!connected) {
      wait_all_blocked();
      clock.advance(10ms);
    }
    n.join();
  });
}

TEST_CASE("connecting to several addresses ends with its deadline, or when it is cancelled",
          "[conformance][net][resolve]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    std::atomic<int> cancelled{0};
    const silent_host silent, another;
    const addresses both{silent.where(), another.where()};
    {
      ramie::nursery n;
      n.spawn([&] {
        std::error_code ec;
        EXPECT(found, !ramie::connect(both, ec, deadline(1s)).is_open(), ec == std::errc::timed_out);
      });
      n.spawn([&] {
        EXPECT(found, error_of([&] { (void)ramie::connect(both, deadline(100ms)); }) == std::errc::timed_out);
      });
      for (int i = 0; i < 10; ++i) {
        wait_all_blocked();
        clock.advance(100ms);
      }
      n.join();
    }
    ramie::nursery n;
    n.spawn([&] { test::count_cancelled(cancelled, [&] { (void)ramie::connect(both); }); });
    wait_all_blocked();
    clock.advance(250ms);
    wait_all_blocked();
    n.cancel("enough");
    n.join();
    EXPECT(found, cancelled == 1);
  });
}

// A TCP socket of this process that is being connected, or -1.
int being_connected() {
  for (int fd = 0; fd < 256; ++fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool is_tcp = ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (is_tcp && info.tcpi_state == TCP_SYN_SENT) return fd;
  }
  return -1;
}

TEST_CASE("an attempt that has failed is forgotten, although there is a copy of its descriptor",
          "[conformance][net][resolve]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    const silent_host silent, another;
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    std::atomic<bool> ended{false};
    ramie::nursery n;
    n.spawn([&] {
      std::error_code ec;
      const auto s = ramie::connect(addresses{silent.where(), another.where(), listener.local_address()}, ec);
      address peer;
      EXPECT(found, !ec, !error_of([&] { peer = s.peer_address(); }), peer == listener.local_address());
      ended = true;
    });
    wait_all_blocked();
    const int first = being_connected();
    const int copy = ::fcntl(first, F_DUPFD_CLOEXEC, 200);  // like that of a child before its exec
    EXPECT(found, copy >= 200);
    ::shutdown(first, SHUT_RDWR);                                        // ECONNRESET
    test::yield_until([&] { return ended || being_connected() >= 0; });  // the next one, with the same number
    while (!ended) {
      wait_all_blocked();
      clock.advance(10ms);
    }
    n.join();
    ::close(copy);
  });
}

TEST_CASE("if all addresses fail, the error is of one that there was a way to", "[conformance][net][resolve]") {
  const auto no_way = address::parse("224.0.0.1:1");  // multicast: TCP has none
  const auto both = [&](findings& found) {
    const auto error = [](const addresses& to) {
      std::error_code ec;
      (void)ramie::connect(to, ec);
      return ec;
    };
    const refusing_host nobody;
    EXPECT(found, error({no_way, no_way}) == std::errc::network_unreachable);
    EXPECT(found, error({no_way, nobody.where()}) == std::errc::connection_refused);
    EXPECT(found, error({nobody.where(), no_way}) == std::errc::connection_refused);
    EXPECT(found, error({no_way, nobody.where(), no_way}) == std::errc::connection_refused);
  };
  on_each_io(both);
  test::as_thread_and_fiber(both);
}

TEST_CASE("plain threads connect by name as well", "[conformance][net][resolve]") {
  const known_name both("both.test", {"127.0.0.1", "::1"});
  const int before = test::open_descriptors();
  {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    CHECK(ramie::connect("both.test", listener.local_address().port()).is_open());
    const silent_host silent;
    const auto s = ramie::connect(addresses{silent.where(), listener.local_address()});
    CHECK(s.peer_address() == listener.local_address());
    std::error_code ec;
    CHECK_FALSE(ramie::connect(addresses{silent.where(), silent.where()}, ec, deadline(2ms)).is_open());
    CHECK(ec == std::errc::timed_out);
  }
  CHECK(test::open_descriptors() == before);
}

TEST_CASE("connecting to nothing, or to what is no internet address, is misuse", "[conformance][net][resolve]") {
  CHECK_THROWS_AS(ramie::connect(addresses{}), ramie::usage_error);
  CHECK_THROWS_AS(ramie::connect(addresses{address::ipv4_loopback(1), address::unix_path("/a")}), ramie::usage_error);
}

}  // namespace conformance_net_resolve
