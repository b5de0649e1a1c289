// SPDX-License-Identifier: BSL-1.0
// Unix sockets: connections and datagrams between processes of one machine.
#pragma once

#include <cstdint>
#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/socket.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// The halves of a unix_stream that was split; like those of a tcp_stream.
class unix_reader : public ::ramie::detail::read_half {
 public:
  unix_reader() noexcept = default;

 private:
  friend class unix_stream;
  explicit unix_reader(::ramie::detail::descriptor_ref fd) noexcept : read_half(std::move(fd)) {}
};

class unix_writer : public ::ramie::detail::write_half {
 public:
  unix_writer() noexcept = default;

 private:
  friend class unix_stream;
  explicit unix_writer(::ramie::detail::descriptor_ref fd) noexcept : write_half(std::move(fd)) {}
};

// Who a process was when it connected, listened, or made a pair.
struct unix_credentials {
  std::int32_t process = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

// A connection. Reading, writing and shutting down: stream_socket.
class unix_stream : public stream_socket {
 public:
  // Not connected.
  unix_stream() noexcept = default;

  // Connects to a listener. A cancellation point. Throws std::system_error: no_such_file_or_directory,
  // connection_refused …; usage_error for an address of another kind.
  [[nodiscard]] static unix_stream connect(const address& to, deadline until = {});
  [[nodiscard]] static unix_stream connect(const address& to, std::error_code& ec, deadline until = {});

  // Two that are connected to each other. Does not wait. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair();
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair(std::error_code& ec);

  // Takes a connected descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static unix_stream from_native(int fd);

  struct halves {
    unix_reader reader;
    unix_writer writer;
  };
  // Two halves; nothing is left here. Any fiber or thread that nobody uses it beside.
  [[nodiscard]] halves split() && noexcept;

  // Of the process at the other end. Does not wait. Throws std::system_error.
  [[nodiscard]] unix_credentials peer_credentials() const;
  [[nodiscard]] unix_credentials peer_credentials(std::error_code& ec) const;

 private:
  friend class unix_listener;
  explicit unix_stream(::ramie::detail::descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

// Waits for connections. A path that it is bound to must not exist before, and is not removed afterwards.
class unix_listener : public ::ramie::detail::listening_socket {
 public:
  // Not bound.
  unix_listener() noexcept = default;

  // Bound and listening; of `how` only the backlog counts. Does not wait, and is no cancellation point. Throws
  // std::system_error: address_in_use …; usage_error for an address of another kind.
  [[nodiscard]] static unix_listener bind(const address& where, const listen_options& how = {});
  [[nodiscard]] static unix_listener bind(const address& where, std::error_code& ec) { return bind(where, {}, ec); }
  [[nodiscard]] static unix_listener bind(const address& where, const listen_options& how, std::error_code& ec);

  // Takes a listening descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static unix_listener from_native(int fd);

  // Like tcp_listener::accept, also in what it does while there is no room for another descriptor.
  [[nodiscard]] unix_stream accept(deadline until = {}) { return unix_stream(accept_one(nullptr, nullptr, until)); }
  [[nodiscard]] unix_stream accept(std::error_code& ec, deadline until = {}) {
    return unix_stream(accept_one(nullptr, &ec, until));
  }

 private:
  explicit unix_listener(::ramie::detail::descriptor_ref fd) noexcept : listening_socket(std::move(fd)) {}
};

// Datagrams that are neither lost nor reordered: who sends waits for room. Sending and receiving: datagram_socket.
class unix_datagram : public datagram_socket {
 public:
  // Not open.
  unix_datagram() noexcept = default;

  // Bound. Does not wait, and is no cancellation point. Throws std::system_error: address_in_use …; usage_error for an
  // address of another kind.
  [[nodiscard]] static unix_datagram bind(const address& where);
  [[nodiscard]] static unix_datagram bind(const address& where, std::error_code& ec);
  // Without a name: to send only. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] static unix_datagram unbound();
  [[nodiscard]] static unix_datagram unbound(std::error_code& ec);
  // Two that are connected to each other. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair();
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair(std::error_code& ec);

  // Takes a descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static unix_datagram from_native(int fd);

 private:
  explicit unix_datagram(::ramie::detail::descriptor_ref fd) noexcept : datagram_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
