// SPDX-License-Identifier: BSL-1.0
// Small files that were read lately. A path has one place, by its hash, and who comes last has it: so there is a bound
// and nothing to keep books about.
//
// A file is looked at again once a second, so what is served is at most so old. One that has changed within the last
// two seconds is not kept: it might change again without the clock of the file system telling.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "date.hpp"

namespace http {

// What is different if a file is another one, or has been written to.
struct file_identity {
  explicit file_identity(const struct stat& s) noexcept
      : device(s.st_dev),
        inode(s.st_ino),
        size(static_cast<std::uint64_t>(s.st_size)),
        modified(s.st_mtim.tv_sec),
        changed(s.st_ctim.tv_sec),
        modified_ns(s.st_mtim.tv_nsec),
        changed_ns(s.st_ctim.tv_nsec) {}
  friend bool operator==(const file_identity&, const file_identity&) noexcept = default;

  std::uint64_t device, inode, size;
  seconds modified, changed;
  long modified_ns, changed_ns;
};

struct cached_file {
  cached_file(std::string_view p, const file_identity& i, std::string c, seconds now)
      : path(p), identity(i), content(std::move(c)), checked(now) {}

  const std::string path;
  const file_identity identity;
  const std::string content;
  mutable std::atomic<seconds> checked;  // the second in which it was known to be the same
};

class file_cache {
 public:
  static constexpr std::size_t largest = 64 * 1024;

  // Any fiber; never wait, but for each other.
  [[nodiscard]] std::shared_ptr<const cached_file> find(std::string_view path) {
    place& p = place_of(path);
    const std::lock_guard hold(p.mutex);
    return p.file != nullptr && p.file->path == path ? p.file : nullptr;
  }
  void keep(std::shared_ptr<const cached_file> file) {
    place& p = place_of(file->path);
    const std::lock_guard hold(p.mutex);
    p.file.swap(file);
  }

 private:
  struct place {
    std::mutex mutex;
    std::shared_ptr<const cached_file> file;
  };
  [[nodiscard]] place& place_of(std::string_view path) noexcept {
    return places_[std::hash<std::string_view>()(path) % places_.size()];
  }

  std::array<place, 1024> places_;
};

}  // namespace http
