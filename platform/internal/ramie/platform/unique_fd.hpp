// SPDX-License-Identifier: BSL-1.0
// A descriptor that is closed with its owner. A leaf: for what waits on a descriptor there is runtime/io.hpp.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace ramie::platform {

// May have none (-1).
class unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  // What a system call returned. Throws std::system_error if that is no descriptor.
  unique_fd(int returned, const char* what) : fd_(returned) {
    if (returned < 0) throw std::system_error(errno, std::system_category(), what);
  }
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

}  // namespace ramie::platform
