// SPDX-License-Identifier: BSL-1.0
// What the sockets share: a descriptor or an error as a result, addresses as the system takes them, pauses.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include <ramie/address.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/socket.hpp>
#include <ramie/time.hpp>

#include "../errors.hpp"
#include "../system_call.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

// A descriptor, or why there is none.
struct opened {
  descriptor_ref fd;
  std::int32_t error = 0;  // -errno
};
// For what public headers call for both forms of a function (others: or_throw): throw if `ec` is null, else set it.
void settle(std::int32_t result, std::error_code* ec, const char* what);
[[nodiscard]] descriptor_ref value_of(opened it, std::error_code* ec, const char* what);

// Pauses between attempts at something that no mechanism can wait for: 1 ms, 2 ms, and so on up to 100 ms.
class growing_pause {
 public:
  // When the pause that begins now is over: not later than `until`.
  [[nodiscard]] deadline next(deadline until);
  // False: the deadline has come. A cancellation point, like sleep_until.
  [[nodiscard]] bool wait(deadline until);

 private:
  std::chrono::milliseconds next_{1};
};

[[nodiscard]] inline const sockaddr* native(const address& a) noexcept {
  return static_cast<const sockaddr*>(a.data());
}
[[nodiscard]] inline socklen_t native_size(const address& a) noexcept {
  return static_cast<socklen_t>(a.size());
}
[[nodiscard]] inline int native_family(const address& a) noexcept {
  return native(a)->sa_family;
}
// Throws usage_error if the address is of another kind.
void expect_kind(socket_kind kind, const address& a, const char* what);

// Throws std::bad_alloc, as all of them do.
[[nodiscard]] opened open_socket(int family, int type);
// A cancellation point.
[[nodiscard]] opened open_connected(const address& to, deadline until);
// Connected to each other.
[[nodiscard]] std::pair<descriptor_ref, descriptor_ref> open_pair(int type, std::error_code& ec);

}  // namespace ramie::io_internal
