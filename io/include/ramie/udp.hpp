// SPDX-License-Identifier: BSL-1.0
// UDP.
#pragma once

#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/socket.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Sending and receiving: datagram_socket.
class udp_socket : public datagram_socket {
 public:
  // Not open.
  udp_socket() noexcept = default;

  // Bound to an internet address; port 0: the system chooses one, see local_address(). To send only, bind to any(0).
  // Does not wait, and is not a cancellation point. Throws std::system_error: address_in_use …; usage_error for an
  // address of another kind.
  [[nodiscard]] static udp_socket bind(const address& where) {
    return udp_socket(bind_to(kind, where, "ramie: udp_socket::bind", nullptr));
  }
  [[nodiscard]] static udp_socket bind(const address& where, std::error_code& ec) {
    return udp_socket(bind_to(kind, where, "ramie: udp_socket::bind", &ec));
  }

  // Takes over a descriptor, like tcp_stream::from_native.
  [[nodiscard]] static udp_socket from_native(int fd) { return udp_socket(take_over(fd)); }

  // SO_BROADCAST: whether it may send to broadcast addresses. System calls that don't wait, not cancellation points.
  // They throw std::system_error, or set `ec`.
  [[nodiscard]] bool broadcast() const;
  [[nodiscard]] bool broadcast(std::error_code& ec) const;
  void set_broadcast(bool on);
  void set_broadcast(bool on, std::error_code& ec);

 private:
  static constexpr auto kind = ::ramie::io_internal::socket_kind::internet;
  explicit udp_socket(::ramie::runtime_internal::descriptor_ref fd) noexcept : datagram_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
