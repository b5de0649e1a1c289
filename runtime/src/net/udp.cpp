// SPDX-License-Identifier: BSL-1.0
#include <ramie/udp.hpp>

#include <sys/socket.h>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::expect_ip;
using detail::open_bound_datagrams;
using detail::open_descriptor;
using detail::value_of;

udp_socket udp_socket::bind(const address& where) {
  expect_ip(where, "udp_socket::bind");
  return udp_socket(value_of(open_bound_datagrams(where), nullptr, "ramie: bind"));
}
udp_socket udp_socket::bind(const address& where, std::error_code& ec) {
  expect_ip(where, "udp_socket::bind");
  return udp_socket(value_of(open_bound_datagrams(where), &ec, "ramie: bind"));
}

udp_socket udp_socket::from_native(int fd) {
  return udp_socket(open_descriptor::adopt(fd));
}

bool udp_socket::broadcast() const {
  return option(SOL_SOCKET, SO_BROADCAST, "ramie: broadcast", nullptr) != 0;
}
bool udp_socket::broadcast(std::error_code& ec) const {
  return option(SOL_SOCKET, SO_BROADCAST, "ramie: broadcast", &ec) != 0;
}
void udp_socket::set_broadcast(bool on) {
  set_option(SOL_SOCKET, SO_BROADCAST, on ? 1 : 0, "ramie: set_broadcast", nullptr);
}
void udp_socket::set_broadcast(bool on, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_BROADCAST, on ? 1 : 0, "ramie: set_broadcast", &ec);
}

}  // namespace ramie::inline v0
