// SPDX-License-Identifier: BSL-1.0
#include <ramie/unix.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::expect_local;
using detail::open_bound_datagrams;
using detail::open_connected;
using detail::open_descriptor;
using detail::open_pair;
using detail::open_socket;
using detail::outcome_of;
using detail::settle;
using detail::value_of;
using detail::with_fd_of;

unix_stream unix_stream::connect(const address& to, deadline until) {
  expect_local(to, "unix_stream::connect");
  return unix_stream(value_of(open_connected(to, until), nullptr, "ramie: connect"));
}
unix_stream unix_stream::connect(const address& to, std::error_code& ec, deadline until) {
  expect_local(to, "unix_stream::connect");
  return unix_stream(value_of(open_connected(to, until), &ec, "ramie: connect"));
}

std::pair<unix_stream, unix_stream> unix_stream::pair() {
  auto [first, second] = open_pair(SOCK_STREAM, nullptr, "ramie: unix_stream::pair");
  return {unix_stream(std::move(first)), unix_stream(std::move(second))};
}
std::pair<unix_stream, unix_stream> unix_stream::pair(std::error_code& ec) {
  auto [first, second] = open_pair(SOCK_STREAM, &ec, "ramie: unix_stream::pair");
  return {unix_stream(std::move(first)), unix_stream(std::move(second))};
}

unix_stream unix_stream::from_native(int fd) {
  return unix_stream(open_descriptor::adopt(fd));
}

unix_stream::halves unix_stream::split() && noexcept {
  descriptor_ref fd = take_descriptor();
  return {unix_reader(fd), unix_writer(fd)};
}

namespace {

unix_credentials ask_for_credentials(const descriptor_ref& of, std::error_code* ec) {
  ucred who{};
  socklen_t size = sizeof who;
  const auto ask = [&](int fd) { return outcome_of(::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)); };
  settle(with_fd_of(of, ask), ec, "ramie: peer_credentials");
  return {who.pid, who.uid, who.gid};
}

}  // namespace

unix_credentials unix_stream::peer_credentials() const {
  return ask_for_credentials(descriptor(), nullptr);
}
unix_credentials unix_stream::peer_credentials(std::error_code& ec) const {
  return ask_for_credentials(descriptor(), &ec);
}

unix_listener unix_listener::bind(const address& where, const listen_options& how) {
  expect_local(where, "unix_listener::bind");
  return unix_listener(listen_at(where, how, nullptr));
}
unix_listener unix_listener::bind(const address& where, const listen_options& how, std::error_code& ec) {
  expect_local(where, "unix_listener::bind");
  return unix_listener(listen_at(where, how, &ec));
}

unix_listener unix_listener::from_native(int fd) {
  return unix_listener(open_descriptor::adopt(fd));
}

unix_datagram unix_datagram::bind(const address& where) {
  expect_local(where, "unix_datagram::bind");
  return unix_datagram(value_of(open_bound_datagrams(where), nullptr, "ramie: bind"));
}
unix_datagram unix_datagram::bind(const address& where, std::error_code& ec) {
  expect_local(where, "unix_datagram::bind");
  return unix_datagram(value_of(open_bound_datagrams(where), &ec, "ramie: bind"));
}

unix_datagram unix_datagram::unbound() {
  return unix_datagram(value_of(open_socket(AF_UNIX, SOCK_DGRAM), nullptr, "ramie: unix_datagram::unbound"));
}
unix_datagram unix_datagram::unbound(std::error_code& ec) {
  return unix_datagram(value_of(open_socket(AF_UNIX, SOCK_DGRAM), &ec, "ramie: unix_datagram::unbound"));
}

std::pair<unix_datagram, unix_datagram> unix_datagram::pair() {
  auto [first, second] = open_pair(SOCK_DGRAM, nullptr, "ramie: unix_datagram::pair");
  return {unix_datagram(std::move(first)), unix_datagram(std::move(second))};
}
std::pair<unix_datagram, unix_datagram> unix_datagram::pair(std::error_code& ec) {
  auto [first, second] = open_pair(SOCK_DGRAM, &ec, "ramie: unix_datagram::pair");
  return {unix_datagram(std::move(first)), unix_datagram(std::move(second))};
}

unix_datagram unix_datagram::from_native(int fd) {
  return unix_datagram(open_descriptor::adopt(fd));
}

}  // namespace ramie::inline v0
