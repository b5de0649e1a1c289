// SPDX-License-Identifier: BSL-1.0
// Pipes of the system: between fibers, threads and processes.
//
// To write into a pipe that nobody reads is std::errc::broken_pipe, never a signal: with its first pipe or process
// ramie sets SIGPIPE to be ignored in this process, unless it has a handler; `signals` (signals.hpp) that wait for it
// leave it ignored when they go. Child processes get it as it was meant to be.
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

namespace ramie::detail {
class open_file;
}

namespace ramie::inline v0 {

// The end one reads from. A handle to move about; the destructor closes. Fibers and plain threads, any number at once:
// each gets other bytes. It must not be moved, assigned to or destroyed meanwhile: close() is what ends the others'
// calls. What has been moved from is not open.
class pipe_reader {
 public:
  pipe_reader() noexcept = default;  // not open: every operation is bad_file_descriptor
  // Takes over a descriptor; it is closed if this throws std::bad_alloc.
  [[nodiscard]] static pipe_reader adopt(int descriptor);

  // Waits until there is something and reads some of it; 0: every writer is gone, or there was no room. A cancellation
  // point. Throws std::system_error, or reports it, also if the machine can't even begin.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> to, std::error_code& ec, deadline until = {});
  // All until every writer is gone; with an error, what came before it. A cancellation point, like read_some.
  [[nodiscard]] std::string read_all(deadline until = {});
  [[nodiscard]] std::string read_all(std::error_code& ec, deadline until = {});

  // Reads under way end with bad_file_descriptor. Any fiber or thread, once or more; not a cancellation point.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept;
  // -1 if not open. For system calls that ramie has no function for; don't close it.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  explicit pipe_reader(std::shared_ptr<::ramie::detail::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::detail::open_file> it_;
};

// The end one writes into. Otherwise the same.
class pipe_writer {
 public:
  pipe_writer() noexcept = default;  // not open: every operation is bad_file_descriptor
  // Takes over a descriptor; it is closed if this throws std::bad_alloc.
  [[nodiscard]] static pipe_writer adopt(int descriptor);

  // Waits until there is room and writes some of the bytes. No reader: std::errc::broken_pipe. A cancellation point.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  // All of it. Returns how much was written, which is less only with an error. A cancellation point; some of it may
  // have been written then.
  void write_all(std::span<const std::byte> from, deadline until = {});
  std::size_t write_all(std::span<const std::byte> from, std::error_code& ec, deadline until = {});
  void write_all(std::string_view from, deadline until = {}) { write_all(std::as_bytes(std::span(from)), until); }
  std::size_t write_all(std::string_view from, std::error_code& ec, deadline until = {}) {
    return write_all(std::as_bytes(std::span(from)), ec, until);
  }

  // The readers find the end once they have read the rest. Any fiber or thread; not a cancellation point.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] int native_handle() const noexcept;

 private:
  explicit pipe_writer(std::shared_ptr<::ramie::detail::open_file> it) noexcept : it_(std::move(it)) {}
  std::shared_ptr<::ramie::detail::open_file> it_;
};

struct pipe_ends {
  pipe_reader reader;
  pipe_writer writer;
};

// A new pipe, which child processes do not inherit. Not a cancellation point. Throws std::system_error, std::bad_alloc.
[[nodiscard]] pipe_ends make_pipe();
[[nodiscard]] pipe_ends make_pipe(std::error_code& ec);

}  // namespace ramie::inline v0
