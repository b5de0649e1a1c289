// SPDX-License-Identifier: BSL-1.0
// Small things that files, directories and processes have in common. A system call's errno is taken in the same
// expression, as -errno, for nothing may come between them.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ramie/blocking.hpp>
#include <ramie/file.hpp>

struct stat;

namespace ramie::detail {

// A descriptor that is closed with it, if there is one.
class unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() {
    if (fd_ >= 0) (void)::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Calls f() until no signal interrupts it. What it returned, or -errno.
template <class F>
[[nodiscard]] std::int64_t outcome_of(F f) {
  for (;;) {
    const std::int64_t result = f();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// The same on a thread of the blocking pool. A cancellation point.
template <class F>
[[nodiscard]] std::int64_t on_pool(F f) {
  return blocking([&] { return outcome_of(f); });
}

// Closes, once: interrupted is closed, too. 0, or -errno.
[[nodiscard]] inline std::int64_t close_once(int fd) noexcept {
  return ::close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

[[nodiscard]] inline std::error_code error_of(std::int64_t result) noexcept {
  return result < 0 ? std::error_code(static_cast<int>(-result), std::system_category()) : std::error_code();
}
inline void throw_if(const std::error_code& ec, const char* what) {
  if (ec) throw std::system_error(ec, what);
}
inline void throw_if(const std::error_code& ec, const char* what, const std::filesystem::path& path) {
  if (ec) throw std::filesystem::filesystem_error(what, path, ec);
}

[[nodiscard]] file_metadata metadata_from(const struct stat& from) noexcept;

// Writes into pipes without a reader are errors from here on, not the end of the process. A handler of the program's
// stays.
void ignore_sigpipe() noexcept;
// Whether that has been asked for: who gives up a handler leaves no default action behind then.
[[nodiscard]] bool sigpipe_is_unwanted() noexcept;

}  // namespace ramie::detail
