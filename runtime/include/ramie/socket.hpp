// SPDX-License-Identifier: BSL-1.0
// What TCP, UDP and unix sockets have in common. See <ramie/tcp.hpp>, <ramie/udp.hpp>, <ramie/unix.hpp>.
//
// Of every operation that waits there are two: one throws std::system_error with its name, the other puts the error
// into an std::error_code (cleared if all is well). Both take a deadline, never unless one is given; what comes too
// late is std::errc::timed_out. Both are cancellation points on every call and throw `cancelled`, with nothing
// transferred. Both throw std::bad_alloc.
//
// Fibers of any runtime and plain threads may use one socket at once: for example one reads, another writes, a third
// closes. An object must not be destroyed or moved from while another uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/detail/descriptor_ref.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Several pieces of memory, read into or written from one after the other.
using mutable_buffers = std::span<const std::span<std::byte>>;
using const_buffers = std::span<const std::span<const std::byte>>;

enum class shutdown_part : std::uint8_t { read, write, both };

// A socket of any kind. One that is default made, moved from or closed fails with EBADF (bad_file_descriptor) whatever
// is tried. The destructor closes.
class socket_base {
 public:
  [[nodiscard]] bool is_open() const noexcept;
  // Its number, for system calls that there is nothing for here; -1 if it is not open. It may be closed by others at
  // any moment, must not be closed by you, and its O_NONBLOCK is the runtime's.
  [[nodiscard]] int native_handle() const noexcept;
  // Closes. Operations under way, of whomever, end with EBADF. Never waits. Once or more.
  void close() noexcept;

  // The functions below are system calls that don't wait, and no cancellation points. They throw std::system_error, or
  // set `ec`.

  // Where it is bound to.
  [[nodiscard]] address local_address() const;
  [[nodiscard]] address local_address(std::error_code& ec) const;
  // Bytes that the kernel keeps. It doubles what it is given, and has limits of its own.
  [[nodiscard]] std::size_t send_buffer_size() const;
  [[nodiscard]] std::size_t send_buffer_size(std::error_code& ec) const;
  void set_send_buffer_size(std::size_t bytes);
  void set_send_buffer_size(std::size_t bytes, std::error_code& ec);
  [[nodiscard]] std::size_t receive_buffer_size() const;
  [[nodiscard]] std::size_t receive_buffer_size(std::error_code& ec) const;
  void set_receive_buffer_size(std::size_t bytes);
  void set_receive_buffer_size(std::size_t bytes, std::error_code& ec);

 protected:
  socket_base() noexcept = default;
  explicit socket_base(::ramie::detail::descriptor_ref fd) noexcept : fd_(std::move(fd)) {}
  socket_base(socket_base&&) noexcept = default;
  socket_base& operator=(socket_base&&) noexcept = default;
  ~socket_base() = default;

  // `ec` null: they throw.
  [[nodiscard]] address peer_of(std::error_code* ec) const;
  [[nodiscard]] int option(int level, int name, const char* what, std::error_code* ec) const;
  void set_option(int level, int name, int value, const char* what, std::error_code* ec);
  [[nodiscard]] const ::ramie::detail::descriptor_ref& descriptor() const noexcept { return fd_; }
  // Nothing is left behind.
  [[nodiscard]] ::ramie::detail::descriptor_ref take_descriptor() noexcept { return std::move(fd_); }

 private:
  ::ramie::detail::descriptor_ref fd_;
};

// A connection that carries bytes: what a tcp_stream and a unix_stream have in common. A `reader` and a `writer` in the
// sense of <ramie/stream.hpp>. One may read while another writes; what several read at once is anybody's.
//
// A peer that is gone is an error (EPIPE, ECONNRESET) or the end of the stream, never a signal.
class stream_socket : public socket_base {
 public:
  // Waits until there is something and returns how much was read, at most what there is room for. 0 is the end of the
  // stream: the peer has shut down or closed. No room: 0 at once.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  // The same into several pieces, of which the first 64 that are not empty take part.
  [[nodiscard]] std::size_t read_some(mutable_buffers into, deadline until = {});
  [[nodiscard]] std::size_t read_some(mutable_buffers into, std::error_code& ec, deadline until = {});

  // Waits until there is room and returns how much was written: at least one byte, unless there are none.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  [[nodiscard]] std::size_t write_some(const_buffers from, deadline until = {});
  [[nodiscard]] std::size_t write_some(const_buffers from, std::error_code& ec, deadline until = {});

