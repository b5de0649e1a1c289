// SPDX-License-Identifier: BSL-1.0
#include <ramie/unix.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include "net.hpp"

namespace ramie::inline v0 {

using namespace io_internal;

std::pair<unix_stream, unix_stream> unix_stream::pair(std::error_code& ec) {
  auto [first, second] = open_pair(SOCK_STREAM, ec);
  return {unix_stream(std::move(first)), unix_stream(std::move(second))};
}
std::pair<unix_stream, unix_stream> unix_stream::pair() {
  return or_throw("ramie: unix_stream::pair", [](auto& ec) { return pair(ec); });
}

unix_stream::halves unix_stream::split() && noexcept {
  descriptor_ref fd = take_descriptor();
  return {unix_reader(fd), unix_writer(fd)};
}

unix_credentials unix_stream::peer_credentials(std::error_code& ec) const {
  ucred who{};
  socklen_t size = sizeof who;
  const auto ask = [&](int fd) { return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size); };
  ec = error_of(call_on(descriptor(), ask));
  return {who.pid, who.uid, who.gid};
}
unix_credentials unix_stream::peer_credentials() const {
  return or_throw("ramie: unix_stream::peer_credentials", [&](auto& ec) { return peer_credentials(ec); });
}

unix_datagram unix_datagram::unbound(std::error_code& ec) {
  return unix_datagram(value_of(open_socket(AF_UNIX, SOCK_DGRAM), &ec, ""));
}
unix_datagram unix_datagram::unbound() {
  return or_throw("ramie: unix_datagram::unbound", [](auto& ec) { return unbound(ec); });
}

std::pair<unix_datagram, unix_datagram> unix_datagram::pair(std::error_code& ec) {
  auto [first, second] = open_pair(SOCK_DGRAM, ec);
  return {unix_datagram(std::move(first)), unix_datagram(std::move(second))};
}
std::pair<unix_datagram, unix_datagram> unix_datagram::pair() {
  return or_throw("ramie: unix_datagram::pair", [](auto& ec) { return pair(ec); });
}

}  // namespace ramie::inline v0
