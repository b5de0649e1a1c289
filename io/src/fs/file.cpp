// SPDX-License-Identifier: BSL-1.0
#include <ramie/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <ramie/cancel.hpp>

#include "../native.hpp"
#include "open_file.hpp"
#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

std::chrono::system_clock::time_point time_from(const timespec& t) noexcept {
  using namespace std::chrono;
  return system_clock::time_point(duration_cast<system_clock::duration>(seconds(t.tv_sec) + nanoseconds(t.tv_nsec)));
}

std::filesystem::file_type type_of(mode_t mode) noexcept {
  using std::filesystem::file_type;
  switch (mode & S_IFMT) {
    case S_IFREG: return file_type::regular;
    case S_IFDIR: return file_type::directory;
    case S_IFLNK: return file_type::symlink;
    case S_IFBLK: return file_type::block;
    case S_IFCHR: return file_type::character;
    case S_IFIFO: return file_type::fifo;
    case S_IFSOCK: return file_type::socket;
    default: return file_type::unknown;
  }
}

open_file::kind kind_of(int fd) noexcept {
  struct stat about;
  if (::fstat(fd, &about) != 0) return open_file::kind::device;
  switch (about.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK: return open_file::kind::positioned;
    case S_IFIFO: return open_file::kind::named_pipe;
    case S_IFSOCK: return open_file::kind::stream;
    default: return open_file::kind::device;
  }
}

int flags_of(open_mode mode) noexcept {
  const bool writes = mode & (open_mode::write | open_mode::append);
  int flags = O_CLOEXEC | O_NOCTTY;
  flags |= !writes ? O_RDONLY : mode & open_mode::read ? O_RDWR : O_WRONLY;
  if (mode & open_mode::append) flags |= O_APPEND;
  if (mode & (open_mode::create | open_mode::exclusive)) flags |= O_CREAT;
  if (mode & open_mode::exclusive) flags |= O_EXCL;
  if (mode & open_mode::truncate) flags |= O_TRUNC;
  return flags;
}

// Opens without waiting for the other end of a named pipe; O_NONBLOCK is removed afterwards, because io_uring wants
// files without it. Waits for a lease that another process holds on the file.
std::int64_t open_at_once(const char* path, int flags, mode_t permissions) noexcept {
  auto fd = outcome_of([&] { return ::open(path, flags | O_NONBLOCK, permissions); });
  if (fd == -EWOULDBLOCK) return outcome_of([&] { return ::open(path, flags, permissions); });
  if (fd >= 0) (void)::fcntl(static_cast<int>(fd), F_SETFL, flags & (O_APPEND | O_ACCMODE));
  return fd;
}

// f(fd) on a thread of the pool, for a file that may be closed or none. A cancellation point.
template <class F>
std::int64_t on_pool_with(open_file* file, F f) {
  if (file == nullptr) {
    check_cancelled();
    return -EBADF;
  }
  return blocking([&] { return call_on(open_file::descriptor_of(file), f); });
}

// Every close of a file's descriptor reports what is wrong with the file. Ours is closed by whoever uses it last, who
// can't report that to the caller: so a copy is closed here. Returns 0 or -errno.
int close_a_copy(int fd) noexcept {
  const auto copy = outcome_of([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); });
  if (copy < 0) return 0;  // no descriptor left: errors are not reported
  return static_cast<int>(close_once(static_cast<int>(copy)));
}

}  // namespace

file_metadata metadata_from(const struct stat& from) noexcept {
  file_metadata m;
  m.kind = type_of(from.st_mode);
  m.permissions = static_cast<std::filesystem::perms>(from.st_mode & 07777);
  m.size = static_cast<std::uint64_t>(from.st_size);
  m.modified = time_from(from.st_mtim);
  m.accessed = time_from(from.st_atim);
  m.changed = time_from(from.st_ctim);
  m.user = from.st_uid;
  m.group = from.st_gid;
  m.links = from.st_nlink;
  m.device = from.st_dev;
  m.inode = from.st_ino;
  return m;
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using io_internal::error_of;
using io_internal::on_pool_with;
using io_internal::open_at_once;
using io_internal::open_file;
using io_internal::or_throw;
using io_internal::read_or_throw;
using io_internal::throw_if;
using io_internal::write_or_throw;
using runtime_internal::value_or_error;
using runtime_internal::value_or_throw;

file file::open(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions,
                std::error_code& ec) {
  auto kind = open_file::kind::device;
  io_internal::unique_fd fd;
  ec = error_of(blocking([&] {
    const auto opened = open_at_once(path.c_str(), io_internal::flags_of(mode), static_cast<mode_t>(permissions));
    fd = io_internal::unique_fd(static_cast<int>(opened));
    if (fd) kind = io_internal::kind_of(fd.get());
    return opened;
  }));
  return ec ? file() : file(open_file::adopt(fd.release(), kind, mode & open_mode::append));
}
file file::open(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions) {
  return or_throw("ramie: file::open", [&](auto& ec) { return open(path, mode, permissions, ec); }, path);
}

file file::from_native(int fd) {
  io_internal::unique_fd taken(fd);
  const auto flags = io_internal::outcome_of([&] { return ::fcntl(taken.get(), F_GETFL); });
  throw_if(error_of(flags), "ramie: file::from_native");
  const auto kind = io_internal::kind_of(taken.get());
  return file(open_file::adopt(taken.release(), kind, (flags & O_APPEND) != 0));
}

std::size_t file::read_at(std::span<std::byte> to, std::uint64_t offset, deadline until) {
  return value_or_throw(open_file::read_at(it_.get(), to, offset, until), "ramie: file::read_at");
}
std::size_t file::read_at(std::span<std::byte> to, std::uint64_t offset, std::error_code& ec, deadline until) {
  return value_or_error(open_file::read_at(it_.get(), to, offset, until), ec);
}
std::size_t file::read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset, deadline until) {
  return value_or_throw(open_file::read_at(it_.get(), to, offset, until), "ramie: file::read_at");
}
std::size_t file::read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset, std::error_code& ec,
                          deadline until) {
  return value_or_error(open_file::read_at(it_.get(), to, offset, until), ec);
}
std::size_t file::write_at(std::span<const std::byte> from, std::uint64_t offset, deadline until) {
  return value_or_throw(open_file::write_at(it_.get(), from, offset, until), "ramie: file::write_at");
}
std::size_t file::write_at(std::span<const std::byte> from, std::uint64_t offset, std::error_code& ec, deadline until) {
  return value_or_error(open_file::write_at(it_.get(), from, offset, until), ec);
}
std::size_t file::write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset, deadline until) {
  return value_or_throw(open_file::write_at(it_.get(), from, offset, until), "ramie: file::write_at");
}
std::size_t file::write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset, std::error_code& ec,
                           deadline until) {
  return value_or_error(open_file::write_at(it_.get(), from, offset, until), ec);
}

