// SPDX-License-Identifier: BSL-1.0
#include "root.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace http {

namespace {

// O_NONBLOCK: a named pipe is opened without waiting for a writer, and then found to be no regular file.
constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

int open_beneath(int folder, const char* path, std::uint64_t resolve) noexcept {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve;
  const long fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

int open_segment(int folder, const char* name, int more) noexcept {
  const int fd = ::openat(folder, name, flags | O_NOFOLLOW | more);
  return fd < 0 ? -errno : fd;
}

ramie::file open_folder(const char* path) {
  const int fd = ::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::system_category(), path);
  return ramie::file::from_native(fd);
}

}  // namespace

root::root(const char* folder) : folder_(open_folder(folder)) {}

int root::open(const char* path, wait_for_disk wait) const {
  if (wait == wait_for_disk::no) {
    const int fd = open_beneath(folder_.native_handle(), path, RESOLVE_CACHED);
    // Linux before 5.12 knows no RESOLVE_CACHED, before 5.6 no openat2.
    return fd == -EINVAL || fd == -ENOSYS || fd == -EPERM ? -EAGAIN : fd;
  }
  // -EAGAIN: something was renamed meanwhile, so the kernel can't tell whether we are still below.
  int fd = -EAGAIN;
  for (int tries = 0; fd == -EAGAIN && tries < 8; ++tries) fd = open_beneath(folder_.native_handle(), path, 0);
  return fd == -ENOSYS || fd == -EPERM ? open_by_segments(path) : fd;
}

int root::open_by_segments(const char* path) const {
  ramie::file parent;
  int folder = folder_.native_handle();
  char name[NAME_MAX + 1];
  while (const char* const slash = std::strchr(path, '/')) {
    const auto size = static_cast<std::size_t>(slash - path);
    if (size > NAME_MAX) return -ENAMETOOLONG;
    std::memcpy(name, path, size);
    name[size] = '\0';
    const int next = open_segment(folder, name, O_DIRECTORY);
    if (next < 0) return next;
    parent = ramie::file::from_native(next);
    folder = next;
    path = slash + 1;
  }
  return open_segment(folder, path, 0);
}

}  // namespace http
