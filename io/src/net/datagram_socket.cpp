// SPDX-License-Identifier: BSL-1.0
// Sending and receiving datagrams, UDP and unix alike.
#include <ramie/socket.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/current.hpp>

#include "net.hpp"

namespace ramie::inline v0 {

using namespace io_internal;

namespace {

const wait_reason waits_to_send{"send"};
const wait_reason waits_for_room{"send_to, until the receiver has room"};
const wait_reason waits_to_receive{"receive"};

std::int32_t connect_to(const descriptor_ref& fd, const address& peer) {
  return call_on(fd, [&](int number) { return ::connect(number, native(peer), native_size(peer)); });
}

opened open_bound(const address& where) {
  opened made = open_socket(native_family(where), SOCK_DGRAM);
  if (made.error != 0) return made;
  const int result = call_on(made.fd, [&](int fd) { return ::bind(fd, native(where), native_size(where)); });
  if (result < 0) return {{}, result};
  return made;
}

// To a unix socket that the sender is not connected to. If the receiver's queue is full no mechanism can wait for room
// there: poll and epoll say that the sender is ready, for it has room itself. So this tries again after growing pauses.
// A pause is a wait for POLLPRI, which never comes, so that close() ends it.
std::int32_t send_locally(const descriptor_ref& fd, const msghdr& message, deadline until) {
  const auto attempt = [&](int number) { return ::sendmsg(number, &message, MSG_DONTWAIT | MSG_NOSIGNAL); };
  call_context here = current_context();
  begin_operation(here);
  for (growing_pause pause;;) {
    const int result = call_on(fd, attempt);
    if (result != -EAGAIN) return result;
    if (until.expired()) return -ETIMEDOUT;
    platform::io_operation op;
    op.code = platform::io_code::ready;
    op.flags = POLLPRI;
    const std::int32_t ended = perform(fd, op, waits_for_room, pause.next(until));
    if (ended < 0 && ended != -ETIMEDOUT) return ended;
  }
}

// To the connected peer, unless `to` is given.
std::int32_t send_one(const descriptor_ref& fd, std::span<const std::byte> what, const address* to, deadline until) {
  iovec piece{const_cast<std::byte*>(what.data()), what.size()};
  address target;  // the kernel reads it until the datagram is sent
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

// With MSG_TRUNC the result is the size of the datagram, also if it did not fit.
received_datagram receive_one(const descriptor_ref& fd, std::span<std::byte> into, address* from,
                              std::error_code& ec, deadline until) {
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
  const std::size_t size = value_or_error(result, ec);
  if (ec) return {};
  if (from != nullptr) *from = address::from_native(&sender, message.msg_namelen);
  return {std::min(size, into.size()), size};
}

}  // namespace

void datagram_socket::connect(const address& peer, std::error_code& ec) {
  ec = error_of(connect_to(descriptor(), peer));
}
void datagram_socket::send(std::span<const std::byte> what, std::error_code& ec, deadline until) {
  ec = error_of(send_one(descriptor(), what, nullptr, until));
}
void datagram_socket::send_to(std::span<const std::byte> what, const address& to, std::error_code& ec, deadline until) {
  ec = error_of(send_one(descriptor(), what, &to, until));
}
received_datagram datagram_socket::receive(std::span<std::byte> into, std::error_code& ec, deadline until) {
  return receive_one(descriptor(), into, nullptr, ec, until);
}
received_datagram datagram_socket::receive_from(std::span<std::byte> into, address& from, std::error_code& ec,
                                                deadline until) {
  return receive_one(descriptor(), into, &from, ec, until);
}

// The same, throwing.

void datagram_socket::connect(const address& peer) {
  or_throw("ramie: datagram_socket::connect", [&](auto& ec) { connect(peer, ec); });
}
void datagram_socket::send(std::span<const std::byte> what, deadline until) {
  or_throw("ramie: datagram_socket::send", [&](auto& ec) { send(what, ec, until); });
}
void datagram_socket::send_to(std::span<const std::byte> what, const address& to, deadline until) {
  or_throw("ramie: datagram_socket::send_to", [&](auto& ec) { send_to(what, to, ec, until); });
}
received_datagram datagram_socket::receive(std::span<std::byte> into, deadline until) {
  return or_throw("ramie: datagram_socket::receive", [&](auto& ec) { return receive(into, ec, until); });
}
received_datagram datagram_socket::receive_from(std::span<std::byte> into, address& from, deadline until) {
  return or_throw("ramie: datagram_socket::receive_from",
                  [&](auto& ec) { return receive_from(into, from, ec, until); });
}

descriptor_ref datagram_socket::bind_to(socket_kind kind, const address& where, const char* what, std::error_code* ec) {
  expect_kind(kind, where, what);
  return value_of(open_bound(where), ec, what);
}

}  // namespace ramie::inline v0
