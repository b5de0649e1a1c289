// SPDX-License-Identifier: BSL-1.0
// Names are looked up by getaddrinfo on a thread of the blocking pool. A caller that is cancelled or late leaves it
// behind.
#include <ramie/resolve.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <ramie/blocking.hpp>
#include <ramie/this_fiber.hpp>
#include <ramie/timeout.hpp>

#include "net.hpp"

namespace ramie::inline v0 {

namespace {

static_assert(static_cast<int>(resolve_errc::not_found) == EAI_NONAME);
static_assert(static_cast<int>(resolve_errc::try_again) == EAI_AGAIN);
static_assert(static_cast<int>(resolve_errc::failed) == EAI_FAIL);
static_assert(static_cast<int>(resolve_errc::no_service) == EAI_SERVICE);

class look_up_category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "ramie.resolve"; }
  [[nodiscard]] std::string message(int value) const override { return ::gai_strerror(value); }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (value) {
      case EAI_AGAIN: return std::errc::resource_unavailable_try_again;
      case EAI_MEMORY: return std::errc::not_enough_memory;
      default: return {value, *this};
    }
  }
};

struct looked_up {
  std::vector<address> found;
  std::error_code error;
};

struct request {
  std::string host, service;
  bool numeric_service;  // the service is a port
};

// Blocks the thread.
looked_up ask_system(const request& wanted) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = wanted.numeric_service ? AI_NUMERICSERV : 0;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(wanted.host.c_str(), wanted.service.c_str(), &hints, &list);
  if (error == EAI_SYSTEM) return {{}, {errno, std::system_category()}};
  if (error != 0) return {{}, {error, resolve_category()}};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* all) { ::freeaddrinfo(all); });
  looked_up result;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const auto a = address::from_native(one->ai_addr, one->ai_addrlen);
    const bool is_new = std::find(result.found.begin(), result.found.end(), a) == result.found.end();
    if (a.is_ip() && is_new) result.found.push_back(a);
  }
  if (result.found.empty()) result.error = resolve_errc::not_found;
  return result;
}

looked_up look_up(request wanted, deadline until) {
  check_cancelled();
  if (wanted.host.find('\0') != wanted.host.npos) return {{}, resolve_errc::not_found};
  if (wanted.service.find('\0') != wanted.service.npos) return {{}, resolve_errc::no_service};
  const auto on_pool = [&] {
    return blocking(detach_on_cancel, [wanted = std::move(wanted)] { return ask_system(wanted); });
  };
  if (until.when() == deadline().when() || !this_fiber::exists()) return on_pool();
  auto in_time = with_deadline(until.when(), on_pool);
  return in_time ? *std::move(in_time) : looked_up{{}, std::error_code(ETIMEDOUT, std::system_category())};
}

looked_up look_up(std::string_view host, std::uint16_t port, deadline until) {
  if (const auto numeric = address::try_ip(host, port)) {
    check_cancelled();
    return {{*numeric}, {}};
  }
  return look_up(request{std::string(host), std::to_string(port), true}, until);
}

looked_up look_up(std::string_view host, std::string_view service, deadline until) {
  return look_up(request{std::string(host), std::string(service), false}, until);
}

std::vector<address> or_throw(looked_up it, std::string_view host) {
  if (it.error) throw std::system_error(it.error, "ramie: resolve: '" + std::string(host) + "'");
  return std::move(it.found);
}
std::vector<address> or_error(looked_up it, std::error_code& ec) {
  ec = it.error;
  return std::move(it.found);
}

// IPv6 first, then the families alternate; the order within a family stays.
std::vector<address> interleaved(const std::vector<address>& all) {
  std::vector<address> ipv6, ipv4, mixed;
  for (const address& a : all) (a.family() == address_family::ipv6 ? ipv6 : ipv4).push_back(a);
  for (std::size_t i = 0; i < std::max(ipv6.size(), ipv4.size()); ++i) {
    if (i < ipv6.size()) mixed.push_back(ipv6[i]);
    if (i < ipv4.size()) mixed.push_back(ipv4[i]);
  }
  return mixed;
}

}  // namespace

const std::error_category& resolve_category() noexcept {
  static const look_up_category it;
  return it;
}
std::error_code make_error_code(resolve_errc e) noexcept {
  return {static_cast<int>(e), resolve_category()};
}

std::vector<address> resolve(std::string_view host, std::string_view service, deadline until) {
  return or_throw(look_up(host, service, until), host);
}
std::vector<address> resolve(std::string_view host, std::string_view service, std::error_code& ec, deadline until) {
  return or_error(look_up(host, service, until), ec);
}
std::vector<address> resolve(std::string_view host, std::uint16_t port, deadline until) {
  return or_throw(look_up(host, port, until), host);
}
std::vector<address> resolve(std::string_view host, std::uint16_t port, std::error_code& ec, deadline until) {
  return or_error(look_up(host, port, until), ec);
}

tcp_stream connect(std::string_view host, std::uint16_t port, deadline until) {
  return connect(interleaved(resolve(host, port, until)), until);
}
tcp_stream connect(std::string_view host, std::uint16_t port, std::error_code& ec, deadline until) {
  const auto found = resolve(host, port, ec, until);
  return ec ? tcp_stream() : connect(interleaved(found), ec, until);
}

}  // namespace ramie::inline v0
