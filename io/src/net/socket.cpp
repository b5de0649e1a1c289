// SPDX-License-Identifier: BSL-1.0
// All sockets: opening, connecting, options, closing.
#include <ramie/socket.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "../native.hpp"
#include "net.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_connect{"connect"};

using naming_call = int (*)(int, sockaddr*, socklen_t*) noexcept;

address ask_for_name(const descriptor_ref& fd, naming_call call, std::error_code* ec, const char* what) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  const int result = call_on(fd, [&](int number) { return call(number, reinterpret_cast<sockaddr*>(&name), &size); });
  settle(result, ec, what);
  return result < 0 ? address() : address::from_native(&name, size);
}

}  // namespace

void settle(std::int32_t result, std::error_code* ec, const char* what) {
  if (ec == nullptr) {
    throw_if(error_of(result), what);
  } else {
    *ec = error_of(result);
  }
}

descriptor_ref value_of(opened it, std::error_code* ec, const char* what) {
  settle(it.error, ec, what);
  return std::move(it.fd);
}

void expect_kind(socket_kind kind, const address& a, const char* what) {
  if (kind == socket_kind::internet ? a.is_ip() : a.family() == address_family::local) return;
  const char* const advice =
      kind == socket_kind::internet
          ? "' is no internet address. Pass one like 127.0.0.1:80, or use the sockets of <ramie/unix.hpp>."
          : "' is no address of a unix socket. Pass address::unix_path(…) or address::unix_abstract(…).";
  throw usage_error(std::string(what) + ": '" + a.to_string() + advice);
}

opened open_socket(int family, int type) {
  const int fd = outcome_of([&] { return ::socket(family, type | SOCK_CLOEXEC, 0); });
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

// A unix socket is connected at once, unless the listener's backlog is full. No mechanism can wait for room there: poll
// and epoll say that such a socket is ready, and io_uring lets a thread of the kernel block. So this tries again after
// growing pauses.
opened open_connected_locally(const address& to, deadline until) {
  opened made = open_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
  if (made.error != 0) return made;
  const auto attempt = [&](int fd) { return ::connect(fd, native(to), native_size(to)); };
  growing_pause pause;
  while ((made.error = call_on(made.fd, attempt)) == -EAGAIN) {
    if (!pause.wait(until)) return {{}, -ETIMEDOUT};
  }
  if (made.error != 0) return {{}, made.error};
  // The runtime sets it again if it wants it.
  (void)call_on(made.fd, [](int fd) { return ::fcntl(fd, F_SETFL, 0); });
  return made;
}

}  // namespace

opened open_connected(const address& to, deadline until) {
  check_cancelled();  // also if there is no descriptor to be had
  if (!to.is_ip()) return open_connected_locally(to, until);
  opened made = open_socket(native_family(to), SOCK_STREAM);
  if (made.error != 0) return made;
  address target = to;  // the kernel reads it until the socket is connected
  platform::io_operation op;
  op.code = platform::io_code::connect;
  op.memory = const_cast<void*>(target.data());
  op.count = native_size(target);
  const std::int32_t result = perform(made.fd, op, waits_to_connect, until);
  if (result < 0) return {{}, result};
  return made;
}

std::pair<descriptor_ref, descriptor_ref> open_pair(int type, std::error_code& ec) {
  int ends[2];
  const int result = outcome_of([&] { return ::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends); });
  ec = error_of(result);
  if (ec) return {};
  unique_fd second(ends[1]);  // until the first has its owner
  descriptor_ref first = open_descriptor::adopt(ends[0]);
  return {std::move(first), open_descriptor::adopt(second.release())};
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using namespace io_internal;

bool socket_base::is_open() const noexcept {
  return io_internal::is_open(fd_);
}

int socket_base::native_handle() const noexcept {
  return io_internal::native_handle(fd_);
}

void socket_base::close() noexcept {
  if (fd_) fd_->close();
}

int socket_base::release_native() {
  return io_internal::release_native(fd_, "ramie: socket_base::release_native");
}

descriptor_ref socket_base::take_over(int fd) {
  return open_descriptor::adopt(fd);
}

address socket_base::local_address() const {
  return or_throw("ramie: socket_base::local_address", [&](auto& ec) { return local_address(ec); });
}
address socket_base::local_address(std::error_code& ec) const {
  return ask_for_name(fd_, ::getsockname, &ec, "");
}
address socket_base::peer_of(const char* what, std::error_code* ec) const {
  return ask_for_name(fd_, ::getpeername, ec, what);
}

int socket_base::option(int level, int name, std::error_code& ec) const {
  int value = 0;
  socklen_t size = sizeof value;
  ec = error_of(call_on(fd_, [&](int fd) { return ::getsockopt(fd, level, name, &value, &size); }));
  return value;
}
void socket_base::set_option(int level, int name, int value, std::error_code& ec) {
  ec = error_of(call_on(fd_, [&](int fd) { return ::setsockopt(fd, level, name, &value, sizeof value); }));
}

namespace {

// The options are ints.
int clamped(std::size_t bytes) noexcept {
  constexpr std::size_t most = 0x3fffffff;
  return static_cast<int>(bytes < most ? bytes : most);
}

}  // namespace

std::size_t socket_base::send_buffer_size() const {
  return or_throw("ramie: socket_base::send_buffer_size", [&](auto& ec) { return send_buffer_size(ec); });
}
std::size_t socket_base::send_buffer_size(std::error_code& ec) const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_SNDBUF, ec));
}
void socket_base::set_send_buffer_size(std::size_t bytes) {
  or_throw("ramie: socket_base::set_send_buffer_size", [&](auto& ec) { set_send_buffer_size(bytes, ec); });
}
void socket_base::set_send_buffer_size(std::size_t bytes, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_SNDBUF, clamped(bytes), ec);
}
std::size_t socket_base::receive_buffer_size() const {
  return or_throw("ramie: socket_base::receive_buffer_size", [&](auto& ec) { return receive_buffer_size(ec); });
}
std::size_t socket_base::receive_buffer_size(std::error_code& ec) const {
  return static_cast<std::size_t>(option(SOL_SOCKET, SO_RCVBUF, ec));
}
void socket_base::set_receive_buffer_size(std::size_t bytes) {
  or_throw("ramie: socket_base::set_receive_buffer_size", [&](auto& ec) { set_receive_buffer_size(bytes, ec); });
}
void socket_base::set_receive_buffer_size(std::size_t bytes, std::error_code& ec) {
  set_option(SOL_SOCKET, SO_RCVBUF, clamped(bytes), ec);
}

}  // namespace ramie::inline v0
