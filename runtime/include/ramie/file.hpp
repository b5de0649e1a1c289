// SPDX-License-Identifier: BSL-1.0
// Files. Fibers call plain functions; where the machine would block, the fiber waits and its worker runs others.
//
// Reads and writes are operations of the runtime's I/O mechanism: with io_uring the kernel carries them out, with epoll
// and poll a thread of the blocking pool does. Everything else (open, metadata, truncate, rename …) is done by that
// pool; it takes no deadline, for nothing could cut it short.
//
// Deadlines are for what waits: pipes, terminals and the like. A read or write of a regular file, and a sync, that a
// thread of the pool (epoll, poll) or the calling plain thread has begun goes to its end, deadline or cancellation or
// not; io_uring can end those that it has not begun.
//
// All functions that say "a cancellation point" throw `cancelled`; all may be called by fibers and plain threads. Those
// that end in std::error_code& report errors of the system there (a deadline: std::errc::timed_out; a file that was
// closed: std::errc::bad_file_descriptor; a read or write that the machine can't even begin:
// std::errc::not_enough_memory and the like), the others throw std::system_error. What the pool does throws
// std::system_error in both forms if there is no thread for it; what returns or copies memory throws std::bad_alloc.
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

namespace ramie::detail {
class open_file;
}

namespace ramie::inline v0 {

// What a file is opened for. Flags: `open_mode::write | open_mode::create`.
enum class open_mode : std::uint8_t {
  read = 1,
  write = 2,
  append = 4,      // every write goes to the end, whoever else writes; also means write
  create = 8,      // if it is not there
  exclusive = 16,  // it must not be there, nor a symbolic link of that name; also means create
  truncate = 32,   // it is emptied
};
[[nodiscard]] constexpr open_mode operator|(open_mode a, open_mode b) noexcept {
  return static_cast<open_mode>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool operator&(open_mode set, open_mode flag) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}

// What the system knows about a file.
struct file_metadata {
  std::filesystem::file_type kind = std::filesystem::file_type::none;
  std::filesystem::perms permissions = std::filesystem::perms::none;
  std::uint64_t size = 0;
  std::chrono::system_clock::time_point modified{}, accessed{}, changed{};
  std::uint32_t user = 0, group = 0;
  std::uint64_t links = 0;
  std::uint64_t device = 0, inode = 0;  // equal pairs: the same file

  [[nodiscard]] bool is_file() const noexcept { return kind == std::filesystem::file_type::regular; }
  [[nodiscard]] bool is_directory() const noexcept { return kind == std::filesystem::file_type::directory; }
};

// An open file. A handle to move about; the destructor closes, and is silent about errors: whoever wants to know calls
// close(), or sync() before.
//
// The positional forms (`…_at`), sync, metadata and close may be called by any number of fibers and threads at once.
// The stream forms share one position, which begins at 0: one user at a time. The object must not be moved, assigned to
// or destroyed while somebody uses it: close() is what ends the others' calls. What has been moved from is not open.
class file {
 public:
  file() noexcept = default;  // not open: every operation is bad_file_descriptor

