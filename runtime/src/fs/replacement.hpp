// SPDX-License-Identifier: BSL-1.0
// A file that is to take another one's place, all or nothing: it is made beside it, under a name of its own, and goes
// again unless it gets that place.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "system.hpp"

namespace ramie::detail {

// Blocks: for threads of the pool. Results are -errno or not less than 0.
class replacement {
 public:
  replacement() noexcept = default;
  ~replacement();  // also on a worker: it is one system call
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;

  // With no more than these permissions from the beginning, for it may be opened by whoever they let; the umask is
  // taken off.
  [[nodiscard]] std::int64_t create(const std::filesystem::path& target, mode_t permissions);
  // With exactly these, but nothing of setuid and the like: it may belong to another user than the one that had it.
  [[nodiscard]] std::int64_t create_like(const std::filesystem::path& target, mode_t other);
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
  // What it holds is safe on the disk first. must_be_new: -EEXIST if there is something in that place.
  [[nodiscard]] std::int64_t take_place(bool must_be_new);

 private:
  [[nodiscard]] std::int64_t move_over(bool must_be_new) noexcept;

  std::filesystem::path target_, own_;
  unique_fd fd_;
};

}  // namespace ramie::detail