std::size_t file::read_some(std::span<std::byte> to, deadline until) {
  return value_or_throw(open_file::read_some(it_.get(), to, until), "ramie: file::read_some");
}
std::size_t file::read_some(std::span<std::byte> to, std::error_code& ec, deadline until) {
  return value_or_error(open_file::read_some(it_.get(), to, until), ec);
}
std::size_t file::write_some(std::span<const std::byte> from, deadline until) {
  return value_or_throw(open_file::write_some(it_.get(), from, until), "ramie: file::write_some");
}
std::size_t file::write_some(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return value_or_error(open_file::write_some(it_.get(), from, until), ec);
}
std::uint64_t file::position() const noexcept {
  return it_ != nullptr ? it_->position : 0;
}
void file::seek(std::uint64_t position) noexcept {
  if (it_ != nullptr) it_->position = position;
}

std::string file::read_all(deadline until) {
  return read_or_throw("ramie: file::read_all", [&](auto& ec) { return read_all(ec, until); });
}
std::string file::read_all(std::error_code& ec, deadline until) {
  std::string all;
  open_file::read_all(it_.get(), all, ec, until);
  return all;
}
std::vector<std::byte> file::read_all_bytes(deadline until) {
  return read_or_throw("ramie: file::read_all_bytes", [&](auto& ec) { return read_all_bytes(ec, until); });
}
std::vector<std::byte> file::read_all_bytes(std::error_code& ec, deadline until) {
  std::vector<std::byte> all;
  open_file::read_all(it_.get(), all, ec, until);
  return all;
}
void file::write_all(std::span<const std::byte> from, deadline until) {
  write_or_throw("ramie: file::write_all", [&](auto& ec) { return write_all(from, ec, until); });
}
std::size_t file::write_all(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return open_file::write_all(it_.get(), from, ec, until);
}

void file::append(std::span<const std::byte> from, deadline until) {
  write_or_throw("ramie: file::append", [&](auto& ec) { return append(from, ec, until); });
}
std::size_t file::append(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return open_file::append_all(it_.get(), from, ec, until);
}

void file::sync(bool data_only, deadline until) {
  (void)value_or_throw(open_file::sync(it_.get(), data_only, until), "ramie: file::sync");
}
void file::sync(bool data_only, std::error_code& ec, deadline until) {
  (void)value_or_error(open_file::sync(it_.get(), data_only, until), ec);
}

void file::truncate(std::uint64_t size, std::error_code& ec) {
  ec = error_of(on_pool_with(it_.get(), [&](int fd) { return ::ftruncate(fd, static_cast<off_t>(size)); }));
}
void file::truncate(std::uint64_t size) {
  or_throw("ramie: file::truncate", [&](auto& ec) { truncate(size, ec); });
}

file_metadata file::metadata(std::error_code& ec) const {
  struct stat about {};
  ec = error_of(on_pool_with(it_.get(), [&](int fd) { return ::fstat(fd, &about); }));
  return ec ? file_metadata() : io_internal::metadata_from(about);
}
file_metadata file::metadata() const {
  return or_throw("ramie: file::metadata", [&](auto& ec) { return metadata(ec); });
}
std::uint64_t file::size(std::error_code& ec) const {
  return metadata(ec).size;
}
std::uint64_t file::size() const {
  return or_throw("ramie: file::size", [&](auto& ec) { return size(ec); });
}

void file::close(std::error_code& ec) {
  ec.clear();
  if (!is_open()) return check_cancelled();
  const struct closing {
    open_file& it;
    ~closing() { it.descriptor().close(); }
  } in_any_case{*it_};
  ec = error_of(blocking([&] { return it_->descriptor().with_fd(io_internal::close_a_copy); }));
  if (ec == std::errc::bad_file_descriptor) ec.clear();  // another caller has closed it meanwhile
}
void file::close() {
  or_throw("ramie: file::close", [&](auto& ec) { close(ec); });
}
int file::release_native() {
  return io_internal::release_native(open_file::descriptor_of(it_.get()), "ramie: file::release_native");
}
bool file::is_open() const noexcept {
  return io_internal::is_open(open_file::descriptor_of(it_.get()));
}
int file::native_handle() const noexcept {
  return io_internal::native_handle(open_file::descriptor_of(it_.get()));
}

}  // namespace ramie::inline v0
