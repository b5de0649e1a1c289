// SPDX-License-Identifier: BSL-1.0
// What TCP, UDP and unix sockets have in common. See <ramie/tcp.hpp>, <ramie/udp.hpp>, <ramie/unix.hpp>.
//
// Every operation that waits has two forms: one throws std::system_error, whose what() begins with the function's name
// ("ramie: stream_socket::read_some: …"), the other sets an std::error_code (cleared if the call succeeds). Both take a
// deadline, which is never unless one is given; a call that is not done by then fails with std::errc::timed_out. Both
// are cancellation points on every call and throw `cancelled`, with nothing transferred. Both throw std::bad_alloc.
//
// Fibers of any runtime and plain threads may use one socket at once: for example one reads, another writes, a third
// closes. An object must not be destroyed or moved from while another fiber or thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/detail/descriptor_ref.hpp>
#include <ramie/stream.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Several pieces of memory, read into or written from one after the other.
using mutable_buffers = std::span<const std::span<std::byte>>;
using const_buffers = std::span<const std::span<const std::byte>>;

}  // namespace ramie::inline v0

namespace ramie::io_internal {

// What kind of addresses it has.
enum class socket_kind : std::uint8_t { internet, local };

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// A socket of any kind. Every operation on one that was default made, moved from or closed fails with EBADF
// (bad_file_descriptor). The destructor closes.
class socket_base {
 public:
  // Whether it has a descriptor that has been neither closed nor released. Any fiber or thread. Not a cancellation
  // point.
  [[nodiscard]] bool is_open() const noexcept;
  // The descriptor, or -1 if not open. For system calls that ramie has no function for. Don't close it, and don't
  // change its O_NONBLOCK, which the runtime sets as it needs it. Any fiber or thread. Not a cancellation point.
  [[nodiscard]] int native_handle() const noexcept;
  // Closes. Operations under way, of any fiber or thread, end with EBADF. Any fiber or thread. Never waits; not a
  // cancellation point. Idempotent.
  void close() noexcept;
  // Gives the descriptor back: it is yours to close, its O_NONBLOCK is as it was before the runtime set it, and this is
  // not open any more. -1 if it was not open. Throws usage_error while somebody uses it. Never waits, and is not a
  // cancellation point.
  [[nodiscard]] int release_native();

  // The functions below make system calls that don't wait, and are not cancellation points. They throw
  // std::system_error, or set `ec`.

  // The address that it is bound to.
  [[nodiscard]] address local_address() const;
  [[nodiscard]] address local_address(std::error_code& ec) const;
  // The size of the kernel's buffers, in bytes. Linux doubles the value that is set, and has limits of its own.
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
  explicit socket_base(::ramie::runtime_internal::descriptor_ref fd) noexcept : fd_(std::move(fd)) {}
  socket_base(socket_base&&) noexcept = default;
  socket_base& operator=(socket_base&&) noexcept = default;
  ~socket_base() = default;

  // `ec` null: it throws. `what` is the public function: "ramie: stream_socket::peer_address".
  [[nodiscard]] address peer_of(const char* what, std::error_code* ec) const;
  [[nodiscard]] int option(int level, int name, std::error_code& ec) const;
  void set_option(int level, int name, int value, std::error_code& ec);
  [[nodiscard]] const ::ramie::runtime_internal::descriptor_ref& descriptor() const noexcept { return fd_; }
  // Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static ::ramie::runtime_internal::descriptor_ref take_over(int fd);
  // This object has none then.
  [[nodiscard]] ::ramie::runtime_internal::descriptor_ref take_descriptor() noexcept { return std::move(fd_); }

 private:
  ::ramie::runtime_internal::descriptor_ref fd_;
};

// A connection that carries bytes: what a tcp_stream and a unix_stream have in common. A `reader` and a `writer` in the
// sense of <ramie/stream.hpp>. One fiber may read while another writes; if several read at once, each byte goes to one
// of them, which one is not defined.
//
// A peer that is gone is an error (EPIPE, ECONNRESET) or the end of the stream, never a signal.
class stream_socket : public socket_base {
 public:
  // Waits until there is something to read and returns how many bytes were read, at most as many as `into` has room
  // for. 0 is the end of the stream: the peer has shut down or closed. If `into` is empty: 0 at once.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  // The same into several pieces of memory; one call uses the first 64 that are not empty.
  [[nodiscard]] std::size_t read_some(mutable_buffers into, deadline until = {});
  [[nodiscard]] std::size_t read_some(mutable_buffers into, std::error_code& ec, deadline until = {});

