// SPDX-License-Identifier: BSL-1.0
// Datagrams of any kind.
#include <ramie/socket.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/here.hpp>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::growing_pause;
using detail::native;
using detail::native_size;
using detail::outcome_of;
using detail::perform;
using detail::value_or_error;
using detail::value_or_throw;
using detail::wait_reason;
using detail::with_fd_of;

namespace {

const wait_reason waits_to_send{"send"};
const wait_reason waits_for_room{"send_to, until the receiver has room"};
const wait_reason waits_to_receive{"receive"};

std::int32_t connect_to(const descriptor_ref& fd, const address& peer) {
  return with_fd_of(fd, [&](int number) { return outcome_of(::connect(number, native(peer), native_size(peer))); });
}

// To a unix socket that the sender is not connected to. If the receiver's queue is full no mechanism knows how to wait:
// to poll and epoll the sender is ready, for it has room itself. What it does wait for never comes, but close() ends
// it.
std::int32_t send_locally(const descriptor_ref& fd, const msghdr& message, deadline until) {
  const auto attempt = [&](int number) {
    return outcome_of(static_cast<int>(::sendmsg(number, &message, MSG_DONTWAIT | MSG_NOSIGNAL)));
  };
  detail::whereabouts here = detail::look_around();
  detail::begin_operation(here);
  for (growing_pause pause;;) {
    const int result = with_fd_of(fd, attempt);
    if (result != -EAGAIN) return result;
    if (until.expired()) return -ETIMEDOUT;
    platform::io_operation op;
    op.code = platform::io_code::ready;
    op.flags = POLLPRI;
    const std::int32_t ended = perform(fd, op, waits_for_room, pause.next(until));
    if (ended < 0 && ended != -ETIMEDOUT) return ended;
  }
}

// To where it is connected, unless `to` says where.
std::int32_t send_one(const descriptor_ref& fd, std::span<const std::byte> what, const address* to, deadline until) {
  iovec piece{const_cast<std::byte*>(what.data()), what.size()};
  address target;  // the kernel's until it is sent
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (to != nullptr) {
    target = *to;
    message.msg_name = const_cast<void*>(target.data());
    message.msg_namelen = native_size(target);
    if (to->family() == address_family::local) return send_locally(fd, message, until);
  }
  platform::io_operation op;
  op.code = platform::io_code::send_message;
  op.memory = &message;
  return perform(fd, op, waits_to_send, until);
}

struct arrival {
  datagram_socket::received what;
  std::int32_t error = 0;

  datagram_socket::received or_throw(const char* call) const {
    (void)value_or_throw(error, call);
    return what;
  }
  datagram_socket::received or_error(std::error_code& ec) const noexcept {
    (void)value_or_error(error, ec);
    return what;
  }
};

// With MSG_TRUNC the result is the size of the datagram, whatever there was room for.
arrival receive_one(const descriptor_ref& fd, std::span<std::byte> into, address* from, deadline until) {
  iovec piece{into.data(), into.size()};
  sockaddr_storage sender{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_name = from != nullptr ? &sender : nullptr;
  message.msg_namelen = from != nullptr ? sizeof sender : 0;
  platform::io_operation op;
  op.code = platform::io_code::receive_message;
  op.memory = &message;
  op.flags = MSG_TRUNC;
  const std::int32_t result = perform(fd, op, waits_to_receive, until);
  if (result < 0) return {{}, result};
  if (from != nullptr) *from = address::from_native(&sender, message.msg_namelen);
  const auto size = static_cast<std::size_t>(result);
  return {{std::min(size, into.size()), size}, 0};
}

}  // namespace

void datagram_socket::connect(const address& peer) {
  (void)value_or_throw(connect_to(descriptor(), peer), "ramie: connect");
}
void datagram_socket::connect(const address& peer, std::error_code& ec) {
  (void)value_or_error(connect_to(descriptor(), peer), ec);
}

void datagram_socket::send(std::span<const std::byte> what, deadline until) {
  (void)value_or_throw(send_one(descriptor(), what, nullptr, until), "ramie: send");
}
void datagram_socket::send(std::span<const std::byte> what, std::error_code& ec, deadline until) {
  (void)value_or_error(send_one(descriptor(), what, nullptr, until), ec);
}
void datagram_socket::send_to(std::span<const std::byte> what, const address& to, deadline until) {
  (void)value_or_throw(send_one(descriptor(), what, &to, until), "ramie: send_to");
}
void datagram_socket::send_to(std::span<const std::byte> what, const address& to, std::error_code& ec, deadline until) {
  (void)value_or_error(send_one(descriptor(), what, &to, until), ec);
}

datagram_socket::received datagram_socket::receive(std::span<std::byte> into, deadline until) {
  return receive_one(descriptor(), into, nullptr, until).or_throw("ramie: receive");
}
datagram_socket::received datagram_socket::receive(std::span<std::byte> into, std::error_code& ec, deadline until) {
  return receive_one(descriptor(), into, nullptr, until).or_error(ec);
}
datagram_socket::received datagram_socket::receive_from(std::span<std::byte> into, address& from, deadline until) {
  return receive_one(descriptor(), into, &from, until).or_throw("ramie: receive_from");
}
datagram_socket::received datagram_socket::receive_from(std::span<std::byte> into, address& from, std::error_code& ec,
                                                        deadline until) {
  return receive_one(descriptor(), into, &from, until).or_error(ec);
}

}  // namespace ramie::inline v0
