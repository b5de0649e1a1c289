// SPDX-License-Identifier: BSL-1.0
// Reading and writing connections of any kind. Several pieces go by sendmsg and recvmsg: writev would raise SIGPIPE.
#include <ramie/socket.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "net.hpp"

namespace ramie::inline v0 {

using detail::descriptor_ref;
using detail::outcome_of;
using detail::perform;
using detail::value_or_error;
using detail::value_or_throw;
using detail::wait_reason;
using detail::with_fd_of;
using platform::io_code;
using platform::io_operation;

namespace {

const wait_reason waits_to_read{"read"};
const wait_reason waits_to_write{"write"};

// No system call transfers more than this.
constexpr std::size_t most_at_once = 0x7ffff000;
constexpr std::size_t pieces_at_once = 64;

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

// The first pieces, without the empty ones, and without so many bytes at the beginning of the first.
template <class Buffers>
std::size_t list_pieces(Buffers from, std::size_t skip, std::span<iovec, pieces_at_once> out) noexcept {
  std::size_t count = 0;
  std::size_t room = most_at_once;
  for (std::size_t i = 0; i < from.size() && count < out.size() && room != 0; ++i) {
    const auto piece = from[i].subspan(i == 0 ? skip : 0);
    if (piece.empty()) continue;
    const std::size_t size = std::min(piece.size(), room);
    out[count++] = {const_cast<std::byte*>(piece.data()), size};
    room -= size;
  }
  return count;
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

// How far an operation of several steps has come. At the end of the stream it ends without an error.
struct stream_progress {
  std::size_t count = 0;
  std::int32_t error = 0;

  std::size_t or_throw(const char* what) const {
    (void)value_or_throw(error, what);
    return count;
  }
  std::size_t or_error(std::error_code& ec) const noexcept {
    (void)value_or_error(error, ec);
    return count;
  }
};

template <class Bytes, class Step>
stream_progress repeat(Bytes all, Step step) {
  stream_progress so_far;
  do {
    const std::int32_t result = step(all.subspan(so_far.count));
    if (result <= 0) {
      so_far.error = result;
      break;
    }
    so_far.count += static_cast<std::size_t>(result);
  } while (so_far.count < all.size());
  return so_far;
}

template <class Buffers>
stream_progress transfer_all_pieces(const descriptor_ref& fd, Buffers rest, deadline until) {
  stream_progress so_far;
  std::size_t skip = 0;  // of the first
  do {
    const std::int32_t result = transfer_pieces(fd, rest, skip, until);
    if (result <= 0) {
      so_far.error = result;
      break;
    }
    so_far.count += static_cast<std::size_t>(result);
    skip += static_cast<std::size_t>(result);
    while (!rest.empty() && skip >= rest.front().size()) {
      skip -= rest.front().size();
      rest = rest.subspan(1);
    }
  } while (!rest.empty());
  return so_far;
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

std::size_t stream_socket::read_exactly(bytes_in into, deadline until) {
  return read_all(descriptor(), into, until).or_throw("ramie: read_exactly");
}
std::size_t stream_socket::read_exactly(bytes_in into, std::error_code& ec, deadline until) {
  return read_all(descriptor(), into, until).or_error(ec);
}
std::size_t stream_socket::read_exactly(mutable_buffers into, deadline until) {
  return transfer_all_pieces(descriptor(), into, until).or_throw("ramie: read_exactly");
}
std::size_t stream_socket::read_exactly(mutable_buffers into, std::error_code& ec, deadline until) {
  return transfer_all_pieces(descriptor(), into, until).or_error(ec);
}

void stream_socket::write_all(bytes_out from, deadline until) {
  (void)write_all_of(descriptor(), from, until).or_throw("ramie: write_all");
}
std::size_t stream_socket::write_all(bytes_out from, std::error_code& ec, deadline until) {
  return write_all_of(descriptor(), from, until).or_error(ec);
}
void stream_socket::write_all(const_buffers from, deadline until) {
  (void)transfer_all_pieces(descriptor(), from, until).or_throw("ramie: write_all");
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
