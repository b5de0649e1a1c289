// SPDX-License-Identifier: BSL-1.0
// Pipes of the operating system: between fibers, threads and processes.
//
// A write to a pipe without a reader is std::errc::broken_pipe, never a signal: when the first file, pipe or process is
// made, ramie sets SIGPIPE to be ignored in this process, unless it has a handler. It stays ignored when `signals`
// (signals.hpp) for it are destroyed. Child processes start with its default action.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class open_file;
}

namespace ramie::inline v0 {

// The end to read from. Movable; the destructor closes. Any number of fibers and plain threads may read at once: each
// gets different bytes. The object must not be moved, assigned to or destroyed during a call: close() ends the calls of
// others. A pipe end that has been moved from is not open.
class pipe_reader {
 public:
  pipe_reader() noexcept = default;  // not open: every operation is bad_file_descriptor
  // Takes over an open descriptor; it is closed if this throws std::bad_alloc. It may be made non-blocking, for all who
  // share it. Not a cancellation point.
  [[nodiscard]] static pipe_reader from_native(int fd);
  // Gives the descriptor back: it is yours to close, and this is not open any more. -1 if it was not open. Throws
  // usage_error while somebody uses it. Not a cancellation point.
  [[nodiscard]] int release_native();

  // Waits until there are bytes and reads some of them; 0: every writer has closed, or the buffer is empty. A
  // cancellation point. Throws or reports errors of the system, also if the wait can't be begun.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, std::error_code& ec, deadline until = {});
  // Reads until every writer has closed; with an error, returns what came before it. A cancellation point, like
  // read_some. Throws transfer_error (stream.hpp), which says how much that was; std::bad_alloc.
  [[nodiscard]] std::string read_all(deadline until = {});
  [[nodiscard]] std::string read_all(std::error_code& ec, deadline until = {});

  // Closes; reads under way end with bad_file_descriptor. Any fiber or thread; idempotent; not a cancellation point.
  void close() noexcept;
  // Whether it has a descriptor that has been neither closed nor released. Any fiber or thread. Not a cancellation
  // point.
  [[nodiscard]] bool is_open() const noexcept;
  // The descriptor, or -1 if not open. For system calls that ramie has no function for; don't close it. Any fiber or
  // thread. Not a cancellation point.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  explicit pipe_reader(std::shared_ptr<::ramie::io_internal::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::io_internal::open_file> it_;
};

// The end to write to. Otherwise like pipe_reader.
class pipe_writer {
 public:
  pipe_writer() noexcept = default;  // not open: every operation is bad_file_descriptor
  // Takes over an open descriptor; it is closed if this throws std::bad_alloc. It may be made non-blocking, for all who
  // share it. Not a cancellation point.
  [[nodiscard]] static pipe_writer from_native(int fd);
  // Gives the descriptor back: it is yours to close, and this is not open any more. -1 if it was not open. Throws
  // usage_error while somebody uses it. Not a cancellation point.
  [[nodiscard]] int release_native();

  // Waits until there is room and writes some of the bytes, at least one unless there are none. Without a reader:
  // std::errc::broken_pipe. A cancellation point. Throws or reports errors of the system, also if the wait can't be
  // begun.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  // Writes everything. Returns how much was written, which is less only with an error. A cancellation point; a part may
  // have been written then. Throws transfer_error (stream.hpp), which says how much was written.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(std::string_view from, deadline until = {}) { write_all(std::as_bytes(std::span(from)), until); }
  std::size_t write_all(std::string_view from, std::error_code& ec, deadline until = {}) {
    return write_all(std::as_bytes(std::span(from)), ec, until);
  }

  // Closes; readers find the end after what was written. Any fiber or thread; idempotent; not a cancellation point.
  void close() noexcept;
  // As of a pipe_reader.
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] int native_handle() const noexcept;

 private:
  explicit pipe_writer(std::shared_ptr<::ramie::io_internal::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::io_internal::open_file> it_;
};

// What make_pipe returns: the two ends of one pipe.
struct pipe_ends {
  pipe_reader reader;
  pipe_writer writer;
};

// Makes a pipe that child processes do not inherit. Any fiber or thread. Not a cancellation point. Throws
// std::system_error, std::bad_alloc.
[[nodiscard]] pipe_ends make_pipe();
[[nodiscard]] pipe_ends make_pipe(std::error_code& ec);

}  // namespace ramie::inline v0
