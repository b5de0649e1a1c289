// SPDX-License-Identifier: BSL-1.0
#include "site.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
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
    if (!on_disk_) {
      const ssize_t n = read_cached(file_.native_handle(), to, offset);
      if (n == 0) return false;
      on_disk_ = n < 0;
      if (n > 0) done = static_cast<std::size_t>(n);
    } else {
      std::error_code ec;
      done = file_.read_at(to, offset, ec);
      if (done == 0) return false;
    }
    to = to.subspan(done);
    offset += done;
  }
  return true;
}

int site::open_descriptor(const char* path) const {
  const int fd = root_.open(path, wait_for_disk::no);
  return fd == -EAGAIN ? ramie::blocking([&] { return root_.open(path, wait_for_disk::yes); }) : fd;
}

status site::open(const target_path& path, served_file& found, kind_of_file& kind) {
  const seconds now = std::time(nullptr);
  kind = kind_of_file::regular;
  auto known = cache_.find(path.view());
  if (known != nullptr && known->checked.load(std::memory_order_relaxed) == now) {
    found = served_file(std::move(known));
    return status::ok;
  }
  const int fd = open_descriptor(path.c_str());
  if (fd < 0) return status_of(-fd);
  auto owner = ramie::file::from_native(fd);
  struct stat about;
  if (::fstat(fd, &about) != 0) return status::internal_error;
  if (S_ISDIR(about.st_mode)) kind = kind_of_file::folder;
  if (!S_ISREG(about.st_mode)) return kind == kind_of_file::folder ? status::ok : status::forbidden;
  const file_identity identity(about);
  found = served_file(std::move(owner), identity.size, identity.modified);
  if (known == nullptr || known->identity != identity) known = load(path.view(), found, fd, identity, now);
  if (known == nullptr) return status::ok;
  known->checked.store(now, std::memory_order_relaxed);
  found = served_file(std::move(known));
  return status::ok;
}

std::shared_ptr<const cached_file> site::load(std::string_view path, served_file& file, int fd,
                                              const file_identity& identity, seconds now) {
  const bool settled = std::max(identity.modified, identity.changed) + 2 <= now;
  if (identity.size > file_cache::largest || !settled) return nullptr;
  std::string content(static_cast<std::size_t>(identity.size), '\0');
  if (!file.read(std::as_writable_bytes(std::span(content)), 0)) return nullptr;
  struct stat after;
  if (::fstat(fd, &after) != 0 || file_identity(after) != identity) return nullptr;  // written to meanwhile
  auto made = std::make_shared<const cached_file>(path, identity, std::move(content), now);
  cache_.keep(made);
  return made;
}

}  // namespace http
