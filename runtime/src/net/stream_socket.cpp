// SPDX-License-Identifier: BSL-1.0
// Reading and writing connections of any kind. Several pieces go by sendmsg and recvmsg: writev would raise SIGPIPE.
#include <ramie/socket.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "../io/pieces.hpp"
#include "../stream/transfer.hpp"
#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::list_pieces;
using detail::most_at_once;
using detail::outcome_of;
using detail::perform;
using detail::pieces_at_once;
using detail::value_or_error;
using detail::value_or_throw;
using detail::wait_reason;
using detail::with_fd_of;
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

std::int32_t read_into(const descriptor_ref& fd, mutable_buffers into, deadline until) {
  return transfer_pieces(fd, into, 0, until);
}
std::int32_t write_from(const descriptor_ref& fd, const_buffers from, deadline until) {
  return transfer_pieces(fd, from, 0, until);
}

// How far an operation of several steps has come, and what ended it too early.
struct stream_progress {
  std::size_t count = 0;
  std::error_code error;

  void or_throw(const char* what) const { detail::throw_transfer_error_if(error, what, count); }
  std::size_t or_error(std::error_code& ec) const noexcept {
    ec = error;
    return count;
  }
};

// Several pieces, without so many bytes at the beginning of the first.
template <class Buffers>
struct pieces_left {
  Buffers pieces;
  std::size_t skip = 0;
  [[nodiscard]] bool empty() const noexcept { return pieces.empty(); }
};

template <class Byte>
void pass(std::span<Byte>& rest, std::size_t count) noexcept {
  rest = rest.subspan(count);
}
// Then the first piece, if any, is not empty.
template <class Buffers>
void pass(pieces_left<Buffers>& rest, std::size_t count) noexcept {
  rest.skip += count;
  while (!rest.empty() && rest.skip >= rest.pieces.front().size()) {
    rest.skip -= rest.pieces.front().size();
    rest.pieces = rest.pieces.subspan(1);
  }
}

// Also if there is nothing to transfer, step() is called: once.
template <class Rest, class Step>
stream_progress repeat(Rest rest, Step step) {
  stream_progress so_far;
  do {
    const std::int32_t result = step(rest);
    const std::size_t count = value_or_error(result, so_far.error);
    if (result == 0 && !rest.empty()) so_far.error = stream_errc::end_of_stream;
    if (so_far.error) break;
    so_far.count += count;
    pass(rest, count);
  } while (!rest.empty());
  return so_far;
}

template <class Buffers>
stream_progress transfer_all_pieces(const descriptor_ref& fd, Buffers all, deadline until) {
  pieces_left<Buffers> rest{all};
  pass(rest, 0);
  return repeat(rest, [&](const auto& left) { return transfer_pieces(fd, left.pieces, left.skip, until); });
}

stream_progress read_all(const descriptor_ref& fd, bytes_in into, deadline until) {
  return repeat(into, [&](bytes_in rest) { return read_into(fd, rest, until); });
}
stream_progress write_all_of(const descriptor_ref& fd, bytes_out from, deadline until) {
  return repeat(from, [&](bytes_out rest) { return write_from(fd, rest, until); });
}

}  // namespace

std::size_t stream_socket::read_some(bytes_in into, deadline until) {
  return value_or_throw(read_into(descriptor(), into, until), "ramie: read_some");
}
std::size_t stream_socket::read_some(bytes_in into, std::error_code& ec, deadline until) {
  return value_or_error(read_into(descriptor(), into, until), ec);
}
std::size_t stream_socket::read_some(mutable_buffers into, deadline until) {
  return value_or_throw(read_into(descriptor(), into, until), "ramie: read_some");
}
std::size_t stream_socket::read_some(mutable_buffers into, std::error_code& ec, deadline until) {
  return value_or_error(read_into(descriptor(), into, until), ec);
}

std::size_t stream_socket::write_some(bytes_out from, deadline until) {
  return value_or_throw(write_from(descriptor(), from, until), "ramie: write_some");
}
std::size_t stream_socket::write_some(bytes_out from, std::error_code& ec, deadline until) {
  return value_or_error(write_from(descriptor(), from, until), ec);
}
std::size_t stream_socket::write_some(const_buffers from, deadline until) {
  return value_or_throw(write_from(descriptor(), from, until), "ramie: write_some");
}
std::size_t stream_socket::write_some(const_buffers from, std::error_code& ec, deadline until) {
  return value_or_error(write_from(descriptor(), from, until), ec);
}

void stream_socket::read_exactly(bytes_in into, deadline until) {
  read_all(descriptor(), into, until).or_throw("ramie: read_exactly");
}
std::size_t stream_socket::read_exactly(bytes_in into, std::error_code& ec, deadline until) {
  return read_all(descriptor(), into, until).or_error(ec);
}
void stream_socket::read_exactly(mutable_buffers into, deadline until) {
  transfer_all_pieces(descriptor(), into, until).or_throw("ramie: read_exactly");
}
std::size_t stream_socket::read_exactly(mutable_buffers into, std::error_code& ec, deadline until) {
  return transfer_all_pieces(descriptor(), into, until).or_error(ec);
}

void stream_socket::write_all(bytes_out from, deadline until) {
  write_all_of(descriptor(), from, until).or_throw("ramie: write_all");
}
std::size_t stream_socket::write_all(bytes_out from, std::error_code& ec, deadline until) {
  return write_all_of(descriptor(), from, until).or_error(ec);
}
void stream_socket::write_all(const_buffers from, deadline until) {
  transfer_all_pieces(descriptor(), from, until).or_throw("ramie: write_all");
}
std::size_t stream_socket::write_all(const_buffers from, std::error_code& ec, deadline until) {
  return transfer_all_pieces(descriptor(), from, until).or_error(ec);
}

namespace {

std::int32_t shut_down(const descriptor_ref& fd, shutdown_part part) {
  const int how = part == shutdown_part::read ? SHUT_RD : part == shutdown_part::write ? SHUT_WR : SHUT_RDWR;
  return with_fd_of(fd, [&](int number) { return outcome_of(::shutdown(number, how)); });
}

}  // namespace

void stream_socket::shutdown(shutdown_part part) {
  (void)value_or_throw(shut_down(descriptor(), part), "ramie: shutdown");
}
void stream_socket::shutdown(shutdown_part part, std::error_code& ec) {
  (void)value_or_error(shut_down(descriptor(), part), ec);
}

}  // namespace ramie::inline v0

namespace ramie::detail {

write_half::~write_half() {
  // A peer that has gone already needs no telling.
  (void)shut_down(descriptor(), shutdown_part::write);
}

write_half& write_half::operator=(write_half&& other) noexcept {
  if (this != &other) {
    (void)shut_down(descriptor(), shutdown_part::write);
    stream_socket::operator=(std::move(other));
  }
  return *this;
}

}  // namespace ramie::detail
