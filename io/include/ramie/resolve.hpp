// SPDX-License-Identifier: BSL-1.0
// Names: looking up their addresses, and connecting to one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <ramie/address.hpp>
#include <ramie/tcp.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Why a name has no address: getaddrinfo's numbers. Others that resolve() may report keep their number and message,
// too.
enum class resolve_errc : int {
  not_found = -2,  // there is no such name, or it has no addresses
  try_again = -3,  // no name server answered; later one may
  failed = -4,     // a failure that will not pass by itself
  no_service = -8  // there is no such service
};
// The category of these errors, and how a resolve_errc becomes an error_code.
[[nodiscard]] const std::error_category& resolve_category() noexcept;
[[nodiscard]] std::error_code make_error_code(resolve_errc e) noexcept;

// The addresses of a host, with that port or the port of that service ("http", "80"), in the order in which they should
// be tried, at least one. Addresses in figures ("::1") are not looked up. A look-up may block: it happens on a thread
// of the blocking pool (see blocking()). A plain thread looks up by itself, and its deadline has no effect.
//
// A cancellation point. A fiber that is cancelled, or whose deadline comes (timed_out), returns at once; the look-up
// ends by itself, and its result is dropped. Throws std::system_error, of resolve_category() if it is the look-up that
// failed; std::bad_alloc.
[[nodiscard]] std::vector<address> resolve(std::string_view host, std::string_view service, deadline until = {});
[[nodiscard]] std::vector<address> resolve(std::string_view host, std::string_view service, std::error_code& ec,
                                           deadline until = {});
[[nodiscard]] std::vector<address> resolve(std::string_view host, std::uint16_t port, deadline until = {});
[[nodiscard]] std::vector<address> resolve(std::string_view host, std::uint16_t port, std::error_code& ec,
                                           deadline until = {});

// Connects to whichever of a host's addresses answers first (RFC 8305, "happy eyeballs"): IPv6 first, families in
// turns. The next attempt begins when the one before has failed, or has not succeeded within 250 ms; earlier attempts
// go on. When one succeeds the others are closed. If all fail, the error is that of the last address that could be
// reached, if any (that is, not network_unreachable and the like).
//
// A cancellation point. Throws what resolve() and tcp_stream::connect throw.
[[nodiscard]] tcp_stream connect(std::string_view host, std::uint16_t port, deadline until = {});
[[nodiscard]] tcp_stream connect(std::string_view host, std::uint16_t port, std::error_code& ec, deadline until = {});

// The same for addresses that you have, in the order you have them. usage_error if there are none, or others than
// internet addresses.
[[nodiscard]] tcp_stream connect(std::span<const address> candidates, deadline until = {});
[[nodiscard]] tcp_stream connect(std::span<const address> candidates, std::error_code& ec, deadline until = {});

}  // namespace ramie::inline v0

template <>
struct std::is_error_code_enum<ramie::resolve_errc> : std::true_type {};
