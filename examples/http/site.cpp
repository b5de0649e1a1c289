// SPDX-License-Identifier: BSL-1.0
#include "site.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <system_error>

#include <ramie/blocking.hpp>

namespace http {

namespace {

status status_of(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:  // of links, or one where none is followed
    case EXDEV:  // a link that leads outside
    case ENAMETOOLONG:
    case ENXIO: return status::not_found;
    case EACCES:
    case EPERM: return status::forbidden;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return status::service_unavailable;
    default: return status::internal_error;
  }
}

// What is in memory: how much of it, or -errno. Does not wait.
ssize_t read_cached(int fd, std::span<std::byte> to, std::uint64_t offset) noexcept {
  const iovec piece{to.data(), to.size()};
  const ssize_t n = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  return n < 0 ? -errno : n;
}

}  // namespace

bool served_file::read(std::span<std::byte> to, std::uint64_t offset) {
  while (!to.empty()) {
    std::size_t done = 0;
    if (fd_) {
      const ssize_t n = read_cached(fd_.get(), to, offset);
      if (n == 0) return false;
      if (n < 0) slow_ = ramie::file::adopt(fd_.release());
      if (n > 0) done = static_cast<std::size_t>(n);
    } else {
      std::error_code ec;
      done = slow_.read_at(to, offset, ec);
      if (done == 0) return false;
    }
    to = to.subspan(done);
    offset += done;
  }
  return true;
}

status site::open(const target_path& path, served_file& found, kind_of_file& kind) const {
  int fd = root_.open(path.c_str(), wait_for_disk::no);
  if (fd == -EAGAIN) fd = ramie::blocking([&] { return root_.open(path.c_str(), wait_for_disk::yes); });
  if (fd < 0) return status_of(-fd);
  unique_fd owner(fd);
  struct stat about;
  if (::fstat(fd, &about) != 0) return status::internal_error;
  const bool regular = S_ISREG(about.st_mode);
  if (!regular && !S_ISDIR(about.st_mode)) return status::forbidden;
  kind = regular ? kind_of_file::regular : kind_of_file::folder;
  if (regular) found = served_file(std::move(owner), static_cast<std::uint64_t>(about.st_size), about.st_mtim.tv_sec);
  return status::ok;
}

}  // namespace http
