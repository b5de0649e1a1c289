// SPDX-License-Identifier: BSL-1.0
// Files. Where a system call would block, the fiber waits and its worker runs other fibers.
//
// Reads and writes are operations of the runtime's I/O mechanism: with io_uring the kernel performs them, with epoll
// and poll a thread of the blocking pool. Everything else (open, metadata, truncate, rename …) is performed by that
// pool and takes no deadline, because nothing could interrupt it.
//
// Deadlines are for what waits: pipes, terminals and the like. A read, write or sync of a regular file that a thread of
// the pool (epoll, poll) or the calling plain thread has begun is completed, whatever the deadline or a cancellation
// says; io_uring can cancel those that it has not begun.
//
// All functions that say "a cancellation point" throw `cancelled`; fibers and plain threads may call all of them. A
// function whose parameters end in std::error_code& (and a deadline) reports errors of the system there, the others
// throw std::system_error. A deadline that has passed is std::errc::timed_out, a file that was closed
// std::errc::bad_file_descriptor, a read or write that could not be begun std::errc::not_enough_memory and the like.
// Functions of the pool throw std::system_error in both forms if no thread can be started for them; functions that
// return or copy memory throw std::bad_alloc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class open_file;
}

namespace ramie::inline v0 {

// What a file is opened for. Flags: `open_mode::write | open_mode::create`.
enum class open_mode : std::uint8_t {
  read = 1,
  write = 2,
  append = 4,      // every write goes to the end, whoever else writes; also means write
  create = 8,      // the file is created if it does not exist
  exclusive = 16,  // the file, or a symbolic link of that name, must not exist; also means create
  truncate = 32,   // the file is emptied
};
[[nodiscard]] constexpr open_mode operator|(open_mode a, open_mode b) noexcept {
  return static_cast<open_mode>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool operator&(open_mode set, open_mode flag) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}

// What the file system says about a file.
struct file_metadata {
  std::filesystem::file_type kind = std::filesystem::file_type::none;
  std::filesystem::perms permissions = std::filesystem::perms::none;
  std::uint64_t size = 0;
  std::chrono::system_clock::time_point modified{}, accessed{}, changed{};
  std::uint32_t user = 0, group = 0;
  std::uint64_t links = 0;
  std::uint64_t device = 0, inode = 0;  // two files with the same pair are the same file

  // What `kind` says.
  [[nodiscard]] bool is_file() const noexcept { return kind == std::filesystem::file_type::regular; }
  [[nodiscard]] bool is_directory() const noexcept { return kind == std::filesystem::file_type::directory; }
};

// An open file. Movable; the destructor closes and ignores errors: call sync() and close() to see them.
//
// Any number of fibers and threads may call the positional forms (`…_at`), sync, metadata and close at once. The stream
// forms share one position, which begins at 0: one user at a time. The object must not be moved, assigned to or
// destroyed during a call: close() ends the calls of others. A file that has been moved from is not open.
class file {
 public:
  file() noexcept = default;  // not open: every operation is bad_file_descriptor

