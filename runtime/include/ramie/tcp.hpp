// SPDX-License-Identifier: BSL-1.0
// TCP: connections, and who waits for them.
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

// The halves of a tcp_stream that was split, for two fibers. The connection is closed when both are gone, or when one
// of them is asked to close it. The writer's destructor shuts writing down: the peer comes to the end of the stream.
class tcp_reader : public ::ramie::detail::read_half {
 public:
  tcp_reader() noexcept = default;

 private:
  friend class tcp_stream;
  explicit tcp_reader(::ramie::detail::descriptor_ref fd) noexcept : read_half(std::move(fd)) {}
};

class tcp_writer : public ::ramie::detail::write_half {
 public:
  tcp_writer() noexcept = default;

 private:
  friend class tcp_stream;
  explicit tcp_writer(::ramie::detail::descriptor_ref fd) noexcept : write_half(std::move(fd)) {}
};

// A TCP connection. Reading, writing and shutting down: stream_socket.
class tcp_stream : public stream_socket {
 public:
  // Not connected.
  tcp_stream() noexcept = default;

  // Connects to an internet address; for names there is connect() of <ramie/resolve.hpp>. A cancellation point. Throws
  // std::system_error: connection_refused, timed_out …; usage_error for an address of another kind.
  [[nodiscard]] static tcp_stream connect(const address& to, deadline until = {});
  [[nodiscard]] static tcp_stream connect(const address& to, std::error_code& ec, deadline until = {});

  // Takes a connected descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static tcp_stream from_native(int fd);

  struct halves {
    tcp_reader reader;
    tcp_writer writer;
  };
  // Two halves; nothing is left here. Any fiber or thread that nobody uses it beside.
  [[nodiscard]] halves split() && noexcept;

  // Options: system calls that don't wait. They throw std::system_error, or set `ec`.

  // Whether small pieces are sent at once instead of waiting for an acknowledgement of those before.
  [[nodiscard]] bool no_delay() const;
  [[nodiscard]] bool no_delay(std::error_code& ec) const;
  void set_no_delay(bool on);
  void set_no_delay(bool on, std::error_code& ec);
  // Whether a silent peer is asked, after hours unless the system is set up otherwise, whether it is still there.
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool keep_alive(std::error_code& ec) const;
  void set_keep_alive(bool on);
  void set_keep_alive(bool on, std::error_code& ec);
  // What closing does about data that has not been sent: nothing: the system goes on with it, which is the rule; zero:
  // it is dropped, and the peer gets ECONNRESET. Any other time *blocks the thread* of whoever is last to let go, for
  // so long: shut writing down and read to the end instead.
  [[nodiscard]] std::optional<std::chrono::seconds> linger() const;
  [[nodiscard]] std::optional<std::chrono::seconds> linger(std::error_code& ec) const;
  void set_linger(std::optional<std::chrono::seconds> time);
  void set_linger(std::optional<std::chrono::seconds> time, std::error_code& ec);

 private:
  friend class tcp_listener;
  friend tcp_stream connect(std::span<const address> candidates, deadline until);
  friend tcp_stream connect(std::span<const address> candidates, std::error_code& ec, deadline until);
  explicit tcp_stream(::ramie::detail::descriptor_ref fd) noexcept : stream_socket(std::move(fd)) {}
};

// Waits for connections. Several fibers may accept at once: each connection goes to one of them.
class tcp_listener : public ::ramie::detail::listening_socket {
 public:
  // Not bound.
  tcp_listener() noexcept = default;

  // Bound to an internet address, listening. Port 0: the system chooses, local_address() tells. Does not wait, and is
  // no cancellation point. Throws std::system_error: address_in_use …; usage_error for an address of another kind.
  [[nodiscard]] static tcp_listener bind(const address& where, const listen_options& how = {});
  [[nodiscard]] static tcp_listener bind(const address& where, std::error_code& ec) { return bind(where, {}, ec); }
  [[nodiscard]] static tcp_listener bind(const address& where, const listen_options& how, std::error_code& ec);

  // Takes a listening descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static tcp_listener from_native(int fd);

  // Waits for the next connection; `peer` is where it comes from. A cancellation point.
  //
  // A connection that is broken before it is accepted is passed over (ECONNABORTED and its like). While the machine has
  // no room for another one (EMFILE, ENFILE, ENOBUFS, ENOMEM) these two wait 1 ms and try again, then 2 ms, and so on
  // up to every 100 ms, until there is room: a server must not end because it is popular. Connections wait in the
  // backlog meanwhile. Throw std::system_error for anything else.
  [[nodiscard]] tcp_stream accept(deadline until = {}) { return tcp_stream(accept_one(nullptr, nullptr, until)); }
  [[nodiscard]] tcp_stream accept(address& peer, deadline until = {}) {
    return tcp_stream(accept_one(&peer, nullptr, until));
  }
  // These tell at once, and leave to you what to do about it.
  [[nodiscard]] tcp_stream accept(std::error_code& ec, deadline until = {}) {
    return tcp_stream(accept_one(nullptr, &ec, until));
  }
  [[nodiscard]] tcp_stream accept(address& peer, std::error_code& ec, deadline until = {}) {
    return tcp_stream(accept_one(&peer, &ec, until));
  }

 private:
  explicit tcp_listener(::ramie::detail::descriptor_ref fd) noexcept : listening_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
