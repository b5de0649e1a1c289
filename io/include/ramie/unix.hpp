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

class unix_stream;
// What split() of a stream gives.
using unix_reader = read_half<unix_stream>;
using unix_writer = write_half<unix_stream>;

// The process at the other end, as it was when it connected, listened, or made a pair.
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
  [[nodiscard]] static unix_stream connect(const address& to, deadline until = {}) {
    return unix_stream(connect_to(kind, to, "ramie: unix_stream::connect", nullptr, until));
  }
  [[nodiscard]] static unix_stream connect(const address& to, std::error_code& ec, deadline until = {}) {
    return unix_stream(connect_to(kind, to, "ramie: unix_stream::connect", &ec, until));
  }

  // Two that are connected to each other. Does not wait, and is not a cancellation point. Throws std::system_error,
  // std::bad_alloc.
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair();
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair(std::error_code& ec);

  // Takes over a connected descriptor, like tcp_stream::from_native.
  [[nodiscard]] static unix_stream from_native(int fd) { return unix_stream(take_over(fd)); }

  using halves = stream_halves<unix_stream>;
  // Two halves; nothing is left here. Any fiber or thread, while nobody else uses the stream. Not a cancellation point.
  [[nodiscard]] halves split() && noexcept;

  // Which process, of which user and group, is at the other end (SO_PEERCRED): as the system noted it when the
  // connection was made, so that the peer can't pretend. Any fiber or thread. Does not wait, and is not a cancellation
  // point. Throws std::system_error.
  [[nodiscard]] unix_credentials peer_credentials() const;
  [[nodiscard]] unix_credentials peer_credentials(std::error_code& ec) const;

 private:
  friend class unix_listener;
  static constexpr auto kind = ::ramie::io_internal::socket_kind::local;
  explicit unix_stream(::ramie::runtime_internal::descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

// Waits for connections. A path that it is bound to must not exist before, and is not removed afterwards.
class unix_listener : public ::ramie::io_internal::listening_socket {
 public:
  // Not bound.
  unix_listener() noexcept = default;

  // Bound and listening; of `how` only the backlog is used. Does not wait, and is not a cancellation point. Throws
  // std::system_error: address_in_use …; usage_error for an address of another kind.
  [[nodiscard]] static unix_listener bind(const address& where, const listen_options& how = {}) {
    return unix_listener(listen_at(kind, where, how, "ramie: unix_listener::bind", nullptr));
  }
  [[nodiscard]] static unix_listener bind(const address& where, std::error_code& ec) { return bind(where, {}, ec); }
  [[nodiscard]] static unix_listener bind(const address& where, const listen_options& how, std::error_code& ec) {
    return unix_listener(listen_at(kind, where, how, "ramie: unix_listener::bind", &ec));
  }

  // Takes over a listening descriptor, like tcp_stream::from_native.
  [[nodiscard]] static unix_listener from_native(int fd) { return unix_listener(take_over(fd)); }

  // Like tcp_listener::accept, also in what it does while there is no room for another descriptor.
  // `peer` is set to the address that the other end is bound to; most are bound to none, and have an empty path().
  [[nodiscard]] unix_stream accept(deadline until = {}) { return accept_from(nullptr, nullptr, until); }
  [[nodiscard]] unix_stream accept(address& peer, deadline until = {}) { return accept_from(&peer, nullptr, until); }
  [[nodiscard]] unix_stream accept(std::error_code& ec, deadline until = {}) {
    return accept_from(nullptr, &ec, until);
  }
  [[nodiscard]] unix_stream accept(address& peer, std::error_code& ec, deadline until = {}) {
    return accept_from(&peer, &ec, until);
  }

 private:
  static constexpr auto kind = ::ramie::io_internal::socket_kind::local;
  [[nodiscard]] unix_stream accept_from(address* peer, std::error_code* ec, deadline until) {
    unix_stream accepted(accept_one(nullptr, "ramie: unix_listener::accept", ec, until));
    std::error_code unknown;  // accept itself does not tell how long a name is
    if (peer != nullptr && accepted.is_open()) *peer = accepted.peer_address(unknown);
    return accepted;
  }
  explicit unix_listener(::ramie::runtime_internal::descriptor_ref fd) noexcept : listening_socket(std::move(fd)) {}
};

// Datagrams that are neither lost nor reordered: send() waits for room. Sending and receiving: datagram_socket.
class unix_datagram : public datagram_socket {
 public:
  // Not open.
  unix_datagram() noexcept = default;

  // Bound. Does not wait, and is not a cancellation point. Throws std::system_error: address_in_use …; usage_error for
  // an address of another kind.
  [[nodiscard]] static unix_datagram bind(const address& where) {
    return unix_datagram(bind_to(kind, where, "ramie: unix_datagram::bind", nullptr));
  }
  [[nodiscard]] static unix_datagram bind(const address& where, std::error_code& ec) {
    return unix_datagram(bind_to(kind, where, "ramie: unix_datagram::bind", &ec));
  }
  // Without a name: to send only. Does not wait, and is not a cancellation point. Throws std::system_error,
  // std::bad_alloc.
  [[nodiscard]] static unix_datagram unbound();
  [[nodiscard]] static unix_datagram unbound(std::error_code& ec);
  // Two that are connected to each other. Does not wait, and is not a cancellation point. Throws std::system_error,
  // std::bad_alloc.
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair();
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair(std::error_code& ec);

  // Takes over a descriptor, like tcp_stream::from_native.
  [[nodiscard]] static unix_datagram from_native(int fd) { return unix_datagram(take_over(fd)); }

 private:
  static constexpr auto kind = ::ramie::io_internal::socket_kind::local;
  explicit unix_datagram(::ramie::runtime_internal::descriptor_ref fd) noexcept : datagram_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
