// SPDX-License-Identifier: BSL-1.0
// Addresses as values.
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_set>

#include <ramie/address.hpp>
#include <support/test.hpp>

namespace conformance_net_address {

using ramie::address;
using ramie::address_family;

TEST_CASE("an address is what it was parsed from", "[conformance][net]") {
  for (const char* const text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0",
                                 "[2001:db8::ff00:42:8329]:443", "[fe80::1%1]:22", "[::ffff:1.2.3.4]:5"}) {
    INFO(text);
    const auto a = address::parse(text);
    CHECK(a.to_string() == text);
    CHECK(a.family() == (text[0] == '[' ? address_family::ipv6 : address_family::ipv4));
    CHECK(a.is_ip());
    CHECK(address::try_parse(text) == a);
    CHECK(address::from_native(a.data(), a.size()) == a);
  }
  CHECK(address::parse("127.0.0.1:80") == address::ipv4_loopback(80));
  CHECK(address::parse("[::1]:80") == address::ipv6_loopback(80));
  CHECK(address::parse("0.0.0.0:1") == address::any(1));
  CHECK(address::parse("[::]:1") == address::ipv6_any(1));
  CHECK(address::parse("127.0.0.1:80").port() == 80);
  CHECK(address::parse("[fe80::1%1]:22").scope() == 1);
  CHECK(address::parse("[fe80::1%lo]:22").scope() != 0);
  CHECK(address::ip("::1", 80) == address::ipv6_loopback(80));
  CHECK(address::ip("127.0.0.1", 80) == address::ipv4_loopback(80));
  CHECK(address::ipv4_loopback(1).with_port(80) == address::ipv4_loopback(80));
  CHECK(address::parse("[fe80::1%1]:22").with_port(23).to_string() == "[fe80::1%1]:23");
}

TEST_CASE("what is no address is refused", "[conformance][net]") {
  for (const char* const text : {"",
                                 ":",
                                 "80",
                                 "127.0.0.1",
                                 "127.0.0.1:",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:-1",
                                 "127.0.0.1:+1",
                                 "127.0.0.1: 80",
                                 "127.0.0.1:80 ",
                                 "127.0.0.256:80",
                                 "127.0.0:80",
                                 "[127.0.0.1]:80",
                                 "::1:80",
                                 "[::1]",
                                 "[::1]80",
                                 "[::1:80",
                                 "[]:80",
                                 "[::1%]:80",
                                 "[::1%no-such-interface-here]:80",
                                 "[::g]:80",
                                 "localhost:80"}) {
    INFO(text);
    CHECK_THROWS_AS(address::parse(text), std::invalid_argument);
    CHECK_FALSE(address::try_parse(text).has_value());
  }
  CHECK_THROWS_AS(address::ip("localhost", 80), std::invalid_argument);
  CHECK_THROWS_AS(address::ip(std::string("127.0.0.1\0", 10), 80), std::invalid_argument);
  CHECK_THROWS_AS(address::parse(std::string(1000, '1') + ":80"), std::invalid_argument);
}

TEST_CASE("addresses of unix sockets have a path, a name, or nothing", "[conformance][net]") {
  const auto path = address::unix_path("/run/some/where");
  CHECK(path.family() == address_family::local);
  CHECK_FALSE(path.is_ip());
  CHECK(path.path() == "/run/some/where");
  CHECK_FALSE(path.is_abstract());
  CHECK(path.port() == 0);
  CHECK(path.to_string() == "/run/some/where");

  const auto abstract = address::unix_abstract(std::string("with\0zero", 9));
  CHECK(abstract.path() == std::string("with\0zero", 9));
  CHECK(abstract.is_abstract());
  CHECK(address::unix_abstract("name").to_string() == "@name");
  CHECK(address::unix_abstract("name") != address::unix_path("name"));

  CHECK(address::unix_path(std::string(107, 'x')).path().size() == 107);
  CHECK(address::unix_abstract(std::string(107, 'x')).path().size() == 107);
  for (const std::string& wrong : {std::string(), std::string(108, 'x'), std::string("a\0b", 3)}) {
    CHECK_THROWS_AS(address::unix_path(wrong), std::invalid_argument);
  }
  CHECK_THROWS_AS(address::unix_abstract(""), std::invalid_argument);
  CHECK_THROWS_AS(address::unix_abstract(std::string(108, 'x')), std::invalid_argument);

  sockaddr_un unnamed{};
  unnamed.sun_family = AF_UNIX;
  CHECK(address::from_native(&unnamed, sizeof(sa_family_t)).to_string() == "(unnamed)");
}

TEST_CASE("equal addresses are equal, whatever else the kernel says beside them", "[conformance][net]") {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  six.sin6_port = htons(80);
  six.sin6_flowinfo = 77;
  CHECK(address::from_native(&six, sizeof six) == address::ipv6_loopback(80));

  sockaddr_in four{};
  std::memset(&four, 0xff, sizeof four);
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  four.sin_port = htons(80);
  CHECK(address::from_native(&four, sizeof four) == address::ipv4_loopback(80));

  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, "/run/it");
  std::strcpy(name.sun_path + 20, "left over");
  CHECK(address::from_native(&name, sizeof name) == address::unix_path("/run/it"));
  std::memset(name.sun_path, 'x', sizeof name.sun_path);  // the kernel may use all of it
  CHECK(address::from_native(&name, sizeof name).path() == std::string(107, 'x'));

  CHECK(address().family() == address_family::none);
  CHECK(address().to_string() == "(none)");
  CHECK(address() == address::from_native(nullptr, 0));
  CHECK(address() == address::from_native(&four, sizeof four - 1));
  CHECK(address() == address::from_native(&four, 1));
  four.sin_family = AF_PACKET;
  CHECK(address() == address::from_native(&four, sizeof four));

  std::unordered_set<address> some{address::ipv4_loopback(1), address::ipv4_loopback(2), address::ipv6_loopback(1),
                                   address::ipv4_loopback(1)};
  CHECK(some.size() == 3);
  CHECK(some.count(address::parse("127.0.0.1:2")) == 1);
}

}  // namespace conformance_net_address