  // Reads until there is no room left. If the stream ends before: stream_errc::end_of_stream. Like the function of that
  // name in <ramie/stream.hpp> it throws transfer_error, which tells how much was read; the forms with an error_code
  // return it. Who is cancelled on the way does not learn it.
  void read_exactly(std::span<std::byte> into, deadline until = {});
  std::size_t read_exactly(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  void read_exactly(mutable_buffers into, deadline until = {});
  std::size_t read_exactly(mutable_buffers into, std::error_code& ec, deadline until = {});

  // Writes all of it. Likewise.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(const_buffers from, deadline until = {});
  std::size_t write_all(const_buffers from, std::error_code& ec, deadline until = {});

  // No more is sent, and the peer comes to the end of the stream when it has read what was; no more is read; both. Does
  // not wait, and is no cancellation point. Throws std::system_error.
  void shutdown(shutdown_part part);
  void shutdown(shutdown_part part, std::error_code& ec);

  // Who it is connected to. Throws std::system_error, also if the peer has gone meanwhile.
  [[nodiscard]] address peer_address() const { return peer_of(nullptr); }
  [[nodiscard]] address peer_address(std::error_code& ec) const { return peer_of(&ec); }

 protected:
  stream_socket() noexcept = default;
  explicit stream_socket(::ramie::detail::descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
};

// Datagrams: what a udp_socket and a unix_datagram have in common.
class datagram_socket : public socket_base {
 public:
  struct received {
    std::size_t size = 0;       // bytes that were stored
    std::size_t full_size = 0;  // of the datagram
    // The rest of the datagram is lost.
    [[nodiscard]] bool truncated() const noexcept { return full_size > size; }
  };

  // From now on datagrams go there, and come from there only. Does not wait, and is no cancellation point. Throws
  // std::system_error.
  void connect(const address& peer);
  void connect(const address& peer, std::error_code& ec);

  // Sends one datagram, to where it is connected or to `to`. It is sent as a whole or not at all (message_size: too
  // long). A datagram may be empty.
  void send(std::span<const std::byte> what, deadline until = {});
  void send(std::span<const std::byte> what, std::error_code& ec, deadline until = {});
  void send_to(std::span<const std::byte> what, const address& to, deadline until = {});
  void send_to(std::span<const std::byte> what, const address& to, std::error_code& ec, deadline until = {});

  // Waits for a datagram; `from` is where it came from. What it has no room for is lost, and told.
  [[nodiscard]] received receive(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] received receive(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  [[nodiscard]] received receive_from(std::span<std::byte> into, address& from, deadline until = {});
  [[nodiscard]] received receive_from(std::span<std::byte> into, address& from, std::error_code& ec,
                                      deadline until = {});

  // Where it is connected. Throws std::system_error.
  [[nodiscard]] address peer_address() const { return peer_of(nullptr); }
  [[nodiscard]] address peer_address(std::error_code& ec) const { return peer_of(&ec); }

 protected:
  datagram_socket() noexcept = default;
  explicit datagram_socket(::ramie::detail::descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
};

// How a listener is bound.
struct listen_options {
  int backlog = 4096;         // connections that wait to be accepted; the system has a limit of its own
  bool reuse_address = true;  // although connections of an earlier listener linger there (not of unix sockets)
  bool reuse_port = false;    // several listeners at one address share what comes (not of unix sockets)
  bool ipv6_only = false;     // one that is bound to any IPv6 address takes no IPv4
};

}  // namespace ramie::inline v0

namespace ramie::detail {

// What listeners have in common.
class listening_socket : public socket_base {
 protected:
  listening_socket() noexcept = default;
  explicit listening_socket(descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
  // `ec` null: throws, and waits while there is no room for another descriptor. See tcp_listener::accept.
  [[nodiscard]] descriptor_ref accept_one(address* peer, std::error_code* ec, deadline until);
  // `ec` null: throws.
  [[nodiscard]] static descriptor_ref listen_at(const address& where, const listen_options& how, std::error_code* ec);
};

// One half of a connection that was split.
class read_half : private stream_socket {
 public:
  using stream_socket::close;
  using stream_socket::is_open;
  using stream_socket::local_address;
  using stream_socket::native_handle;
  using stream_socket::peer_address;
  using stream_socket::read_exactly;
  using stream_socket::read_some;

 protected:
  read_half() noexcept = default;
  explicit read_half(descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

class write_half : private stream_socket {
 public:
  using stream_socket::close;
  using stream_socket::is_open;
  using stream_socket::local_address;
  using stream_socket::native_handle;
  using stream_socket::peer_address;
  using stream_socket::write_all;
  using stream_socket::write_some;

  // No more is written, and the peer comes to the end of the stream. Like shutdown; the destructor does it, too.
  void finish() { shutdown(shutdown_part::write); }
  void finish(std::error_code& ec) { shutdown(shutdown_part::write, ec); }

 protected:
  write_half() noexcept = default;
  explicit write_half(descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
  write_half(write_half&&) noexcept = default;
  write_half& operator=(write_half&& other) noexcept;
  ~write_half();
};

}  // namespace ramie::detail
