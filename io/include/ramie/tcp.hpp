// SPDX-License-Identifier: BSL-1.0
// TCP: connections and listeners.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/socket.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

class tcp_stream;
// What split() of a stream gives.
using tcp_reader = read_half<tcp_stream>;
using tcp_writer = write_half<tcp_stream>;

// A TCP connection. Reading, writing and shutting down: stream_socket.
class tcp_stream : public stream_socket {
 public:
  // Not connected.
  tcp_stream() noexcept = default;

  // Connects to an internet address; for names there is connect() of <ramie/resolve.hpp>. A cancellation point. Throws
  // std::system_error: connection_refused, timed_out …; usage_error for an address of another kind.
  [[nodiscard]] static tcp_stream connect(const address& to, deadline until = {}) {
    return tcp_stream(connect_to(kind, to, "ramie: tcp_stream::connect", nullptr, until));
  }
  [[nodiscard]] static tcp_stream connect(const address& to, std::error_code& ec, deadline until = {}) {
    return tcp_stream(connect_to(kind, to, "ramie: tcp_stream::connect", &ec, until));
  }

  // Takes over a connected descriptor; it is closed if this throws std::bad_alloc. It may be made non-blocking, for all
  // who share it. Not a cancellation point.
  [[nodiscard]] static tcp_stream from_native(int fd) { return tcp_stream(take_over(fd)); }

  using halves = stream_halves<tcp_stream>;
  // Two halves; nothing is left here. Any fiber or thread, while nobody else uses the stream. Not a cancellation point.
  [[nodiscard]] halves split() && noexcept;

  // Options: system calls that don't wait, not cancellation points. They throw std::system_error, or set `ec`.

  // TCP_NODELAY: whether small writes are sent at once instead of waiting for the acknowledgement of earlier ones.
  [[nodiscard]] bool no_delay() const;
  [[nodiscard]] bool no_delay(std::error_code& ec) const;
  void set_no_delay(bool on);
  void set_no_delay(bool on, std::error_code& ec);
  // SO_KEEPALIVE: whether the system probes a silent peer, by default after two hours.
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool keep_alive(std::error_code& ec) const;
  void set_keep_alive(bool on);
  void set_keep_alive(bool on, std::error_code& ec);
  // SO_LINGER: what closing does about data that has not been sent. nullopt, the default: the system goes on sending
  // it. Zero: it is dropped, and the peer gets ECONNRESET. Any other time *blocks the thread* that closes last for so
  // long: shut writing down and read to the end instead.
  [[nodiscard]] std::optional<std::chrono::seconds> linger() const;
  [[nodiscard]] std::optional<std::chrono::seconds> linger(std::error_code& ec) const;
  void set_linger(std::optional<std::chrono::seconds> time);
  void set_linger(std::optional<std::chrono::seconds> time, std::error_code& ec);

 private:
  friend class tcp_listener;
  friend tcp_stream connect(std::span<const address> candidates, deadline until);
  friend tcp_stream connect(std::span<const address> candidates, std::error_code& ec, deadline until);
  static constexpr auto kind = ::ramie::io_internal::socket_kind::internet;
  explicit tcp_stream(::ramie::runtime_internal::descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

// Waits for connections. Several fibers may accept at once: each connection goes to one of them.
class tcp_listener : public ::ramie::io_internal::listening_socket {
 public:
  // Not bound.
  tcp_listener() noexcept = default;

  // Bound to an internet address, listening. Port 0: the system chooses one, see local_address(). Does not wait, and is
  // not a cancellation point. Throws std::system_error: address_in_use …; usage_error for an address of another kind.
  [[nodiscard]] static tcp_listener bind(const address& where, const listen_options& how = {}) {
    return tcp_listener(listen_at(kind, where, how, "ramie: tcp_listener::bind", nullptr));
  }
  [[nodiscard]] static tcp_listener bind(const address& where, std::error_code& ec) { return bind(where, {}, ec); }
  [[nodiscard]] static tcp_listener bind(const address& where, const listen_options& how, std::error_code& ec) {
    return tcp_listener(listen_at(kind, where, how, "ramie: tcp_listener::bind", &ec));
  }

  // Takes over a listening descriptor, like tcp_stream::from_native.
  [[nodiscard]] static tcp_listener from_native(int fd) { return tcp_listener(take_over(fd)); }

  // Waits for the next connection; `peer` is set to its address. A cancellation point.
  //
  // A connection that broke before it was accepted is skipped (ECONNABORTED and the like). While the machine has no
  // descriptor or memory for another connection (EMFILE, ENFILE, ENOBUFS, ENOMEM) the first two forms wait 1 ms and try
  // again, then 2 ms, and so on up to every 100 ms, until there is room: a server must not end because it is popular.
  // Connections wait in the backlog meanwhile. They throw std::system_error for anything else.
  [[nodiscard]] tcp_stream accept(deadline until = {}) { return accept_from(nullptr, nullptr, until); }
  [[nodiscard]] tcp_stream accept(address& peer, deadline until = {}) { return accept_from(&peer, nullptr, until); }
  // The forms with an error_code report such a shortage at once, and leave to you what to do about it.
  [[nodiscard]] tcp_stream accept(std::error_code& ec, deadline until = {}) { return accept_from(nullptr, &ec, until); }
  [[nodiscard]] tcp_stream accept(address& peer, std::error_code& ec, deadline until = {}) {
    return accept_from(&peer, &ec, until);
  }

 private:
  static constexpr auto kind = ::ramie::io_internal::socket_kind::internet;
  [[nodiscard]] tcp_stream accept_from(address* peer, std::error_code* ec, deadline until) {
    return tcp_stream(accept_one(peer, "ramie: tcp_listener::accept", ec, until));
  }
  explicit tcp_listener(::ramie::runtime_internal::descriptor_ref fd) noexcept : listening_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
