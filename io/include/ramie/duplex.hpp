// SPDX-License-Identifier: BSL-1.0
// Two ends of a connection that exists in memory only: for tests of what talks to a stream, and between fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include <ramie/stream.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class duplex_core;
}

namespace ramie::inline v0 {

// How a duplex is made.
struct duplex_options {
  std::size_t capacity = 64 * 1024;  // bytes under way in each direction, at least 1
  // Not 0: calls transfer fewer bytes than they could, down to one, drawn from this seed. For tests of code that takes
  // it for granted that a read returns what one write wrote.
  std::uint64_t short_seed = 0;
};

// One end. What is written to it is read from the other, in order; a write waits while there is no room, a read while
// there is nothing. A reader and a writer.
//
// Any number of fibers, of any runtime, and plain threads may use an end at once: each call transfers its bytes in one
// piece, and calls that wait are served in the order they came. It must outlive them. Its destructor closes it.
// One that was moved from is not open: every operation is bad_file_descriptor.
class duplex_end {
 public:
  duplex_end(duplex_end&& other) noexcept : core_(std::move(other.core_)), side_(other.side_) {}
  duplex_end& operator=(duplex_end&& other) noexcept;
  ~duplex_end() { close(); }

  // Some bytes, at least one, as soon as there are any. 0: the other end is closed or shut for writing, and all has
  // been read; or `into` is empty. A cancellation point: a cancelled call has taken nothing. Throws std::system_error:
  // timed_out, bad_file_descriptor (this end was closed, before or meanwhile); std::bad_alloc if the wait can't begin.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& ec, deadline until = {});

  // Some bytes, at least one, as soon as there is room. A cancellation point: a cancelled call has written nothing.
  // Throws std::system_error: timed_out, broken_pipe (the other end is closed, or this one is shut for writing),
  // bad_file_descriptor (this end was closed, before or meanwhile); std::bad_alloc if the wait can't begin.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec, deadline until = {});

  // As of a socket. write: no more is written: the other end reads what is there, then the end of the stream; calls
  // that wait to write end with broken_pipe. read: no more is read: what is there is dropped, reads of this end are at
  // the end of the stream, the other end's writes are broken_pipe. Idempotent. Not a cancellation point. Throws
  // std::system_error: bad_file_descriptor (this end is closed).
  void shutdown(shutdown_part part);
  void shutdown(shutdown_part part, std::error_code& ec) noexcept;

  // Both, and calls on this end, also those under way, are bad_file_descriptor. Any fiber or thread; idempotent. Not a
  // cancellation point.
  void close() noexcept;

  // Whether this end has been neither closed nor moved from. Any fiber or thread; not a cancellation point.
  [[nodiscard]] bool is_open() const noexcept;
  // What could be read at once. A snapshot. Any fiber or thread; not a cancellation point.
  [[nodiscard]] std::size_t available() const noexcept;

 private:
  friend std::pair<duplex_end, duplex_end> make_duplex(const duplex_options&);
  duplex_end(std::shared_ptr<::ramie::io_internal::duplex_core> core, unsigned side) noexcept
      : core_(std::move(core)), side_(side) {}

  std::shared_ptr<::ramie::io_internal::duplex_core> core_;
  unsigned side_;
};

// Two ends, connected: auto [a, b] = make_duplex(). Any fiber or thread. Not a cancellation point. Throws usage_error
// for no capacity, std::bad_alloc.
[[nodiscard]] std::pair<duplex_end, duplex_end> make_duplex(const duplex_options& how);
[[nodiscard]] inline std::pair<duplex_end, duplex_end> make_duplex(std::size_t capacity = duplex_options{}.capacity) {
  return make_duplex(duplex_options{capacity, 0});
}

}  // namespace ramie::inline v0
