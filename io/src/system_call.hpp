// SPDX-License-Identifier: BSL-1.0
// How io/ makes system calls. errno is taken in the same expression, as -errno, for nothing may come between them.
#pragma once

#include <cerrno>
#include <type_traits>

#include <ramie/platform/unique_fd.hpp>
#include <ramie/runtime/io.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
using platform::unique_fd;

// Calls f() until no signal interrupts it. What it returned, or -errno.
template <class F>
[[nodiscard]] std::invoke_result_t<F&> outcome_of(F f) {
  for (;;) {
    const auto result = f();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// The same of f(fd), for a system call that does not wait. -EBADF if there is no open descriptor.
template <class F>
[[nodiscard]] int call_on(const descriptor_ref& fd, F f) {
  if (!fd) return -EBADF;
  return fd->with_fd([&](int number) { return static_cast<int>(outcome_of([&] { return f(number); })); });
}

}  // namespace ramie::io_internal
