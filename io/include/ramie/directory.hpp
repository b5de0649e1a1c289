// SPDX-License-Identifier: BSL-1.0
// Directories, and operations on files by name. Threads of the blocking pool carry all of it out.
//
// Every function is a cancellation point and throws `cancelled`, but only after what it has begun is complete: a
// rename, for example, has happened or has not. A function whose last parameter is a std::error_code& reports errors of
// the system there; the others throw std::filesystem::filesystem_error, which is a std::system_error. Fibers and plain
// threads may call all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <ramie/file.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class walker;
}

namespace ramie::inline v0 {

// One entry of a directory, as it was when the directory was read.
struct directory_entry {
  std::filesystem::path path;  // begins with what was listed or walked
  std::filesystem::file_type kind = std::filesystem::file_type::none;
  std::uint32_t depth = 0;  // 0: directly in it
  std::error_code error{};  // why this directory could not be opened or read to its end

  // What `kind` says: of a symbolic link, what it is itself, not what it leads to.
  [[nodiscard]] bool is_file() const noexcept { return kind == std::filesystem::file_type::regular; }
  [[nodiscard]] bool is_directory() const noexcept { return kind == std::filesystem::file_type::directory; }
  [[nodiscard]] bool is_symlink() const noexcept { return kind == std::filesystem::file_type::symlink; }
};

// The entries of a directory in the order of the file system, without "." and "..".
[[nodiscard]] std::vector<directory_entry> list_directory(const std::filesystem::path& path);
[[nodiscard]] std::vector<directory_entry> list_directory(const std::filesystem::path& path, std::error_code& ec);

// How a directory_walk goes.
struct walk_options {
  bool follow_symlinks = false;  // symbolic links to directories are entered; each directory is entered once
  std::uint32_t max_depth = ~std::uint32_t{0};  // of the entries that are returned; 0: those directly in the root
  std::size_t batch = 256;  // entries read at a time, at least 1
};

// All entries of a directory and of the directories below it; a directory comes before its entries. Reads ahead in
// batches and keeps one directory open at a time, so that neither the depth nor the size of a tree blocks a worker or
// uses up descriptors.
//
//   ramie::directory_walk all("/usr/include");
//   while (auto entry = all.next()) …
//
// Entries that appear or vanish during the walk may be seen or not. Used by one fiber or thread at a time. A walk that
// has been moved from can only be destroyed or assigned to.
class directory_walk {
 public:
  // Opens nothing yet. Throws std::bad_alloc.
  explicit directory_walk(std::filesystem::path root, walk_options how = {});
  directory_walk(directory_walk&&) noexcept;
  directory_walk& operator=(directory_walk&&) noexcept;
  ~directory_walk();

  // The next entry, or nothing at the end. A directory that can't be opened, or can't be read to its end, is returned a
  // second time, with the error, and the walk goes on. If the root itself can't be read, next() fails. A cancellation
  // point; a cancelled call loses no entry.
  [[nodiscard]] std::optional<directory_entry> next();
  [[nodiscard]] std::optional<directory_entry> next(std::error_code& ec);
  // The directory that next() has returned last is not entered. Never waits; not a cancellation point.
  void skip() noexcept;

 private:
  std::unique_ptr<::ramie::io_internal::walker> it_;
};

// Metadata of the file that a path leads to; symlink_metadata: of the symbolic link itself.
[[nodiscard]] file_metadata metadata(const std::filesystem::path& path);
[[nodiscard]] file_metadata metadata(const std::filesystem::path& path, std::error_code& ec);
[[nodiscard]] file_metadata symlink_metadata(const std::filesystem::path& path);
[[nodiscard]] file_metadata symlink_metadata(const std::filesystem::path& path, std::error_code& ec);

// Creates a directory; create_directories: and its missing parents. False: it exists already.
bool create_directory(const std::filesystem::path& path);
bool create_directory(const std::filesystem::path& path, std::error_code& ec);
bool create_directories(const std::filesystem::path& path);
bool create_directories(const std::filesystem::path& path, std::error_code& ec);

// Removes a file, a symbolic link or an empty directory. False: it did not exist.
bool remove(const std::filesystem::path& path);
bool remove(const std::filesystem::path& path, std::error_code& ec);
// The same with everything in it; symbolic links are not followed. Returns how many files and directories were removed.
std::uintmax_t remove_all(const std::filesystem::path& path);
std::uintmax_t remove_all(const std::filesystem::path& path, std::error_code& ec);

// Renames a file or directory within a file system; a file that already has that name is replaced.
void rename(const std::filesystem::path& from, const std::filesystem::path& to);
void rename(const std::filesystem::path& from, const std::filesystem::path& to, std::error_code& ec);

// What copy_file does with a file that has the name of the copy.
enum class existing : std::uint8_t { keep, replace };
// Copies a file's content and permissions, and returns how many bytes. The copy appears under its name when it is
// complete; if that fails, or the fiber is cancelled, there is none. If `to` exists it is replaced, or kept, which is
// std::errc::file_exists. Can be cancelled between pieces of 8 MiB. A symbolic link `from` is followed; a symbolic link
// `to` is replaced itself (write_file follows it). The copy gets the permissions without setuid, setgid and sticky
// bits.
std::uint64_t copy_file(const std::filesystem::path& from, const std::filesystem::path& to,
                        existing target = existing::keep);
std::uint64_t copy_file(const std::filesystem::path& from, const std::filesystem::path& to, existing target,
                        std::error_code& ec);

// A new directory that only this user may enter. The destructor removes it with everything in it.
class temporary_directory {
 public:
  // Creates it in `parent`, or in std::filesystem::temp_directory_path(), with a name that begins with the prefix. A
  // cancellation point. Throws std::filesystem::filesystem_error, std::bad_alloc.
  explicit temporary_directory(const std::filesystem::path& parent = {}, std::string_view prefix = "ramie-");
  // Removes it and waits for that, also in a cancelled fiber. Ignores errors: call remove() to see them.
  ~temporary_directory();
  temporary_directory(temporary_directory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  temporary_directory& operator=(temporary_directory&& other) noexcept;

  // Where it is; empty after remove(), release() and a move. Not a cancellation point.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // Removes it now, and throws errors; path() is empty afterwards. A cancellation point; if it throws, the destructor
  // tries again.
  void remove();
  // Keeps the directory and returns its path; path() is empty afterwards. Not a cancellation point.
  std::filesystem::path release() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace ramie::inline v0