  // Opens. `permissions`, without the bits of the process's umask, are for a file that is created. Does not wait for
  // the other end of a named pipe: the first read waits until a writer has opened it. To open a named pipe for writing
  // that nobody reads is std::errc::no_such_device_or_address. The file never becomes the controlling terminal, and
  // child processes do not inherit it. A cancellation point. Throws std::filesystem::filesystem_error with the path,
  // std::bad_alloc.
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode = open_mode::read,
                                 std::filesystem::perms permissions = read_write_all);
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions,
                                 std::error_code& ec);
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode, std::error_code& ec) {
    return open(path, mode, read_write_all, ec);
  }
  // Takes over an open descriptor; it is closed if this throws std::bad_alloc or std::system_error. It may be made
  // non-blocking, for all who share it. Not a cancellation point.
  [[nodiscard]] static file from_native(int fd);
  // Gives the descriptor back: it is yours to close, and this is not open any more. -1 if it was not open. Throws
  // usage_error while somebody uses it. Not a cancellation point.
  [[nodiscard]] int release_native();

  // Reads some bytes at that offset, at most as many as fit; 0 is the end of the file, or an empty buffer. The vectored
  // form fills the buffers in order, the first 64 that are not empty. A cancellation point.
  [[nodiscard]] std::size_t read_at(std::span<std::byte> to, std::uint64_t offset, deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<std::byte> to, std::uint64_t offset, std::error_code& ec,
                                    deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset,
                                    deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset, std::error_code& ec,
                                    deadline until = {});
  // Writes some of the bytes at that offset, at least one unless there are none. A cancellation point.
  [[nodiscard]] std::size_t write_at(std::span<const std::byte> from, std::uint64_t offset, deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::byte> from, std::uint64_t offset, std::error_code& ec,
                                     deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset,
                                     deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset,
                                     std::error_code& ec, deadline until = {});

  // The same at the position, which advances by what was transferred. Writes to a file opened with `append` go to its
  // end and leave the position. Pipes, terminals and the like have no position. A cancellation point.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, std::error_code& ec, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  // Where the next stream form begins; 0 of a file that is not open. The one user of the stream forms. Not a
  // cancellation point.
  [[nodiscard]] std::uint64_t position() const noexcept;
  // Sets it; nothing happens if the file is not open. Never waits; not a cancellation point.
  void seek(std::uint64_t position) noexcept;

  // Reads everything from the position to the end; with an error, returns what came before it. A cancellation point.
  // Throws transfer_error (stream.hpp), which says how much that was; std::bad_alloc.
  [[nodiscard]] std::string read_all(deadline until = {});
  [[nodiscard]] std::string read_all(std::error_code& ec, deadline until = {});
  [[nodiscard]] std::vector<std::byte> read_all_bytes(deadline until = {});
  [[nodiscard]] std::vector<std::byte> read_all_bytes(std::error_code& ec, deadline until = {});
  // Writes everything at the position. Returns how much was written, which is less only with an error. A cancellation
  // point; a part may have been written then. Throws transfer_error (stream.hpp), which says how much was written.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(std::string_view from, deadline until = {}) { write_all(std::as_bytes(std::span(from)), until); }
  std::size_t write_all(std::string_view from, std::error_code& ec, deadline until = {}) {
    return write_all(std::as_bytes(std::span(from)), ec, until);
  }
  // Writes everything at the end of the file, also while others append; the position stays. Pipes and sockets have no
  // end: std::errc::invalid_seek. Otherwise like write_all, but by any number of fibers and threads at once.
  void append(std::span<const std::byte> from, deadline until = {});
  std::size_t append(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void append(std::string_view from, deadline until = {}) { append(std::as_bytes(std::span(from)), until); }
  std::size_t append(std::string_view from, std::error_code& ec, deadline until = {}) {
    return append(std::as_bytes(std::span(from)), ec, until);
  }

  // Returns when what was written is on the disk; data_only: without metadata such as times. A cancellation point.
  void sync(bool data_only = false, deadline until = {});
  void sync(bool data_only, std::error_code& ec, deadline until = {});

  // Cuts the file off at that size, or fills it up to there with zeros; the position stays. A cancellation point.
  // Throws std::system_error: invalid_argument if the file was not opened to be written, or is none that has a size.
  void truncate(std::uint64_t size);
  void truncate(std::uint64_t size, std::error_code& ec);
  // How many bytes the file has: metadata().size. With an error the second form returns 0. A cancellation point. Throws
  // std::system_error.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t size(std::error_code& ec) const;
  // What the file system says about it. With an error the second form returns a default-made one. A cancellation point.
  // Throws std::system_error.
  [[nodiscard]] file_metadata metadata() const;
  [[nodiscard]] file_metadata metadata(std::error_code& ec) const;

  // Closes; operations under way end with bad_file_descriptor. Reports errors that the system finds only now, as
  // network file systems and quotas do; that is why, unlike in sockets and pipes, it may fail. A cancellation point,
  // but the file is closed in any case. Idempotent. Any fiber or thread. Throws std::system_error.
  void close();
  void close(std::error_code& ec);
  // Whether it has a descriptor that has been neither closed nor released. Any fiber or thread. Not a cancellation
  // point.
  [[nodiscard]] bool is_open() const noexcept;
  // The descriptor, or -1 if not open. For system calls that ramie has no function for; don't close it. Any fiber or
  // thread. Not a cancellation point.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  static constexpr auto read_write_all = static_cast<std::filesystem::perms>(0666);
  explicit file(std::shared_ptr<::ramie::io_internal::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::io_internal::open_file> it_;
};

// The whole content of a file: open and read_all. With an error the forms with an error_code return what was read
// before it. Cancellation points. Throw std::filesystem::filesystem_error with the path, which is a std::system_error;
// std::bad_alloc.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::error_code& ec);
[[nodiscard]] std::vector<std::byte> read_file_bytes(const std::filesystem::path& path);
[[nodiscard]] std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::error_code& ec);

// Replaces the content of a file atomically: a reader, also after a power failure, finds the old content or the new. A
// new file is written beside the old one, synced and renamed over it; it belongs to this user and has the permissions
// of the old one, never more, without setuid, setgid and sticky bits. If that fails (for example because the disk is
// full) the old file stays and the new one is removed. Only if the last step fails, the sync of the directory, the new
// file is in place, but may not survive a power failure. Symbolic links are followed: their target is replaced. A file
// that is not regular (a device, a named pipe) is written into instead. A cancellation point: a fiber that is cancelled
// has either replaced the file or left it as it was. Throws std::filesystem::filesystem_error with the path,
// std::bad_alloc.
void write_file(const std::filesystem::path& path, std::span<const std::byte> content);
void write_file(const std::filesystem::path& path, std::span<const std::byte> content, std::error_code& ec);
inline void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::as_bytes(std::span(content)));
}
inline void write_file(const std::filesystem::path& path, std::string_view content, std::error_code& ec) {
  write_file(path, std::as_bytes(std::span(content)), ec);
}

}  // namespace ramie::inline v0