  // Waits until there is room and returns how many bytes were written: at least one, unless `from` is empty. The
  // second two from several pieces of memory, the first 64 that are not empty.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  [[nodiscard]] std::size_t write_some(const_buffers from, deadline until = {});
  [[nodiscard]] std::size_t write_some(const_buffers from, std::error_code& ec, deadline until = {});

  // Reads until `into` is full. If the stream ends before: stream_errc::end_of_stream. Like the function of that name
  // in <ramie/stream.hpp> it throws transfer_error, which says how many bytes were read; the forms with an error_code
  // return that. A caller that is cancelled on the way does not learn it.
  void read_exactly(std::span<std::byte> into, deadline until = {});
  std::size_t read_exactly(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  void read_exactly(mutable_buffers into, deadline until = {});
  std::size_t read_exactly(mutable_buffers into, std::error_code& ec, deadline until = {});

  // Writes all of `from`; errors like those of read_exactly.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(std::string_view from, deadline until = {}) { write_all(bytes_of(from), until); }
  std::size_t write_all(std::string_view from, std::error_code& ec, deadline until = {}) {
    return write_all(bytes_of(from), ec, until);
  }
  void write_all(const_buffers from, deadline until = {});
  std::size_t write_all(const_buffers from, std::error_code& ec, deadline until = {});

  // write: no more is sent, and the peer comes to the end of the stream after what was sent before. read: no more is
  // read. both: both. Does not wait, and is not a cancellation point. Throws std::system_error.
  void shutdown(shutdown_part part);
  void shutdown(shutdown_part part, std::error_code& ec);

  // The address of the peer. Does not wait, and is not a cancellation point. Throws std::system_error, also if the peer
  // is gone.
  [[nodiscard]] address peer_address() const { return peer_of("ramie: stream_socket::peer_address", nullptr); }
  [[nodiscard]] address peer_address(std::error_code& ec) const { return peer_of("", &ec); }

 protected:
  stream_socket() noexcept = default;
  explicit stream_socket(::ramie::runtime_internal::descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
  // `ec` null: throws; and usage_error for an address of another kind.
  [[nodiscard]] static ::ramie::runtime_internal::descriptor_ref connect_to(
      ::ramie::io_internal::socket_kind kind, const address& to, const char* what, std::error_code* ec, deadline until);
};

// What a datagram_socket has received.
struct received_datagram {
  std::size_t size = 0;       // bytes that were stored
  std::size_t full_size = 0;  // bytes that the datagram had
  // Whether the rest of the datagram is lost.
  [[nodiscard]] bool truncated() const noexcept { return full_size > size; }
};

// Datagrams: what a udp_socket and a unix_datagram have in common.
class datagram_socket : public socket_base {
 public:
  // From now on send() sends to `peer`, and only datagrams from there are received. Does not wait, and is not a
  // cancellation point. Throws std::system_error.
  void connect(const address& peer);
  void connect(const address& peer, std::error_code& ec);

  // Sends one datagram, to the connected peer or to `to`. It is sent as a whole or not at all (message_size if it is
  // too long). A datagram may be empty.
  void send(std::span<const std::byte> what, deadline until = {});
  void send(std::span<const std::byte> what, std::error_code& ec, deadline until = {});
  void send_to(std::span<const std::byte> what, const address& to, deadline until = {});
  void send_to(std::span<const std::byte> what, const address& to, std::error_code& ec, deadline until = {});

  // Waits for a datagram; `from` is set to its sender. Bytes that `into` has no room for are lost:
  // received_datagram::truncated.
  [[nodiscard]] received_datagram receive(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] received_datagram receive(std::span<std::byte> into, std::error_code& ec, deadline until = {});
  [[nodiscard]] received_datagram receive_from(std::span<std::byte> into, address& from, deadline until = {});
  [[nodiscard]] received_datagram receive_from(std::span<std::byte> into, address& from, std::error_code& ec,
                                               deadline until = {});

  // The address that it is connected to. Does not wait, and is not a cancellation point. Throws std::system_error.
  [[nodiscard]] address peer_address() const { return peer_of("ramie: datagram_socket::peer_address", nullptr); }
  [[nodiscard]] address peer_address(std::error_code& ec) const { return peer_of("", &ec); }

 protected:
  datagram_socket() noexcept = default;
  explicit datagram_socket(::ramie::runtime_internal::descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
  // `ec` null: throws; and usage_error for an address of another kind.
  [[nodiscard]] static ::ramie::runtime_internal::descriptor_ref bind_to(::ramie::io_internal::socket_kind kind,
                                                                         const address& where, const char* what,
                                                                         std::error_code* ec);
};

// How a listener is bound.
struct listen_options {
  int backlog = 4096;         // connections that may wait to be accepted; the system has a limit of its own
  bool reuse_address = true;  // SO_REUSEADDR: although connections of an earlier listener linger (not of unix sockets)
  bool reuse_port = false;    // SO_REUSEPORT: several listeners share an address (not of unix sockets)
  bool ipv6_only = false;     // IPV6_V6ONLY: a listener at ipv6_any() takes no IPv4 connections
};

}  // namespace ramie::inline v0

namespace ramie::io_internal {

using namespace runtime_internal;

// What listeners have in common.
class listening_socket : public socket_base {
 protected:
  listening_socket() noexcept = default;
  explicit listening_socket(descriptor_ref fd) noexcept : socket_base(std::move(fd)) {}
  // `ec` null: throws, and waits while there is no room for another descriptor. See tcp_listener::accept.
  [[nodiscard]] descriptor_ref accept_one(address* peer, const char* what, std::error_code* ec, deadline until);
  // `ec` null: throws; and usage_error for an address of another kind.
  [[nodiscard]] static descriptor_ref listen_at(socket_kind kind, const address& where, const listen_options& how,
                                                const char* what, std::error_code* ec);
};

// One half of a connection that was split. close and release_native are of the whole connection: the other half is not
// open then, either.
class connection_half : protected stream_socket {
 public:
  using stream_socket::close;
  using stream_socket::is_open;
  using stream_socket::local_address;
  using stream_socket::native_handle;
  using stream_socket::peer_address;
  using stream_socket::release_native;

 protected:
  connection_half() noexcept = default;
  explicit connection_half(descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// The halves of a connection that was split (tcp_stream::split, unix_stream::split), for two fibers. The connection is
// closed when both are gone, or when one of them is asked to close it. release_native() of one gives back the
// descriptor of the whole connection, without shutting anything down.
template <class Stream>
class read_half : public ::ramie::io_internal::connection_half {
 public:
  // Not open.
  read_half() noexcept = default;
  using stream_socket::read_exactly;
  using stream_socket::read_some;

 private:
  friend Stream;
  explicit read_half(::ramie::runtime_internal::descriptor_ref fd) noexcept : connection_half(std::move(fd)) {}
};

// Its destructor shuts writing down: the peer comes to the end of the stream.
template <class Stream>
class write_half : public ::ramie::io_internal::connection_half {
 public:
  // Not open.
  write_half() noexcept = default;
  write_half(write_half&&) noexcept = default;
  write_half& operator=(write_half&& other) noexcept {
    if (this != &other) {
      shutdown_silently();
      connection_half::operator=(std::move(other));
    }
    return *this;
  }
  ~write_half() { shutdown_silently(); }
  using stream_socket::write_all;
  using stream_socket::write_some;

  // No more is written, and the peer comes to the end of the stream: shutdown of the part that this half has. The
  // destructor does it, too. Does not wait, and is no cancellation point. Throws std::system_error.
  void shutdown() { stream_socket::shutdown(shutdown_part::write); }
  void shutdown(std::error_code& ec) { stream_socket::shutdown(shutdown_part::write, ec); }

 private:
  friend Stream;
  explicit write_half(::ramie::runtime_internal::descriptor_ref fd) noexcept : connection_half(std::move(fd)) {}
  // A peer that is gone already needs no end of the stream.
  void shutdown_silently() noexcept {
    std::error_code ignored;
    shutdown(ignored);
  }
};

// What split() returns.
template <class Stream>
struct stream_halves {
  read_half<Stream> reader;
  write_half<Stream> writer;
};

}  // namespace ramie::inline v0
