// SPDX-License-Identifier: BSL-1.0
#include <ramie/address.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>
#include <stdexcept>

namespace ramie::inline v0 {

namespace {

static_assert(sizeof(sockaddr_un) <= 112 && sizeof(sockaddr_in6) <= 112);
constexpr std::size_t path_at = offsetof(sockaddr_un, sun_path);
constexpr std::size_t longest_path = sizeof(sockaddr_un::sun_path) - 1;
// An address, its scope, and the terminating zero.
constexpr std::size_t longest_host = INET6_ADDRSTRLEN + IF_NAMESIZE + 1;

template <class Native>
address as_address(const Native& native) noexcept {
  return address::from_native(&native, sizeof native);
}

// Its bytes as a sockaddr of that type, copied.
template <class Native>
Native as_native(const address& a) noexcept {
  Native native{};
  std::memcpy(&native, a.data(), sizeof native);
  return native;
}

address make_ipv4(in_addr host, std::uint16_t port) noexcept {
  sockaddr_in native{};
  native.sin_family = AF_INET;
  native.sin_addr = host;
  native.sin_port = htons(port);
  return as_address(native);
}

address make_ipv6(const in6_addr& host, std::uint16_t port, std::uint32_t scope = 0) noexcept {
  sockaddr_in6 native{};
  native.sin6_family = AF_INET6;
  native.sin6_addr = host;
  native.sin6_port = htons(port);
  native.sin6_scope_id = scope;
  return as_address(native);
}

template <class Number>
std::optional<Number> as_number(std::string_view digits) noexcept {
  Number value{};
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || at != end || digits.empty()) return std::nullopt;
  return value;
}

// The index of an interface, given as a number or by its name.
std::optional<std::uint32_t> as_scope(std::string_view text) noexcept {
  if (const auto index = as_number<std::uint32_t>(text)) return index;
  char name[IF_NAMESIZE] = {};
  if (text.empty() || text.size() >= sizeof name) return std::nullopt;
  text.copy(name, text.size());
  const unsigned index = ::if_nametoindex(name);
  if (index == 0) return std::nullopt;
  return index;
}

address make_local(std::string_view name, std::size_t first) {
  sockaddr_un native{};
  native.sun_family = AF_UNIX;
  name.copy(native.sun_path + first, name.size());
  return address::from_native(&native, path_at + first + name.size() + (first == 0 ? 1 : 0));
}

std::string ip_to_string(int family, const void* host) {
  char text[INET6_ADDRSTRLEN] = {};
  (void)::inet_ntop(family, host, text, sizeof text);
  return text;
}

}  // namespace

const char* to_string(address_family family) noexcept {
  switch (family) {
    case address_family::ipv4: return "IPv4";
    case address_family::ipv6: return "IPv6";
    case address_family::local: return "unix";
    case address_family::none: break;
  }
  return "none";
}

std::optional<address> address::try_ip(std::string_view host, std::uint16_t port) noexcept {
  char text[longest_host] = {};
  if (host.empty() || host.size() >= sizeof text || host.find('\0') != host.npos) return std::nullopt;
  host.copy(text, host.size());
  in_addr four{};
  if (::inet_pton(AF_INET, text, &four) == 1) return make_ipv4(four, port);
  std::uint32_t scope = 0;
  if (char* const percent = std::strchr(text, '%')) {
    const auto named = as_scope(percent + 1);
    if (!named) return std::nullopt;
    scope = *named;
    *percent = '\0';
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, text, &six) == 1) return make_ipv6(six, port, scope);
  return std::nullopt;
}

std::optional<address> address::try_parse(std::string_view text) noexcept {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const auto port = as_number<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  // What is in brackets has colons, and nothing else has.
  if (!port || in_brackets != (host.find(':') != host.npos)) return std::nullopt;
  return try_ip(host, *port);
}

address address::parse(std::string_view text) {
  if (const auto found = try_parse(text)) return *found;
  throw std::invalid_argument("ramie: address::parse: '" + std::string(text) +
                              "' is no address with a port. Write it like 127.0.0.1:80 or [::1]:80.");
}

address address::ip(std::string_view host, std::uint16_t port) {
  if (const auto found = try_ip(host, port)) return *found;
  throw std::invalid_argument("ramie: address::ip: '" + std::string(host) +
                              "' is no IP address. Names are looked up by resolve().");
}

address address::ipv4_loopback(std::uint16_t port) noexcept {
  return make_ipv4({htonl(INADDR_LOOPBACK)}, port);
}
address address::ipv6_loopback(std::uint16_t port) noexcept {
  return make_ipv6(in6addr_loopback, port);
}
address address::any(std::uint16_t port) noexcept {
  return make_ipv4({htonl(INADDR_ANY)}, port);
}
address address::ipv6_any(std::uint16_t port) noexcept {
  return make_ipv6(in6addr_any, port);
}

