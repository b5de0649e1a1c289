// SPDX-License-Identifier: BSL-1.0
// The folder that is served. Whatever a path says and whoever renames what meanwhile, nothing outside it is opened.
#pragma once

#include <cstdint>
#include <ctime>
#include <utility>

namespace http {

class unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class wait_for_disk : bool { no, yes };

class root {
 public:
  // Throws std::system_error if it can't be opened as a folder.
  explicit root(const char* folder);

  // Opens what a path of target_path names, to read. -errno in place of a descriptor: -ENOENT, -EACCES, …; -EXDEV or
  // -ELOOP for a link that leads outside. Where the kernel has openat2 (Linux 5.6), links within the root are followed;
  // elsewhere none is. With wait_for_disk::no, -EAGAIN if it can't be told from memory.
  [[nodiscard]] int open(const char* path, wait_for_disk wait) const noexcept;

  // For tests: the same without openat2.
  [[nodiscard]] int open_by_segments(const char* path) const noexcept;

 private:
  unique_fd folder_;
};

}  // namespace http
