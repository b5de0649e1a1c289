// SPDX-License-Identifier: BSL-1.0
// What a file and the ends of a pipe have in common: a descriptor, and perhaps a position.
//
// The position is our own, not the descriptor's: reads and writes of regular files name their offset, because that is
// what tells a mechanism that they might block (IO9). What has no position (pipes, terminals, sockets) is read and
// written as it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include <ramie/runtime/io.hpp>
#include <ramie/time.hpp>

namespace ramie::detail {

class open_file {
 public:
  enum class kind : std::uint8_t {
    positioned,  // a regular file, a block device
    device,      // read and written as it comes, or at an offset if it likes
    stream,      // has no offsets at all
    named_pipe,  // neither; its first read waits until somebody has opened it to write
  };
  using time_point = open_descriptor::time_point;

  open_file(descriptor_ref descriptor, kind what, bool appends) noexcept
      : descriptor_(std::move(descriptor)), kind_(what), appends_(appends), awaits_writer_(what == kind::named_pipe) {}

  // Takes over the descriptor, whatever happens.
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
  // All of it: how much was written.
  static std::size_t write_all(open_file* f, std::span<const std::byte> from, std::error_code& ec, deadline until);
  // All to the end, behind what `to` holds.
  template <class Container>
  static void read_all(open_file* f, Container& to, std::error_code& ec, deadline until);

  [[nodiscard]] open_descriptor& descriptor() noexcept { return *descriptor_; }
  [[nodiscard]] bool has_position() const noexcept { return kind_ == kind::positioned; }
  [[nodiscard]] bool has_offsets() const noexcept { return kind_ == kind::positioned || kind_ == kind::device; }
  std::uint64_t position = 0;  // one user at a time

 private:
  [[nodiscard]] static std::int32_t perform(open_file* f, platform::io_operation& op, const wait_reason& why,
                                            deadline until);
  // 0, or -errno: there are no such offsets, or no file.
  [[nodiscard]] static std::int32_t refusal(const open_file* f, std::uint64_t offset) noexcept;
  // For what is refused, or a null file: the error. A cancellation point, too.
  [[nodiscard]] static std::int32_t refuse(std::int32_t error);
  // 0, or -errno. Without a writer a read would find the end.
  [[nodiscard]] static std::int32_t await_writer(open_file* f, deadline until);
  // What is probably left, to begin with: 0 if nobody knows.
  [[nodiscard]] std::size_t rest() noexcept;

  descriptor_ref descriptor_;
  const kind kind_;
  const bool appends_;
  bool awaits_writer_;  // one user at a time, as the position
};

}  // namespace ramie::detail
