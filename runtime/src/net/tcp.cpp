// SPDX-License-Identifier: BSL-1.0
#include <ramie/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::expect_ip;
using detail::open_connected;
using detail::open_descriptor;
using detail::outcome_of;
using detail::value_of;
using detail::value_or_throw;
using detail::with_fd_of;

tcp_stream tcp_stream::connect(const address& to, deadline until) {
  expect_ip(to, "tcp_stream::connect");
  return tcp_stream(value_of(open_connected(to, until), nullptr, "ramie: connect"));
}
tcp_stream tcp_stream::connect(const address& to, std::error_code& ec, deadline until) {
  expect_ip(to, "tcp_stream::connect");
  return tcp_stream(value_of(open_connected(to, until), &ec, "ramie: connect"));
}

tcp_stream tcp_stream::from_native(int fd) {
  return tcp_stream(open_descriptor::adopt(fd));
}

tcp_stream::halves tcp_stream::split() && noexcept {
  descriptor_ref fd = take_descriptor();
  return {tcp_reader(fd), tcp_writer(fd)};
}

bool tcp_stream::no_delay() const {
  return option(IPPROTO_TCP, TCP_NODELAY, "ramie: no_delay") != 0;
}
void tcp_stream::set_no_delay(bool on) {
  set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0, "ramie: set_no_delay");
}
bool tcp_stream::keep_alive() const {
  return option(SOL_SOCKET, SO_KEEPALIVE, "ramie: keep_alive") != 0;
}
void tcp_stream::set_keep_alive(bool on) {
  set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0, "ramie: set_keep_alive");
}

std::optional<std::chrono::seconds> tcp_stream::linger() const {
  ::linger value{};
  socklen_t size = sizeof value;
  const auto ask = [&](int fd) { return outcome_of(::getsockopt(fd, SOL_SOCKET, SO_LINGER, &value, &size)); };
  (void)value_or_throw(with_fd_of(descriptor(), ask), "ramie: linger");
  if (value.l_onoff == 0) return std::nullopt;
  return std::chrono::seconds(value.l_linger);
}
void tcp_stream::set_linger(std::optional<std::chrono::seconds> time) {
  const ::linger value{time ? 1 : 0, time ? static_cast<int>(time->count()) : 0};
  const auto set = [&](int fd) { return outcome_of(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value)); };
  (void)value_or_throw(with_fd_of(descriptor(), set), "ramie: set_linger");
}

tcp_listener tcp_listener::bind(const address& where, const listen_options& how) {
  expect_ip(where, "tcp_listener::bind");
  return tcp_listener(listen_at(where, how, nullptr));
}
tcp_listener tcp_listener::bind(const address& where, const listen_options& how, std::error_code& ec) {
  expect_ip(where, "tcp_listener::bind");
  return tcp_listener(listen_at(where, how, &ec));
}

tcp_listener tcp_listener::from_native(int fd) {
  return tcp_listener(open_descriptor::adopt(fd));
}

}  // namespace ramie::inline v0
