// SPDX-License-Identifier: BSL-1.0
// Directories are read in batches, on threads of the blocking pool. The entries of a batch are returned one by one; a
// directory that is returned is put on a stack, and opened when the current one has been read to its end.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <ramie/directory.hpp>

#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

using std::filesystem::file_type;

struct dir_closer {
  void operator()(DIR* d) const noexcept { (void)::closedir(d); }
};
using open_dir = std::unique_ptr<DIR, dir_closer>;

file_type type_of_entry(unsigned char type) noexcept {
  switch (type) {
    case DT_REG: return file_type::regular;
    case DT_DIR: return file_type::directory;
    case DT_LNK: return file_type::symlink;
    case DT_BLK: return file_type::block;
    case DT_CHR: return file_type::character;
    case DT_FIFO: return file_type::fifo;
    case DT_SOCK: return file_type::socket;
    default: return file_type::unknown;
  }
}

// For file systems that do not report the kind of an entry. Blocks.
file_type type_by_asking(DIR* in, const char* name) noexcept {
  struct stat about;
  if (::fstatat(::dirfd(in), name, &about, AT_SYMLINK_NOFOLLOW) != 0) return file_type::unknown;
  return metadata_from(about).kind;
}

// Blocks. Null with an error in `ec`.
open_dir open_for_listing(const std::filesystem::path& path, bool follow, std::error_code& ec) noexcept {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  const auto opened = outcome_of([&] { return ::open(path.c_str(), flags); });
  ec = error_of(opened);
  if (ec) return nullptr;
  unique_fd fd(static_cast<int>(opened));
  open_dir d(::fdopendir(fd.get()));
  if (d == nullptr) {
    ec = error_of(-errno);
  } else {
    (void)fd.release();
  }
  return d;
}

// Reads up to `most` entries. Blocks. False: the end, or an error in `ec`.
bool read_batch(DIR* from, const std::filesystem::path& folder, std::uint32_t depth, std::size_t most,
                std::vector<directory_entry>& into, std::error_code& ec) {
  for (std::size_t i = 0; i < most;) {
    errno = 0;
    const dirent* const e = ::readdir(from);
    if (e == nullptr) {
      ec = error_of(-errno);
      return false;
    }
    const std::string_view name = e->d_name;
    if (name == "." || name == "..") continue;
    auto kind = type_of_entry(e->d_type);
    if (kind == file_type::unknown) kind = type_by_asking(from, e->d_name);
    into.push_back({folder / name, kind, depth, {}});
    ++i;
  }
  return true;
}

}  // namespace

class walker {
 public:
  walker(std::filesystem::path root, walk_options how) : root_(std::move(root)), how_(how) {
    how_.batch = std::max<std::size_t>(how.batch, 1);
    waiting_.push_back({root_, file_type::directory, 0, {}});
  }

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

  std::optional<directory_entry> next(std::error_code& ec) {
    ec.clear();
    note_last();
    while (at_ == batch_.size()) {
      if (open_ == nullptr && waiting_.empty()) {
        ec = std::exchange(root_error_, {});
        return std::nullopt;
      }
      fill();
    }
    last_ = &batch_[at_++];
    enter_last_ = !last_->error && (last_->is_directory() || (how_.follow_symlinks && last_->is_symlink())) &&
                  last_->depth < how_.max_depth;
    return *last_;
  }
  void skip() noexcept { enter_last_ = false; }

 private:
  // Puts the directory that was returned last on the stack, if it is to be entered.
  void note_last() {
    if (!std::exchange(enter_last_, false)) return;
    waiting_.push_back({last_->path, last_->kind, last_->depth + 1, {}});
  }

  // Replaces a batch that has been returned by the next one. After a cancellation either nothing has changed or the new
  // batch is there.
  void fill() {
    blocking([this] {
      batch_.clear();
      at_ = 0;
      if (open_ == nullptr && !open_next()) return;
      std::error_code ec;
      if (read_batch(open_.get(), folder_.path, folder_.depth, how_.batch, batch_, ec)) return;
      open_ = nullptr;
      if (ec) failed(ec);
    });
  }

  // Opens the directory on top of the stack. False: it can't be opened, or has been entered before.
  bool open_next() {
    folder_ = std::move(waiting_.back());
    waiting_.pop_back();
    const bool is_root = !std::exchange(begun_, true);
    std::error_code ec;
    open_ = open_for_listing(folder_.path, is_root || how_.follow_symlinks, ec);
    if (open_ == nullptr) {
      const bool link_to_no_directory = folder_.is_symlink() && (ec == std::errc::not_a_directory);
      if (is_root) {
        root_error_ = ec;
      } else if (!link_to_no_directory) {
        failed(ec);
      }
      return false;
    }
    return !how_.follow_symlinks || is_new();
  }

  [[nodiscard]] bool is_new() {
    struct stat about;
    if (::fstat(::dirfd(open_.get()), &about) == 0 && seen_.emplace(about.st_dev, about.st_ino).second) return true;
    open_ = nullptr;
    return false;
  }

  // Returns the current directory again, with the error. It is an entry of its parent, one level up.
  void failed(std::error_code ec) {
    batch_.push_back({folder_.path, folder_.kind, folder_.depth == 0 ? 0 : folder_.depth - 1, ec});
  }

  const std::filesystem::path root_;
  walk_options how_;
  std::vector<directory_entry> waiting_;  // a stack of directories to be entered; depth: of their entries
  directory_entry folder_;                // the one that is being read; depth likewise
  open_dir open_;
  std::vector<directory_entry> batch_;
  std::size_t at_ = 0;
  const directory_entry* last_ = nullptr;  // returned last
  bool enter_last_ = false;
  bool begun_ = false;
  std::error_code root_error_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;  // directories entered, if symbolic links are followed
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using io_internal::or_throw;

directory_walk::directory_walk(std::filesystem::path root, walk_options how)
    : it_(std::make_unique<io_internal::walker>(std::move(root), how)) {}
directory_walk::directory_walk(directory_walk&&) noexcept = default;
directory_walk& directory_walk::operator=(directory_walk&&) noexcept = default;
directory_walk::~directory_walk() = default;

std::optional<directory_entry> directory_walk::next(std::error_code& ec) {
  return it_->next(ec);
}
std::optional<directory_entry> directory_walk::next() {
  return or_throw("ramie: directory_walk::next", [&](auto& ec) { return it_->next(ec); }, it_->root());
}
void directory_walk::skip() noexcept {
  it_->skip();
}

std::vector<directory_entry> list_directory(const std::filesystem::path& path, std::error_code& ec) {
  std::vector<directory_entry> all;
  blocking([&] {
    const auto d = io_internal::open_for_listing(path, true, ec);
    while (d != nullptr && io_internal::read_batch(d.get(), path, 0, 1024, all, ec)) continue;
  });
  return all;
}
std::vector<directory_entry> list_directory(const std::filesystem::path& path) {
  return or_throw("ramie: list_directory", [&](auto& ec) { return list_directory(path, ec); }, path);
}

}  // namespace ramie::inline v0
