// SPDX-License-Identifier: BSL-1.0
// What all of net/ is made from: descriptors or errors as results, and one way to carry out an operation.
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
#include <ramie/time.hpp>

namespace ramie::detail {

// errno is taken where it was set: nothing of this waits in between.
[[nodiscard]] inline int outcome_of(int returned) noexcept {
  return returned >= 0 ? returned : -errno;
}

// A descriptor, or why there is none.
struct opened {
  descriptor_ref fd;
  std::int32_t error = 0;  // -errno
};
// Both forms of a function in one; `ec` null: throws.
void settle(std::int32_t result, std::error_code* ec, const char* what);
[[nodiscard]] descriptor_ref value_of(opened it, std::error_code* ec, const char* what);

// f(fd) by with_fd, also of a socket that has none.
template <class F>
[[nodiscard]] int with_fd_of(const descriptor_ref& fd, F f) {
  return fd ? fd->with_fd(f) : -EBADF;
}
// open_descriptor::perform, also of a socket that has none.
[[nodiscard]] std::int32_t perform(const descriptor_ref& fd, platform::io_operation& op, const wait_reason& why,
                                   deadline until);

// Between attempts at what nobody can wait for: 1 ms, 2 ms, and so on up to 100 ms.
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
// Throw usage_error.
void expect_ip(const address& a, const char* what);
void expect_local(const address& a, const char* what);

// Throws std::bad_alloc, as all of them do.
[[nodiscard]] opened open_socket(int family, int type);
// A cancellation point.
[[nodiscard]] opened open_connected(const address& to, deadline until);
[[nodiscard]] opened open_bound_datagrams(const address& where);
// Connected to each other. `ec` null: throws.
[[nodiscard]] std::pair<descriptor_ref, descriptor_ref> open_pair(int type, std::error_code* ec, const char* what);

}  // namespace ramie::detail
