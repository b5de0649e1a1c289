// SPDX-License-Identifier: BSL-1.0
#include "replacement.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include <ramie/file.hpp>
#include <ramie/platform/io_backend.hpp>

#include "open_file.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

// A name that others can't guess; O_EXCL makes sure that it is new.
std::string name_beside(const std::filesystem::path& target) {
  std::uint64_t chance = 0;
  static std::atomic<std::uint64_t> calls{0};
  if (::getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance) chance = static_cast<unsigned>(::getpid());
  std::array<char, 32> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%016llx",
                      static_cast<unsigned long long>(chance + calls.fetch_add(1, std::memory_order_relaxed)));
  std::string name = target.filename().string().substr(0, 200);  // of 255
  return "." + name + "." + digits.data();
}

// Blocks.
std::int64_t sync_now(const unique_fd& fd) noexcept {
  platform::io_operation op;
  op.code = platform::io_code::sync;
  op.fd = fd.get();
  return platform::perform(op);
}

std::int64_t sync_folder_of(const std::filesystem::path& path) noexcept {
  try {
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const unique_fd fd(
        static_cast<int>(outcome_of([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })));
    if (!fd) return 0;  // a directory that we may write to but not read can't be opened
    const auto result = sync_now(fd);
    return result == -EINVAL || result == -EROFS ? 0 : result;  // of a file system without such a sync
  } catch (...) {
    return -ENOMEM;
  }
}

std::int64_t write_fully(int fd, std::span<const std::byte> content) noexcept {
  while (!content.empty()) {
    const auto result = outcome_of([&] { return ::write(fd, content.data(), content.size()); });
    if (result < 0) return result;
    content = content.subspan(static_cast<std::size_t>(result));
  }
  return 0;
}

// Blocks.
std::int64_t replace_content(const std::filesystem::path& target, std::span<const std::byte> content,
                             const struct stat* before) {
  replacement fresh;
  auto result = before != nullptr ? fresh.create_like(target, before->st_mode) : fresh.create(target, 0666);
  if (result >= 0) result = write_fully(fresh.descriptor(), content);
  if (result >= 0) result = fresh.take_place(false);
  return result;
}

// Blocks. 1: the path leads to something that is not a regular file, and nothing has been done.
std::int64_t replace_if_regular(const std::filesystem::path& path, std::span<const std::byte> content) {
  struct stat before;
  const auto there = outcome_of([&] { return ::stat(path.c_str(), &before); });
  if (there == 0 && S_ISDIR(before.st_mode)) return -EISDIR;
  if (there == 0 && !S_ISREG(before.st_mode)) return 1;
  std::error_code ec;
  const bool is_link = std::filesystem::is_symlink(path, ec);
  const auto target = is_link ? std::filesystem::canonical(path, ec) : path;
  if (is_link && ec) return -ec.value();
  return replace_content(target, content, there == 0 ? &before : nullptr);
}

}  // namespace

replacement::~replacement() {
  if (!own_.empty()) (void)::unlink(own_.c_str());
}

std::int64_t replacement::create(const std::filesystem::path& target, mode_t permissions) {
  if (!target.has_filename()) return -ENOENT;
  auto own = target;
  own.replace_filename(name_beside(target));
  target_ = target;
  const auto fd = outcome_of([&] { return ::open(own.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions); });
  if (fd < 0) return fd;
  fd_ = unique_fd(static_cast<int>(fd));
  own_ = std::move(own);
  return 0;
}

std::int64_t replacement::create_like(const std::filesystem::path& target, mode_t other) {
  const mode_t permissions = other & 0777;
  const auto result = create(target, permissions);
  return result < 0 ? result : outcome_of([&] { return ::fchmod(descriptor(), permissions); });
}

std::int64_t replacement::move_over(bool must_be_new) noexcept {
  const unsigned flags = must_be_new ? RENAME_NOREPLACE : 0;
  const auto moved = outcome_of([&] { return ::renameat2(AT_FDCWD, own_.c_str(), AT_FDCWD, target_.c_str(), flags); });
  if (moved == 0) own_.clear();
  if (moved != -EINVAL || !must_be_new) return moved;
  // The file system does not support RENAME_NOREPLACE. link() never replaces an existing name; the destructor removes
  // the temporary one.
  return outcome_of([&] { return ::link(own_.c_str(), target_.c_str()); });
}

std::int64_t replacement::take_place(bool must_be_new) {
  auto result = sync_now(fd_);
  if (result == -EINVAL) result = 0;
  if (result >= 0) result = close_once(fd_.release());
  if (result < 0) return result;
  result = move_over(must_be_new);
  if (result < 0) return result;
  return sync_folder_of(target_);
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using io_internal::or_throw;

std::string read_file(const std::filesystem::path& path, std::error_code& ec) {
  file f = file::open(path, open_mode::read, ec);
  return ec ? std::string() : f.read_all(ec);
}
std::string read_file(const std::filesystem::path& path) {
  return or_throw("ramie: read_file", [&](auto& ec) { return read_file(path, ec); }, path);
}
std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::error_code& ec) {
  file f = file::open(path, open_mode::read, ec);
  return ec ? std::vector<std::byte>() : f.read_all_bytes(ec);
}
std::vector<std::byte> read_file_bytes(const std::filesystem::path& path) {
  return or_throw("ramie: read_file_bytes", [&](auto& ec) { return read_file_bytes(path, ec); }, path);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> content, std::error_code& ec) {
  const auto result = blocking([&] { return io_internal::replace_if_regular(path, content); });
  ec = io_internal::error_of(result);
  if (result != 1) return;
  file f = file::open(path, open_mode::write, ec);
  if (!ec) (void)f.write_all(content, ec);
}
void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  or_throw("ramie: write_file", [&](auto& ec) { write_file(path, content, ec); }, path);
}

}  // namespace ramie::inline v0
