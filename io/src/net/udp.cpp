// SPDX-License-Identifier: BSL-1.0
#include <ramie/udp.hpp>

#include <sys/socket.h>

#include "net.hpp"

namespace ramie::inline v0 {

using namespace io_internal;

bool udp_socket::broadcast() const {
  return or_throw("ramie: udp_socket::broadcast", [&](auto& ec) { return broadcast(ec); });
}
bool udp_socket::broadcast(std::error_code& ec) const {
  return option(SOL_SOCKET, SO_BROADCAST, ec) != 0;
}
void udp_socket::set_broadcast(bool on) {
  or_throw("ramie: udp_socket::set_broadcast", [&](auto& ec) { set_broadcast(on, ec); });
}
void udp_socket::set_broadcast(bool on, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_BROADCAST, on ? 1 : 0, ec);
}

}  // namespace ramie::inline v0
