// SPDX-License-Identifier: BSL-1.0
// Reading and writing connections, TCP and unix alike. Several pieces go by sendmsg and recvmsg: writev would raise
// SIGPIPE.
#include <ramie/socket.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "../pieces.hpp"
#include "../stream/transfer.hpp"
#include "net.hpp"

namespace ramie::inline v0 {

using namespace io_internal;
using platform::io_code;
using platform::io_operation;

namespace {

const wait_reason waits_to_read{"read"};
const wait_reason waits_to_write{"write"};

using bytes_in = std::span<std::byte>;
using bytes_out = std::span<const std::byte>;

std::int32_t read_into(const descriptor_ref& fd, bytes_in into, deadline until) {
  io_operation op;
  op.code = into.empty() ? io_code::nothing : io_code::receive;
  op.memory = into.data();
  op.count = static_cast<std::uint32_t>(std::min(into.size(), most_at_once));
  return perform(fd, op, waits_to_read, until);
}

std::int32_t write_from(const descriptor_ref& fd, bytes_out from, deadline until) {
  io_operation op;
  op.code = from.empty() ? io_code::nothing : io_code::send;
  op.memory = const_cast<std::byte*>(from.data());
  op.count = static_cast<std::uint32_t>(std::min(from.size(), most_at_once));
  return perform(fd, op, waits_to_write, until);
}

template <class Buffers>
std::int32_t transfer_pieces(const descriptor_ref& fd, Buffers pieces, std::size_t skip, deadline until) {
  constexpr bool reads = std::is_same_v<Buffers, mutable_buffers>;
  iovec vectors[pieces_at_once];
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = list_pieces(pieces, skip, vectors);
  io_operation op;
  op.code = message.msg_iovlen == 0 ? io_code::nothing : reads ? io_code::receive_message : io_code::send_message;
  op.memory = &message;
  return perform(fd, op, reads ? waits_to_read : waits_to_write, until);
}

// Pieces that are still to be transferred, without the first `skip` bytes.
template <class Buffers>
struct pieces_left {
  Buffers pieces;
  std::size_t skip = 0;
  [[nodiscard]] bool empty() const noexcept { return pieces.empty(); }
};

template <class Byte>
void skip_transferred(std::span<Byte>& rest, std::size_t count) noexcept {
  rest = rest.subspan(count);
}
// Afterwards the first piece, if any, is not empty.
template <class Buffers>
void skip_transferred(pieces_left<Buffers>& rest, std::size_t count) noexcept {
  rest.skip += count;
  while (!rest.empty() && rest.skip >= rest.pieces.front().size()) {
    rest.skip -= rest.pieces.front().size();
    rest.pieces = rest.pieces.subspan(1);
  }
}

// Calls step() until all is transferred or `ec` says what ended it too early; once if there is nothing to transfer, for
// the cancellation point. Returns how much was transferred.
template <class Rest, class Step>
std::size_t repeat(Rest rest, std::error_code& ec, Step step) {
  std::size_t done = 0;
  do {
    const std::int32_t result = step(rest);
    const std::size_t count = value_or_error(result, ec);
    if (result == 0 && !rest.empty()) ec = stream_errc::end_of_stream;
    if (ec) break;
    done += count;
    skip_transferred(rest, count);
  } while (!rest.empty());
  return done;
}

template <class Buffers>
std::size_t transfer_all_pieces(const descriptor_ref& fd, Buffers all, std::error_code& ec, deadline until) {
  pieces_left<Buffers> rest{all};
  skip_transferred(rest, 0);
  return repeat(rest, ec, [&](const auto& left) { return transfer_pieces(fd, left.pieces, left.skip, until); });
}

}  // namespace

std::size_t stream_socket::read_some(bytes_in into, std::error_code& ec, deadline until) {
  return value_or_error(read_into(descriptor(), into, until), ec);
}
std::size_t stream_socket::read_some(mutable_buffers into, std::error_code& ec, deadline until) {
  return value_or_error(transfer_pieces(descriptor(), into, 0, until), ec);
}
std::size_t stream_socket::write_some(bytes_out from, std::error_code& ec, deadline until) {
  return value_or_error(write_from(descriptor(), from, until), ec);
}
std::size_t stream_socket::write_some(const_buffers from, std::error_code& ec, deadline until) {
  return value_or_error(transfer_pieces(descriptor(), from, 0, until), ec);
}

std::size_t stream_socket::read_exactly(bytes_in into, std::error_code& ec, deadline until) {
  return repeat(into, ec, [&](bytes_in rest) { return read_into(descriptor(), rest, until); });
}
std::size_t stream_socket::read_exactly(mutable_buffers into, std::error_code& ec, deadline until) {
  return transfer_all_pieces(descriptor(), into, ec, until);
}
std::size_t stream_socket::write_all(bytes_out from, std::error_code& ec, deadline until) {
  return repeat(from, ec, [&](bytes_out rest) { return write_from(descriptor(), rest, until); });
}
std::size_t stream_socket::write_all(const_buffers from, std::error_code& ec, deadline until) {
  return transfer_all_pieces(descriptor(), from, ec, until);
}

void stream_socket::shutdown(shutdown_part part, std::error_code& ec) {
  const int how = part == shutdown_part::read ? SHUT_RD : part == shutdown_part::write ? SHUT_WR : SHUT_RDWR;
  ec = error_of(call_on(descriptor(), [&](int fd) { return ::shutdown(fd, how); }));
}

// The same, throwing.

std::size_t stream_socket::read_some(bytes_in into, deadline until) {
  return or_throw("ramie: stream_socket::read_some", [&](auto& ec) { return read_some(into, ec, until); });
}
std::size_t stream_socket::read_some(mutable_buffers into, deadline until) {
  return or_throw("ramie: stream_socket::read_some", [&](auto& ec) { return read_some(into, ec, until); });
}
std::size_t stream_socket::write_some(bytes_out from, deadline until) {
  return or_throw("ramie: stream_socket::write_some", [&](auto& ec) { return write_some(from, ec, until); });
}
std::size_t stream_socket::write_some(const_buffers from, deadline until) {
  return or_throw("ramie: stream_socket::write_some", [&](auto& ec) { return write_some(from, ec, until); });
}

void stream_socket::read_exactly(bytes_in into, deadline until) {
  (void)transferred_or_throw("ramie: stream_socket::read_exactly",
                             [&](auto& ec) { return read_exactly(into, ec, until); });
}
void stream_socket::read_exactly(mutable_buffers into, deadline until) {
  (void)transferred_or_throw("ramie: stream_socket::read_exactly",
                             [&](auto& ec) { return read_exactly(into, ec, until); });
}
void stream_socket::write_all(bytes_out from, deadline until) {
  (void)transferred_or_throw("ramie: stream_socket::write_all", [&](auto& ec) { return write_all(from, ec, until); });
}
void stream_socket::write_all(const_buffers from, deadline until) {
  (void)transferred_or_throw("ramie: stream_socket::write_all", [&](auto& ec) { return write_all(from, ec, until); });
}

void stream_socket::shutdown(shutdown_part part) {
  or_throw("ramie: stream_socket::shutdown", [&](auto& ec) { shutdown(part, ec); });
}

descriptor_ref stream_socket::connect_to(socket_kind kind, const address& to, const char* what, std::error_code* ec,
                                         deadline until) {
  expect_kind(kind, to, what);
  return value_of(open_connected(to, until), ec, what);
}

}  // namespace ramie::inline v0
