// SPDX-License-Identifier: BSL-1.0
// Directories, and what is done with files by name. All of it is done by threads of the blocking pool.
//
// Every function is a cancellation point: throws `cancelled`. What it began is ended first, so a rename, say, has
// happened or not. Those that end in std::error_code& report errors of the system there, the others throw
// std::filesystem::filesystem_error, which is a std::system_error. Fibers and plain threads may call all of them.
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

namespace ramie::detail {
class walker;
}

namespace ramie::inline v0 {

struct directory_entry {
  std::filesystem::path path;  // begins with what was listed or walked
  std::filesystem::file_type kind = std::filesystem::file_type::none;
  std::uint32_t depth = 0;  // 0: directly in it
  std::error_code error{};  // of a directory that could not be entered or read to its end

  [[nodiscard]] bool is_file() const noexcept { return kind == std::filesystem::file_type::regular; }
  [[nodiscard]] bool is_directory() const noexcept { return kind == std::filesystem::file_type::directory; }
  [[nodiscard]] bool is_symlink() const noexcept { return kind == std::filesystem::file_type::symlink; }
};

// What is in a directory, in the system's order, without "." and "..".
[[nodiscard]] std::vector<directory_entry> list_directory(const std::filesystem::path& path);
[[nodiscard]] std::vector<directory_entry> list_directory(const std::filesystem::path& path, std::error_code& ec);

struct walk_options {
  bool follow_symlinks = false;  // enter directories by way of symbolic links; each directory once
  std::uint32_t max_depth = ~std::uint32_t{0};
  std::size_t batch = 256;  // entries read at a time, at least 1
};

// All that is in a directory and in those below it: a directory before what is in it. Reads ahead by batches and keeps
// one directory open at a time, so neither its depth nor its size holds up a worker or uses up descriptors.
//
//   ramie::directory_walk all("/usr/include");
//   while (auto entry = all.next()) …
//
// What changes meanwhile may be seen or not. Used by one fiber or thread at a time. What has been moved from can only
// be destroyed or assigned to.
class directory_walk {
 public:
  // Nothing is opened yet. Throws std::bad_alloc.
  explicit directory_walk(std::filesystem::path root, walk_options how = {});
  directory_walk(directory_walk&&) noexcept;
  directory_walk& operator=(directory_walk&&) noexcept;
  ~directory_walk();

  // The next entry, or nothing when there are no more. A directory that can't be entered, or not be read to its end, is
  // handed out once more, with the error; the walk goes on. If the root itself can't be read, that is an error of
  // next(). A cancellation point; nothing is lost by a cancellation.
  [[nodiscard]] std::optional<directory_entry> next();
  [[nodiscard]] std::optional<directory_entry> next(std::error_code& ec);
  // The directory that was handed out last is not entered. Not a cancellation point.
  void skip() noexcept;

 private:
  std::unique_ptr<::ramie::detail::walker> it_;
};

// About a name; symlink_metadata: about a symbolic link itself.
[[nodiscard]] file_metadata metadata(const std::filesystem::path& path);
[[nodiscard]] file_metadata metadata(const std::filesystem::path& path, std::error_code& ec);
[[nodiscard]] file_metadata symlink_metadata(const std::filesystem::path& path);
[[nodiscard]] file_metadata symlink_metadata(const std::filesystem::path& path, std::error_code& ec);

// Creates a directory; create_directories: and those above it. False: it was there.
bool create_directory(const std::filesystem::path& path);
bool create_directory(const std::filesystem::path& path, std::error_code& ec);
bool create_directories(const std::filesystem::path& path);
bool create_directories(const std::filesystem::path& path, std::error_code& ec);

// Removes a file, a symbolic link or an empty directory. False: it was not there.
bool remove(const std::filesystem::path& path);
bool remove(const std::filesystem::path& path, std::error_code& ec);
// The same with all that is in it; symbolic links are not followed. How many were removed.
std::uintmax_t remove_all(const std::filesystem::path& path);
std::uintmax_t remove_all(const std::filesystem::path& path, std::error_code& ec);

// Gives a file or directory another name, in the same file system; a file that has it goes.
void rename(const std::filesystem::path& from, const std::filesystem::path& to);
void rename(const std::filesystem::path& from, const std::filesystem::path& to, std::error_code& ec);

enum class existing : std::uint8_t { keep, replace };
// Copies a file's content and permissions. The copy appears when it is complete; if that fails, or the fiber is
// cancelled, there is none. If `to` is there it is replaced, or kept: std::errc::file_exists. Cancelled between pieces
// of 8 MiB. A symbolic link `from` is followed; one that is `to` is itself what is there, and replaced (write_file
// follows it). The copy has the permissions, without setuid, setgid and sticky bits. How many bytes it has.
std::uint64_t copy_file(const std::filesystem::path& from, const std::filesystem::path& to,
                        existing target = existing::keep);
std::uint64_t copy_file(const std::filesystem::path& from, const std::filesystem::path& to, existing target,
                        std::error_code& ec);

// A new directory that only this user may enter, which goes, with all that is in it, with this object.
class temporary_directory {
 public:
  // In `parent`, or in std::filesystem::temp_directory_path(), with a name that begins with the prefix. A cancellation
  // point.
  explicit temporary_directory(const std::filesystem::path& parent = {}, std::string_view prefix = "ramie-");
  // Removes it. Waits for that also in a cancelled fiber. Errors are dropped: remove() tells them.
  ~temporary_directory();
  temporary_directory(temporary_directory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  temporary_directory& operator=(temporary_directory&& other) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // Now, with errors; path() is empty then. A cancellation point: the destructor still removes it.
  void remove();
  // It stays. path() is empty then.
  std::filesystem::path release() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace ramie::inline v0