  // Opens. `permissions` are for a file that is created; the process's umask is taken off. A named pipe does not wait
  // for its other end here: its first read waits until somebody writes, or has come and gone; to open one for writing
  // that nobody reads is std::errc::no_such_device_or_address. Never becomes the controlling terminal; not inherited by
  // child processes. A cancellation point.
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode = open_mode::read,
                                 std::filesystem::perms permissions = read_write_all);
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions,
                                 std::error_code& ec);
  [[nodiscard]] static file open(const std::filesystem::path& path, open_mode mode, std::error_code& ec) {
    return open(path, mode, read_write_all, ec);
  }
  // Takes over a descriptor; it is closed if this throws std::bad_alloc or std::system_error.
  [[nodiscard]] static file adopt(int descriptor);

  // Reads at that offset: some bytes, at most as many as there is room for; 0 is the end of the file, or no room.
  // Vectored: fills the buffers in order, 64 of them at most, not counting empty ones. A cancellation point.
  [[nodiscard]] std::size_t read_at(std::span<std::byte> to, std::uint64_t offset, deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<std::byte> to, std::uint64_t offset, std::error_code& ec,
                                    deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset,
                                    deadline until = {});
  [[nodiscard]] std::size_t read_at(std::span<const std::span<std::byte>> to, std::uint64_t offset, std::error_code& ec,
                                    deadline until = {});
  // Writes at that offset: some of the bytes, and at least one unless there is none. A cancellation point.
  [[nodiscard]] std::size_t write_at(std::span<const std::byte> from, std::uint64_t offset, deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::byte> from, std::uint64_t offset, std::error_code& ec,
                                     deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset,
                                     deadline until = {});
  [[nodiscard]] std::size_t write_at(std::span<const std::span<const std::byte>> from, std::uint64_t offset,
                                     std::error_code& ec, deadline until = {});

  // The same at the position, which moves on by what was transferred. Writes of a file opened with `append` go to the
  // end and leave it. Pipes, terminals and the like have no position. A cancellation point.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, std::error_code& ec, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  [[nodiscard]] std::uint64_t position() const noexcept;
  void seek(std::uint64_t position) noexcept;

  // All from the position to the end; with an error, what came before it. A cancellation point.
  [[nodiscard]] std::string read_all(deadline until = {});
  [[nodiscard]] std::string read_all(std::error_code& ec, deadline until = {});
  [[nodiscard]] std::vector<std::byte> read_all_bytes(deadline until = {});
  [[nodiscard]] std::vector<std::byte> read_all_bytes(std::error_code& ec, deadline until = {});
  // All of it, at the position. Returns how much was written, which is less only with an error. A cancellation point;
  // some of it may have been written then.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(std::string_view from, deadline until = {}) { write_all(std::as_bytes(std::span(from)), until); }
  std::size_t write_all(std::string_view from, std::error_code& ec, deadline until = {}) {
    return write_all(std::as_bytes(std::span(from)), ec, until);
  }
  // All of it, at the end of the file, whoever else appends; the position stays. A cancellation point, like write_all.
  void append(std::span<const std::byte> from);
  std::size_t append(std::span<const std::byte> from, std::error_code& ec);
  void append(std::string_view from) { append(std::as_bytes(std::span(from))); }
  std::size_t append(std::string_view from, std::error_code& ec) { return append(std::as_bytes(std::span(from)), ec); }

  // Returns when what was written is on the disk; data_only: without the times and the like. A cancellation point.
  void sync(bool data_only = false, deadline until = {});
  void sync(bool data_only, std::error_code& ec, deadline until = {});

  // Cancellation points.
  void truncate(std::uint64_t size);
  void truncate(std::uint64_t size, std::error_code& ec);
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t size(std::error_code& ec) const;
  [[nodiscard]] file_metadata metadata() const;
  [[nodiscard]] file_metadata metadata(std::error_code& ec) const;

  // Closes; operations under way end with bad_file_descriptor. Reports what the system finds only now, as network
  // file systems and quotas do. A cancellation point, but closed it is in any case. Twice is fine.
  void close();
  void close(std::error_code& ec);
  [[nodiscard]] bool is_open() const noexcept;
  // -1 if not open. For system calls that ramie has no function for; don't close it.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  static constexpr auto read_write_all = static_cast<std::filesystem::perms>(0666);
  explicit file(std::shared_ptr<::ramie::detail::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::detail::open_file> it_;
};

// All of a file. Cancellation points.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::error_code& ec);
[[nodiscard]] std::vector<std::byte> read_file_bytes(const std::filesystem::path& path);
[[nodiscard]] std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::error_code& ec);

// Makes `content` the content of the file, all or nothing: whoever reads it, also after a power failure, finds the old
// content or the new. A new file is written beside it, synced and renamed over it; it belongs to us and gets the
// permissions of the old one, at no moment more, without setuid, setgid and sticky bits. If that fails (a full disk,
// say) the old file stays and the new one goes. Only an error of the very last step, the sync of the directory, finds
// the new file in place: it may not survive a power failure. Symbolic links are followed: what they lead to is
// replaced. What is there and is no regular file (a device, a named pipe) is written into instead. A cancellation
// point: a fiber that is cancelled while it waits has either replaced the file or left it.
void write_file(const std::filesystem::path& path, std::span<const std::byte> content);
void write_file(const std::filesystem::path& path, std::span<const std::byte> content, std::error_code& ec);
inline void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::as_bytes(std::span(content)));
}
inline void write_file(const std::filesystem::path& path, std::string_view content, std::error_code& ec) {
  write_file(path, std::as_bytes(std::span(content)), ec);
}

}  // namespace ramie::inline v0
