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

  // Bound to an internet address; port 0: the system chooses, local_address() tells. To send only, bind to any(0).
  // Does not wait, and is no cancellation point. Throws std::system_error: address_in_use …; usage_error for an address
  // of another kind.
  [[nodiscard]] static udp_socket bind(const address& where);
  [[nodiscard]] static udp_socket bind(const address& where, std::error_code& ec);

  // Takes a descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static udp_socket from_native(int fd);

  // Whether it may send to addresses that are everybody's. System calls that don't wait. Throw std::system_error, or
  // set `ec`.
  [[nodiscard]] bool broadcast() const;
  [[nodiscard]] bool broadcast(std::error_code& ec) const;
  void set_broadcast(bool on);
  void set_broadcast(bool on, std::error_code& ec);

 private:
  explicit udp_socket(::ramie::detail::descriptor_ref fd) noexcept : datagram_socket(std::move(fd)) {}
};

}  // namespace ramie::inline v0
