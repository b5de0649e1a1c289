// SPDX-License-Identifier: BSL-1.0
// The state of a file or of an end of a pipe: a descriptor, and for regular files a position.
//
// The position is kept here and not by the descriptor: reads and writes of regular files pass their offset, by which an
// I/O mechanism knows that they might block (IO9). Pipes, terminals and sockets have no position: they are read and
// written without an offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include <ramie/runtime/io.hpp>
#include <ramie/time.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

class open_file {
 public:
  enum class kind : std::uint8_t {
    positioned,  // a regular file, a block device
    device,      // read and written without an offset, or at one if the device supports that
    stream,      // supports no offsets
    named_pipe,  // like stream; its first read waits until a writer has opened it
  };
  using time_point = open_descriptor::time_point;

  open_file(descriptor_ref descriptor, kind what, bool appends) noexcept
      : descriptor_(std::move(descriptor)), kind_(what), appends_(appends), awaits_writer_(what == kind::named_pipe) {}

  // Takes over the descriptor; it is closed if this throws std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<open_file> adopt(int fd, kind what, bool appends = false);

  // Counts, or -errno; a null file is -EBADF. Cancellation points.
  [[nodiscard]] static std::int32_t read_at(open_file* f, std::span<std::byte> to, std::uint64_t offset,
                                            deadline until);
  [[nodiscard]] static std::int32_t write_at(open_file* f, std::span<const std::byte> from, std::uint64_t offset,
                                             deadline until);
  [[nodiscard]] static std::int32_t read_at(open_file* f, std::span<const std::span<std::byte>> to,
                                            std::uint64_t offset, deadline until);
  [[nodiscard]] static std::int32_t write_at(open_file* f, std::span<const std::span<const std::byte>> from,
                                             std::uint64_t offset, deadline until);
  [[nodiscard]] static std::int32_t read_some(open_file* f, std::span<std::byte> to, deadline until);
  [[nodiscard]] static std::int32_t write_some(open_file* f, std::span<const std::byte> from, deadline until);
  [[nodiscard]] static std::int32_t sync(open_file* f, bool data_only, deadline until);
  // At the end of the file, wherever that is at that moment.
  [[nodiscard]] static std::int32_t append_some(open_file* f, std::span<const std::byte> from, deadline until);
  // Write everything; return how much was written, which is less only with an error.
  static std::size_t write_all(open_file* f, std::span<const std::byte> from, std::error_code& ec, deadline until);
  static std::size_t append_all(open_file* f, std::span<const std::byte> from, std::error_code& ec, deadline until);
  // Reads to the end, and appends to `to`.
  template <class Container>
  static void read_all(open_file* f, Container& to, std::error_code& ec, deadline until);

  [[nodiscard]] open_descriptor& descriptor() noexcept { return *descriptor_; }
  // Null if there is no file.
  [[nodiscard]] static descriptor_ref descriptor_of(const open_file* f) noexcept {
    return f != nullptr ? f->descriptor_ : descriptor_ref();
  }
  [[nodiscard]] bool has_position() const noexcept { return kind_ == kind::positioned; }
  [[nodiscard]] bool has_offsets() const noexcept { return kind_ == kind::positioned || kind_ == kind::device; }
  std::uint64_t position = 0;  // one user at a time

 private:
  [[nodiscard]] static std::int32_t perform(open_file* f, platform::io_operation& op, const wait_reason& why,
                                            deadline until);
  // 0, or the -errno with which a call at that offset is refused: no file, no offsets, an offset that is too large.
  [[nodiscard]] static std::int32_t refusal(const open_file* f, std::uint64_t offset) noexcept;
  // Returns `error`. A cancellation point, because every call is one.
  [[nodiscard]] static std::int32_t refuse(std::int32_t error);
  // Waits until a writer has opened a named pipe: before that a read would find the end. 0, or -errno.
  [[nodiscard]] static std::int32_t await_writer(open_file* f, deadline until);
  // An estimate of how many bytes there are behind the position, 0 if unknown.
  [[nodiscard]] std::size_t rest() noexcept;

  descriptor_ref descriptor_;
  const kind kind_;
  const bool appends_;
  bool awaits_writer_;  // used like the position: by one caller at a time
};

}  // namespace ramie::io_internal
