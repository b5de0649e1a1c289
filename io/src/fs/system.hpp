// SPDX-License-Identifier: BSL-1.0
// System calls, as files, directories and processes use them.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <ramie/blocking.hpp>
#include <ramie/file.hpp>
#include <ramie/stream.hpp>

#include "../errors.hpp"
#include "../system_call.hpp"

struct stat;

namespace ramie::io_internal {

using namespace runtime_internal;

// outcome_of on a thread of the blocking pool. A cancellation point.
template <class F>
[[nodiscard]] std::int64_t on_pool(F f) {
  return blocking([&] { return outcome_of(f); });
}

// Closes once: after EINTR the descriptor is closed, too. 0, or -errno.
[[nodiscard]] inline std::int64_t close_once(int fd) noexcept {
  return ::close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

// or_throw for functions of several steps, which throw transfer_error: f(ec) returns how many bytes it has written, or
// all that it has read.
template <class F>
void write_or_throw(const char* what, F f) {
  std::error_code ec;
  const std::size_t written = f(ec);
  if (ec) throw transfer_error(ec, what, written);
}
template <class F>
std::invoke_result_t<F&, std::error_code&> read_or_throw(const char* what, F f) {
  std::error_code ec;
  auto all = f(ec);
  if (ec) throw transfer_error(ec, what, all.size());
  return all;
}

[[nodiscard]] file_metadata metadata_from(const struct stat& from) noexcept;

}  // namespace ramie::io_internal
