// SPDX-License-Identifier: BSL-1.0
// Where a socket is: an internet address and a port, or a name of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <ramie/version.hpp>

namespace ramie::inline v0 {

// What kind of address it is.
enum class address_family : std::uint8_t {
  none,   // no address
  ipv4,   //
  ipv6,   //
  local,  // unix sockets: a path, an abstract name, or no name at all
};
// For messages: "IPv4", "IPv6", "unix", "none".
[[nodiscard]] const char* to_string(address_family family) noexcept;

// The address of a socket, as a value. No function of it waits or is a cancellation point; names are never looked up,
// for that there is resolve(). Any fiber or thread.
class address {
 public:
  // No address; family() is none.
  address() noexcept = default;

  // "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80" (or its index: "%2"). Throws std::invalid_argument for anything
  // else.
  [[nodiscard]] static address parse(std::string_view text);
  // The same, but returns nullopt for anything else.
  [[nodiscard]] static std::optional<address> try_parse(std::string_view text) noexcept;
  // "127.0.0.1", "::1", "fe80::1%eth0", and a port. The first throws std::invalid_argument for anything else.
  [[nodiscard]] static address ip(std::string_view host, std::uint16_t port);
  [[nodiscard]] static std::optional<address> try_ip(std::string_view host, std::uint16_t port) noexcept;

  // This machine itself: 127.0.0.1, ::1.
  [[nodiscard]] static address ipv4_loopback(std::uint16_t port) noexcept;
  [[nodiscard]] static address ipv6_loopback(std::uint16_t port) noexcept;
  // To bind to all addresses of this machine: the first to those of IPv4, the second to those of IPv6 and, unless the
  // system is set up otherwise, IPv4. Port 0: the system chooses one.
  [[nodiscard]] static address any(std::uint16_t port) noexcept;
  [[nodiscard]] static address ipv6_any(std::uint16_t port) noexcept;

  // Of a unix socket: a path in the file system, or a name outside of it (Linux). They throw std::invalid_argument if
  // it is empty or longer than 107 bytes, and if a path contains a zero byte.
  [[nodiscard]] static address unix_path(std::string_view path);
  [[nodiscard]] static address unix_abstract(std::string_view name);

  // What kind of address it is.
  [[nodiscard]] address_family family() const noexcept;
  // Whether it is an internet address: ipv4 or ipv6.
  [[nodiscard]] bool is_ip() const noexcept;
  // Its port; 0 unless it is an internet address.
  [[nodiscard]] std::uint16_t port() const noexcept;
  // The same host with another port; the same address if it is not an internet address.
  [[nodiscard]] address with_port(std::uint16_t port) const noexcept;
  // Of a link-local IPv6 address: the index of the interface; else 0.
  [[nodiscard]] std::uint32_t scope() const noexcept;
  // Of a unix socket: its path or name, a view into this object; else empty.
  [[nodiscard]] std::string_view path() const noexcept;
  // Whether it is a unix socket's name outside of the file system.
  [[nodiscard]] bool is_abstract() const noexcept;

  // What parse() takes; "/run/it", "@abstract"; "(unnamed)", "(none)". Throws std::bad_alloc.
  [[nodiscard]] std::string to_string() const;

  // As a sockaddr and its length, for system calls. Valid while this object lives and is not assigned to.
  [[nodiscard]] const void* data() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // From a sockaddr of that size; one of another family, or cut short, is no address.
  [[nodiscard]] static address from_native(const void* data, std::size_t size) noexcept;

  // Whether they are of one family and equal in all their parts; hash: for std::hash.
  friend bool operator==(const address& a, const address& b) noexcept { return a.view() == b.view(); }
  [[nodiscard]] std::size_t hash() const noexcept { return std::hash<std::string_view>()(view()); }

 private:
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

  // A sockaddr_in, sockaddr_in6 or sockaddr_un whose other bytes are zero, so that equal addresses are equal bytes.
  alignas(8) char bytes_[112] = {};
  std::uint32_t size_ = 0;
};

}  // namespace ramie::inline v0

template <>
struct std::hash<ramie::address> {
  std::size_t operator()(const ramie::address& a) const noexcept { return a.hash(); }
};
