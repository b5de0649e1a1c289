// SPDX-License-Identifier: BSL-1.0
#include <ramie/directory.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include <ramie/cancel.hpp>

#include "replacement.hpp"
#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

constexpr std::size_t copied_at_once = std::size_t{1} << 23;

// Copies some bytes at both descriptors' positions. Blocks. Returns how many, 0 at the end, or -errno.
std::int64_t copy_piece(int from, int to) {
  auto result = outcome_of([&] { return ::copy_file_range(from, nullptr, to, nullptr, copied_at_once, 0); });
  // copy_file_range finds files whose content is generated (/proc) empty, and does not support every pair of file
  // systems: read and write instead.
  if (result != 0 && result != -EINVAL && result != -EXDEV && result != -ENOSYS && result != -EOPNOTSUPP) return result;
  std::vector<std::byte> piece(std::size_t{1} << 20);
  const auto got = outcome_of([&] { return ::read(from, piece.data(), piece.size()); });
  for (std::int64_t put = 0; put < got;) {
    result = outcome_of([&] { return ::write(to, piece.data() + put, static_cast<std::size_t>(got - put)); });
    if (result < 0) return result;
    put += result;
  }
  return got;
}

// Opens the source and creates the file for the copy. Blocks.
std::int64_t begin_copy(const std::filesystem::path& from, const std::filesystem::path& to, bool must_be_new,
                        unique_fd& source, replacement& copy) {
  struct stat about;
  const auto fd = outcome_of([&] { return ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return fd;
  source = unique_fd(static_cast<int>(fd));
  std::int64_t result = outcome_of([&] { return ::fstat(source.get(), &about); });
  if (result == 0 && S_ISDIR(about.st_mode)) result = -EISDIR;
  if (result == 0 && !S_ISREG(about.st_mode)) result = -EINVAL;
  struct stat there;
  // Before all the work; take_place checks again.
  if (result == 0 && must_be_new && ::lstat(to.c_str(), &there) == 0) result = -EEXIST;
  if (result == 0) result = copy.create_like(to, about.st_mode);
  return result;
}

file_metadata metadata_at(const std::filesystem::path& path, int flags, std::error_code& ec) {
  struct stat about {};
  ec = error_of(on_pool([&] { return ::fstatat(AT_FDCWD, path.c_str(), &about, flags); }));
  return ec ? file_metadata() : metadata_from(about);
}

}  // namespace

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using io_internal::or_throw;

namespace fs = std::filesystem;

file_metadata metadata(const fs::path& path, std::error_code& ec) {
  return io_internal::metadata_at(path, 0, ec);
}
file_metadata metadata(const fs::path& path) {
  return or_throw("ramie: metadata", [&](auto& ec) { return ramie::metadata(path, ec); }, path);
}
file_metadata symlink_metadata(const fs::path& path, std::error_code& ec) {
  return io_internal::metadata_at(path, AT_SYMLINK_NOFOLLOW, ec);
}
file_metadata symlink_metadata(const fs::path& path) {
  return or_throw("ramie: symlink_metadata", [&](auto& ec) { return symlink_metadata(path, ec); }, path);
}

bool create_directory(const fs::path& path, std::error_code& ec) {
  return blocking([&] { return fs::create_directory(path, ec); });
}
bool create_directory(const fs::path& path) {
  return or_throw("ramie: create_directory", [&](auto& ec) { return ramie::create_directory(path, ec); }, path);
}
bool create_directories(const fs::path& path, std::error_code& ec) {
  return blocking([&] { return fs::create_directories(path, ec); });
}
bool create_directories(const fs::path& path) {
  return or_throw("ramie: create_directories", [&](auto& ec) { return ramie::create_directories(path, ec); }, path);
}
bool remove(const fs::path& path, std::error_code& ec) {
  return blocking([&] { return fs::remove(path, ec); });
}
bool remove(const fs::path& path) {
  return or_throw("ramie: remove", [&](auto& ec) { return ramie::remove(path, ec); }, path);
}
std::uintmax_t remove_all(const fs::path& path, std::error_code& ec) {
  return blocking([&] { return fs::remove_all(path, ec); });
}
std::uintmax_t remove_all(const fs::path& path) {
  return or_throw("ramie: remove_all", [&](auto& ec) { return ramie::remove_all(path, ec); }, path);
}
void rename(const fs::path& from, const fs::path& to, std::error_code& ec) {
  blocking([&] { fs::rename(from, to, ec); });
}
void rename(const fs::path& from, const fs::path& to) {
  or_throw("ramie: rename", [&](auto& ec) { ramie::rename(from, to, ec); }, from, to);
}

std::uint64_t copy_file(const fs::path& from, const fs::path& to, existing target, std::error_code& ec) {
  const bool must_be_new = target == existing::keep;
  io_internal::unique_fd source;
  io_internal::replacement copy;
  auto result = blocking([&] { return io_internal::begin_copy(from, to, must_be_new, source, copy); });
  std::uint64_t size = 0;
  if (result >= 0) {
    while ((result = blocking([&] { return io_internal::copy_piece(source.get(), copy.descriptor()); })) > 0) {
      size += static_cast<std::uint64_t>(result);
    }
  }
  if (result >= 0) {
    check_cancelled();
    const shield until_it_is_there;  // a cancellation that comes meanwhile is too late: the copy is complete
    result = blocking([&] { return copy.take_place(must_be_new); });
  }
  ec = io_internal::error_of(result);
  return ec ? 0 : size;
}
std::uint64_t copy_file(const fs::path& from, const fs::path& to, existing target) {
  return or_throw("ramie: copy_file", [&](auto& ec) { return ramie::copy_file(from, to, target, ec); }, from, to);
}

temporary_directory::temporary_directory(const fs::path& parent, std::string_view prefix) {
  std::string name;
  bool made = false;
  try {
    const auto result = blocking([&] {
      name = ((parent.empty() ? fs::temp_directory_path() : parent) / prefix).string() + "XXXXXX";
      made = ::mkdtemp(name.data()) != nullptr;
      return made ? 0 : -errno;
    });
    io_internal::throw_if(io_internal::error_of(result), "ramie: temporary_directory::temporary_directory", name);
    path_ = name;
  } catch (...) {
    if (made) (void)::rmdir(name.c_str());
    throw;
  }
}

temporary_directory::~temporary_directory() {
  if (path_.empty()) return;
  const shield until_removed;
  const auto remove_it = [this]() noexcept {
    try {
      std::error_code ec;
      (void)fs::remove_all(path_, ec);
    } catch (...) {
      // No memory: the directory stays.
    }
  };
  try {
    blocking(remove_it);
  } catch (...) {
    remove_it();  // the pool has no thread: on this one
  }
}

temporary_directory& temporary_directory::operator=(temporary_directory&& other) noexcept {
  if (this == &other) return *this;
  const temporary_directory old(std::move(*this));
  path_ = std::exchange(other.path_, {});
  return *this;
}

void temporary_directory::remove() {
  if (path_.empty()) return;
  (void)ramie::remove_all(path_);
  path_.clear();
}

std::filesystem::path temporary_directory::release() noexcept {
  return std::exchange(path_, {});
}

}  // namespace ramie::inline v0
