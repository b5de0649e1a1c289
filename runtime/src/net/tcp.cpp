// SPDX-License-Identifier: BSL-1.0
#include <ramie/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::expect_ip;
using detail::open_connected;
using detail::open_descriptor;
using detail::outcome_of;
using detail::settle;
using detail::value_of;
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
  return option(IPPROTO_TCP, TCP_NODELAY, "ramie: no_delay", nullptr) != 0;
}
bool tcp_stream::no_delay(std::error_code& ec) const {
  return option(IPPROTO_TCP, TCP_NODELAY, "ramie: no_delay", &ec) != 0;
}
void tcp_stream::set_no_delay(bool on) {
  set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0, "ramie: set_no_delay", nullptr);
}
void tcp_stream::set_no_delay(bool on, std::error_code& ec) {
  set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0, "ramie: set_no_delay", &ec);
}
bool tcp_stream::keep_alive() const {
  return option(SOL_SOCKET, SO_KEEPALIVE, "ramie: keep_alive", nullptr) != 0;
}
bool tcp_stream::keep_alive(std::error_code& ec) const {
  return option(SOL_SOCKET, SO_KEEPALIVE, "ramie: keep_alive", &ec) != 0;
}
void tcp_stream::set_keep_alive(bool on) {
  set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0, "ramie: set_keep_alive", nullptr);
}
void tcp_stream::set_keep_alive(bool on, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0, "ramie: set_keep_alive", &ec);
}

namespace {

using seconds = std::chrono::seconds;

std::optional<seconds> ask_for_linger(const descriptor_ref& from, std::error_code* ec) {
  ::linger value{};
  socklen_t size = sizeof value;
  const auto ask = [&](int fd) { return outcome_of(::getsockopt(fd, SOL_SOCKET, SO_LINGER, &value, &size)); };
  settle(with_fd_of(from, ask), ec, "ramie: linger");
  if (value.l_onoff == 0) return std::nullopt;
  return seconds(value.l_linger);
}

void change_linger(const descriptor_ref& of, std::optional<seconds> time, std::error_code* ec) {
  constexpr seconds longest(std::numeric_limits<int>::max());
  const auto clamped = std::clamp(time.value_or(seconds(0)), seconds(0), longest);
  const ::linger value{time ? 1 : 0, static_cast<int>(clamped.count())};
  const auto set = [&](int fd) { return outcome_of(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value)); };
  settle(with_fd_of(of, set), ec, "ramie: set_linger");
}

}  // namespace

std::optional<seconds> tcp_stream::linger() const {
  return ask_for_linger(descriptor(), nullptr);
}
std::optional<seconds> tcp_stream::linger(std::error_code& ec) const {
  return ask_for_linger(descriptor(), &ec);
}
void tcp_stream::set_linger(std::optional<seconds> time) {
  change_linger(descriptor(), time, nullptr);
}
void tcp_stream::set_linger(std::optional<seconds> time, std::error_code& ec) {
  change_linger(descriptor(), time, &ec);
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
