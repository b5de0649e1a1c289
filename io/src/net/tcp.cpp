// SPDX-License-Identifier: BSL-1.0
#include <ramie/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "net.hpp"

namespace ramie::inline v0 {

using namespace io_internal;

tcp_stream::halves tcp_stream::split() && noexcept {
  descriptor_ref fd = take_descriptor();
  return {tcp_reader(fd), tcp_writer(fd)};
}

bool tcp_stream::no_delay() const {
  return or_throw("ramie: tcp_stream::no_delay", [&](auto& ec) { return no_delay(ec); });
}
bool tcp_stream::no_delay(std::error_code& ec) const {
  return option(IPPROTO_TCP, TCP_NODELAY, ec) != 0;
}
void tcp_stream::set_no_delay(bool on) {
  or_throw("ramie: tcp_stream::set_no_delay", [&](auto& ec) { set_no_delay(on, ec); });
}
void tcp_stream::set_no_delay(bool on, std::error_code& ec) {
  set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0, ec);
}
bool tcp_stream::keep_alive() const {
  return or_throw("ramie: tcp_stream::keep_alive", [&](auto& ec) { return keep_alive(ec); });
}
bool tcp_stream::keep_alive(std::error_code& ec) const {
  return option(SOL_SOCKET, SO_KEEPALIVE, ec) != 0;
}
void tcp_stream::set_keep_alive(bool on) {
  or_throw("ramie: tcp_stream::set_keep_alive", [&](auto& ec) { set_keep_alive(on, ec); });
}
void tcp_stream::set_keep_alive(bool on, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0, ec);
}

namespace {

using seconds = std::chrono::seconds;

}  // namespace

std::optional<seconds> tcp_stream::linger(std::error_code& ec) const {
  ::linger value{};
  socklen_t size = sizeof value;
  const auto ask = [&](int fd) { return ::getsockopt(fd, SOL_SOCKET, SO_LINGER, &value, &size); };
  ec = error_of(call_on(descriptor(), ask));
  if (value.l_onoff == 0) return std::nullopt;
  return seconds(value.l_linger);
}
std::optional<seconds> tcp_stream::linger() const {
  return or_throw("ramie: tcp_stream::linger", [&](auto& ec) { return linger(ec); });
}
void tcp_stream::set_linger(std::optional<seconds> time, std::error_code& ec) {
  constexpr seconds longest(std::numeric_limits<int>::max());
  const auto clamped = std::clamp(time.value_or(seconds(0)), seconds(0), longest);
  const ::linger value{time ? 1 : 0, static_cast<int>(clamped.count())};
  const auto set = [&](int fd) { return ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value); };
  ec = error_of(call_on(descriptor(), set));
}
void tcp_stream::set_linger(std::optional<seconds> time) {
  or_throw("ramie: tcp_stream::set_linger", [&](auto& ec) { set_linger(time, ec); });
}

}  // namespace ramie::inline v0
