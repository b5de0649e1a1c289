// SPDX-License-Identifier: BSL-1.0
// Replaces a file atomically: a new file is made beside the target, under a temporary name, and renamed over it. If
// that does not happen, the destructor removes the new file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

// Its functions block: for threads of the pool. They return -errno, or 0 and more for success.
class replacement {
 public:
  replacement() noexcept = default;
  ~replacement();  // one system call at most: may run on a worker
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;

  // Creates the new file with no more than these permissions from the beginning, because anybody whom they allow may
  // open it at once; the bits of the umask are removed.
  [[nodiscard]] std::int64_t create(const std::filesystem::path& target, mode_t permissions);
  // The same with exactly the permissions of a mode, whatever the umask, but without setuid, setgid and sticky bits:
  // the new file may belong to another user than the old one.
  [[nodiscard]] std::int64_t create_like(const std::filesystem::path& target, mode_t other);
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
  // Syncs the new file, then renames it to the target. must_be_new: -EEXIST if the target exists.
  [[nodiscard]] std::int64_t take_place(bool must_be_new);

 private:
  [[nodiscard]] std::int64_t move_over(bool must_be_new) noexcept;

  std::filesystem::path target_, own_;
  unique_fd fd_;
};

}  // namespace ramie::io_internal