address address::unix_path(std::string_view path) {
  if (path.empty() || path.size() > longest_path || path.find('\0') != path.npos) {
    throw std::invalid_argument("ramie: address::unix_path: '" + std::string(path) +
                                "' can't be the path of a unix socket. Pass 1 to 107 bytes, none of them zero.");
  }
  return make_local(path, 0);
}
address address::unix_abstract(std::string_view name) {
  if (name.empty() || name.size() > longest_path) {
    throw std::invalid_argument("ramie: address::unix_abstract: '" + std::string(name) +
                                "' can't be the name of an abstract unix socket. Pass 1 to 107 bytes.");
  }
  return make_local(name, 1);
}

address_family address::family() const noexcept {
  sa_family_t family = AF_UNSPEC;
  if (size_ >= sizeof family) std::memcpy(&family, bytes_, sizeof family);
  switch (family) {
    case AF_INET: return address_family::ipv4;
    case AF_INET6: return address_family::ipv6;
    case AF_UNIX: return address_family::local;
    default: return address_family::none;
  }
}

bool address::is_ip() const noexcept {
  return family() == address_family::ipv4 || family() == address_family::ipv6;
}

std::uint16_t address::port() const noexcept {
  switch (family()) {
    case address_family::ipv4: return ntohs(as_native<sockaddr_in>(*this).sin_port);
    case address_family::ipv6: return ntohs(as_native<sockaddr_in6>(*this).sin6_port);
    default: return 0;
  }
}

address address::with_port(std::uint16_t port) const noexcept {
  switch (family()) {
    case address_family::ipv4: return make_ipv4(as_native<sockaddr_in>(*this).sin_addr, port);
    case address_family::ipv6: return make_ipv6(as_native<sockaddr_in6>(*this).sin6_addr, port, scope());
    default: return *this;
  }
}

std::uint32_t address::scope() const noexcept {
  return family() == address_family::ipv6 ? as_native<sockaddr_in6>(*this).sin6_scope_id : 0;
}

bool address::is_abstract() const noexcept {
  return family() == address_family::local && size_ > path_at && bytes_[path_at] == '\0';
}

std::string_view address::path() const noexcept {
  if (family() != address_family::local || size_ <= path_at) return {};
  if (is_abstract()) return {bytes_ + path_at + 1, size_ - path_at - 1};
  return bytes_ + path_at;
}

std::string address::to_string() const {
  switch (family()) {
    case address_family::ipv4: {
      const auto native = as_native<sockaddr_in>(*this);
      return ip_to_string(AF_INET, &native.sin_addr) + ':' + std::to_string(port());
    }
    case address_family::ipv6: {
      const auto native = as_native<sockaddr_in6>(*this);
      std::string text = "[";
      text += ip_to_string(AF_INET6, &native.sin6_addr);
      if (scope() != 0) text.append("%").append(std::to_string(scope()));
      return text.append("]:").append(std::to_string(port()));
    }
    case address_family::local:
      if (path().empty()) return "(unnamed)";
      return std::string(is_abstract() ? "@" : "").append(path());
    case address_family::none: break;
  }
  return "(none)";
}

// Member by member, so that everything else (flow labels, padding, what follows a path) is zero.
address address::from_native(const void* data, std::size_t size) noexcept {
  address a;
  if (data == nullptr || size < sizeof(sa_family_t) || size > sizeof a.bytes_) return a;
  std::memcpy(a.bytes_, data, size);
  a.size_ = static_cast<std::uint32_t>(size);
  switch (a.family()) {
    case address_family::ipv4: {
      if (size < sizeof(sockaddr_in)) return {};
      const auto native = as_native<sockaddr_in>(a);
      sockaddr_in clean{};
      clean.sin_family = AF_INET;
      clean.sin_addr = native.sin_addr;
      clean.sin_port = native.sin_port;
      std::memcpy(a.bytes_, &clean, a.size_ = sizeof clean);
      return a;
    }
    case address_family::ipv6: {
      if (size < sizeof(sockaddr_in6)) return {};
      auto native = as_native<sockaddr_in6>(a);
      native.sin6_flowinfo = 0;
      std::memcpy(a.bytes_, &native, a.size_ = sizeof native);
      return a;
    }
    case address_family::local:
      if (size > path_at && a.bytes_[path_at] != '\0') {
        a.bytes_[sizeof a.bytes_ - 1] = '\0';
        a.size_ = static_cast<std::uint32_t>(path_at + ::strnlen(a.bytes_ + path_at, longest_path) + 1);
        std::memset(a.bytes_ + a.size_ - 1, 0, sizeof a.bytes_ - a.size_ + 1);
      }
      return a;
    case address_family::none: break;
  }
  return {};
}

}  // namespace ramie::inline v0
