// SPDX-License-Identifier: BSL-1.0
// The folder that is served. Whatever a path says and whoever renames what meanwhile, nothing outside it is opened.
#pragma once

#include <ramie/file.hpp>

namespace http {

enum class wait_for_disk : bool { no, yes };

class root {
 public:
  // Throws std::system_error if it can't be opened as a folder; std::bad_alloc.
  explicit root(const char* folder);

  // Opens what a path of target_path names, to read. -errno in place of a descriptor: -ENOENT, -EACCES, …; -EXDEV or
  // -ELOOP for a link that leads outside. Where the kernel has openat2 (Linux 5.6), links within the root are followed;
  // elsewhere none is. With wait_for_disk::no, -EAGAIN if it can't be told from memory. Throws std::bad_alloc.
  [[nodiscard]] int open(const char* path, wait_for_disk wait) const;

  // For tests: the same without openat2.
  [[nodiscard]] int open_by_segments(const char* path) const;

 private:
  ramie::file folder_;
};

}  // namespace http
