// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/thread_meter.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

thread_usage thread_meter::read() noexcept {
  if (fd_ == unopened) fd_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    fd_ = refused;
    return {};
  }
  char text[64];
  const ssize_t size = ::pread(fd_, text, sizeof text, 0);
  std::int64_t figures[3] = {};
  const char* at = text;
  for (auto& figure : figures) {  // "ran waited times\n"
    const auto [end, error] = std::from_chars(at, text + std::max<ssize_t>(size, 0), figure);
    if (error != std::errc{}) return {};
    at = end + 1;
  }
  thread_usage found{std::chrono::nanoseconds(figures[0]), std::chrono::nanoseconds(figures[1]),
                     static_cast<std::uint64_t>(figures[2])};
  if (faults::strikes(fault::processor)) found.waited += 1000 * found.ran;
  return found;
}

void thread_meter::let_go() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = unopened;
}

}  // namespace ramie::platform
