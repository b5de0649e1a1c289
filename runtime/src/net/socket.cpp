// SPDX-License-Identifier: BSL-1.0
// Sockets of any kind: made, asked, closed.
#include <ramie/socket.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "net.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_connect{"connect"};

using naming_call = int (*)(int, sockaddr*, socklen_t*) noexcept;

address ask_for_name(const descriptor_ref& fd, naming_call call, std::error_code* ec, const char* what) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  const int result =
      with_fd_of(fd, [&](int number) { return outcome_of(call(number, reinterpret_cast<sockaddr*>(&name), &size)); });
  settle(result, ec, what);
  return result < 0 ? address() : address::from_native(&name, size);
}

}  // namespace

std::int32_t perform(const descriptor_ref& fd, platform::io_operation& op, const wait_reason& why, deadline until) {
  if (fd) return fd->perform(op, why, until.when());
  check_cancelled();
  return -EBADF;
}

void settle(std::int32_t result, std::error_code* ec, const char* what) {
  if (ec == nullptr) {
    (void)value_or_throw(result, what);
  } else {
    (void)value_or_error(result, *ec);
  }
}

descriptor_ref value_of(opened it, std::error_code* ec, const char* what) {
  settle(it.error, ec, what);
  return std::move(it.fd);
}

void expect_ip(const address& a, const char* what) {
  if (a.is_ip()) return;
  throw usage_error(std::string(what) + ": '" + a.to_string() + "' is no internet address");
}
void expect_local(const address& a, const char* what) {
  if (a.family() == address_family::local) return;
  throw usage_error(std::string(what) + ": '" + a.to_string() + "' is no address of a unix socket");
}

opened open_socket(int family, int type) {
  const int fd = outcome_of(::socket(family, type | SOCK_CLOEXEC, 0));
  if (fd < 0) return {{}, fd};
  return {open_descriptor::adopt(fd), 0};
}

deadline growing_pause::next(deadline until) {
  constexpr std::chrono::milliseconds longest{100};
  const auto end = std::min(time_after(next_), until.when());
  next_ = std::min(next_ * 2, longest);
  return deadline(end);
}

bool growing_pause::wait(deadline until) {
  if (until.expired()) return false;
  sleep_until(next(until).when());
  return true;
}

namespace {

// A unix socket is connected at once, unless the listener's backlog is full; and no mechanism knows how to wait for
// that: to poll and epoll such a socket is always ready, and io_uring lets a thread of the kernel block.
opened open_connected_locally(const address& to, deadline until) {
  opened made = open_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
  if (made.error != 0) return made;
  const auto attempt = [&](int fd) { return outcome_of(::connect(fd, native(to), native_size(to))); };
  growing_pause pause;
  while ((made.error = made.fd->with_fd(attempt)) == -EAGAIN) {
    if (!pause.wait(until)) return {{}, -ETIMEDOUT};
  }
  if (made.error != 0) return {{}, made.error};
  // The runtime sets it again if it wants it.
  (void)made.fd->with_fd([](int fd) { return ::fcntl(fd, F_SETFL, 0); });
  return made;
}

}  // namespace

opened open_connected(const address& to, deadline until) {
  check_cancelled();  // also if there is no descriptor to be had
  if (!to.is_ip()) return open_connected_locally(to, until);
  opened made = open_socket(native_family(to), SOCK_STREAM);
  if (made.error != 0) return made;
  address target = to;  // the kernel's until it is connected
  platform::io_operation op;
  op.code = platform::io_code::connect;
  op.memory = const_cast<void*>(target.data());
  op.count = native_size(target);
  const std::int32_t result = perform(made.fd, op, waits_to_connect, until);
  if (result < 0) return {{}, result};
  return made;
}

opened open_bound_datagrams(const address& where) {
  opened made = open_socket(native_family(where), SOCK_DGRAM);
  if (made.error != 0) return made;
  const int result =
      made.fd->with_fd([&](int fd) { return outcome_of(::bind(fd, native(where), native_size(where))); });
  if (result < 0) return {{}, result};
  return made;
}

std::pair<descriptor_ref, descriptor_ref> open_pair(int type, std::error_code* ec, const char* what) {
  int ends[2];
  const int result = outcome_of(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
  settle(result, ec, what);
  if (result < 0) return {};
  descriptor_ref first, second;
  try {
    first = open_descriptor::adopt(ends[0]);
  } catch (...) {
    ::close(ends[1]);
    throw;
  }
  second = open_descriptor::adopt(ends[1]);
  return {std::move(first), std::move(second)};
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

using detail::outcome_of;
using detail::settle;
using detail::with_fd_of;

bool socket_base::is_open() const noexcept {
  return fd_ && fd_->is_open();
}

int socket_base::native_handle() const noexcept {
  return is_open() ? fd_->number() : -1;
}

void socket_base::close() noexcept {
  if (fd_) fd_->close();
}

address socket_base::local_address() const {
  return detail::ask_for_name(fd_, ::getsockname, nullptr, "ramie: local_address");
}
address socket_base::local_address(std::error_code& ec) const {
  return detail::ask_for_name(fd_, ::getsockname, &ec, "ramie: local_address");
}
address socket_base::peer_of(std::error_code* ec) const {
  return detail::ask_for_name(fd_, ::getpeername, ec, "ramie: peer_address");
}

int socket_base::option(int level, int name, const char* what, std::error_code* ec) const {
  int value = 0;
  socklen_t size = sizeof value;
  settle(with_fd_of(fd_, [&](int fd) { return outcome_of(::getsockopt(fd, level, name, &value, &size)); }), ec, what);
  return value;
}
void socket_base::set_option(int level, int name, int value, const char* what, std::error_code* ec) {
  settle(with_fd_of(fd_, [&](int fd) { return outcome_of(::setsockopt(fd, level, name, &value, sizeof value)); }), ec,
         what);
}

namespace {

// The kernel counts in int.
int clamped(std::size_t bytes) noexcept {
  constexpr std::size_t most = 0x3fffffff;
  return static_cast<int>(bytes < most ? bytes : most);
}

}  // namespace

std::size_t socket_base::send_buffer_size() const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_SNDBUF, "ramie: send_buffer_size", nullptr));
}
std::size_t socket_base::send_buffer_size(std::error_code& ec) const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_SNDBUF, "ramie: send_buffer_size", &ec));
}
void socket_base::set_send_buffer_size(std::size_t bytes) {
  set_option(SOL_SOCKET, SO_SNDBUF, clamped(bytes), "ramie: set_send_buffer_size", nullptr);
}
void socket_base::set_send_buffer_size(std::size_t bytes, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_SNDBUF, clamped(bytes), "ramie: set_send_buffer_size", &ec);
}
std::size_t socket_base::receive_buffer_size() const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_RCVBUF, "ramie: receive_buffer_size", nullptr));
}
std::size_t socket_base::receive_buffer_size(std::error_code& ec) const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_RCVBUF, "ramie: receive_buffer_size", &ec));
}
void socket_base::set_receive_buffer_size(std::size_t bytes) {
  set_option(SOL_SOCKET, SO_RCVBUF, clamped(bytes), "ramie: set_receive_buffer_size", nullptr);
}
void socket_base::set_receive_buffer_size(std::size_t bytes, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_RCVBUF, clamped(bytes), "ramie: set_receive_buffer_size", &ec);
}

}  // namespace ramie::inline v0
