// SPDX-License-Identifier: BSL-1.0
#include "open_file.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <vector>

#include <ramie/cancel.hpp>

#include "../pieces.hpp"
#include "../sigpipe.hpp"
#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

using platform::io_code;
using platform::io_operation;

const wait_reason waits_for_read{"file, read"};
const wait_reason waits_for_read_at{"file, read at an offset"};
const wait_reason waits_for_write{"file, write"};
const wait_reason waits_for_write_at{"file, write at an offset"};
const wait_reason waits_for_append{"file, append"};
const wait_reason waits_for_vector_read{"file, read into several buffers"};
const wait_reason waits_for_vector_write{"file, write from several buffers"};
const wait_reason waits_for_writer{"file, until a writer has opened it"};
const wait_reason waits_for_sync{"file, sync"};

io_operation operation(io_code code, const void* memory, std::size_t count, std::int64_t offset) noexcept {
  io_operation op;
  op.code = code;
  op.memory = const_cast<void*>(memory);
  op.count = static_cast<std::uint32_t>(std::min(count, most_at_once));
  op.offset = offset;
  return op;
}

// Without an offset. With nothing to transfer it completes at once: io_uring would wait at an empty pipe.
io_operation operation(io_code code, const void* memory, std::size_t count) noexcept {
  return operation(count == 0 ? io_code::nothing : code, memory, count, -1);
}

// The offset as the system calls take it, or -1 if it is too large for them.
std::int64_t checked(std::uint64_t offset) noexcept {
  return offset <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
             ? static_cast<std::int64_t>(offset)
             : -1;
}

// Calls write(rest) until all is written or it fails; at least once. Returns how much was written.
template <class Write>
std::size_t all_of(std::span<const std::byte> from, std::error_code& ec, Write write) {
  std::size_t done = 0;
  do {
    const std::int32_t result = write(from.subspan(done));
    // Nothing was written, and no error: do not try for ever.
    ec = error_of(result != 0 || from.empty() ? result : -EIO);
    if (!ec) done += static_cast<std::size_t>(result);
  } while (done < from.size() && !ec);
  return done;
}

}  // namespace

std::shared_ptr<open_file> open_file::adopt(int fd, kind what, bool appends) {
  ignore_sigpipe();
  return std::make_shared<open_file>(open_descriptor::adopt(fd), what, appends);
}

std::int32_t open_file::perform(open_file* f, io_operation& op, const wait_reason& why, deadline until) {
  return f == nullptr ? refuse(-EBADF) : f->descriptor_->perform(op, why, until.when());
}

std::int32_t open_file::refuse(std::int32_t error) {
  check_cancelled();
  return error;
}

std::int32_t open_file::refusal(const open_file* f, std::uint64_t offset) noexcept {
  if (f == nullptr) return -EBADF;
  if (!f->has_offsets()) return -ESPIPE;
  return checked(offset) < 0 ? -EINVAL : 0;
}

std::int32_t open_file::read_at(open_file* f, std::span<std::byte> to, std::uint64_t offset, deadline until) {
  if (const auto error = refusal(f, offset); error < 0) return refuse(error);
  auto op = operation(io_code::read, to.data(), to.size(), checked(offset));
  return perform(f, op, waits_for_read_at, until);
}

std::int32_t open_file::write_at(open_file* f, std::span<const std::byte> from, std::uint64_t offset, deadline until) {
  if (const auto error = refusal(f, offset); error < 0) return refuse(error);
  auto op = operation(io_code::write, from.data(), from.size(), checked(offset));
  return perform(f, op, waits_for_write_at, until);
}

std::int32_t open_file::read_at(open_file* f, std::span<const std::span<std::byte>> to, std::uint64_t offset,
                                deadline until) {
  if (const auto error = refusal(f, offset); error < 0) return refuse(error);
  std::array<iovec, pieces_at_once> vectors;
  auto op = operation(io_code::read_vector, vectors.data(), list_pieces(to, 0, vectors), checked(offset));
  return perform(f, op, waits_for_vector_read, until);
}

std::int32_t open_file::write_at(open_file* f, std::span<const std::span<const std::byte>> from, std::uint64_t offset,
                                 deadline until) {
  if (const auto error = refusal(f, offset); error < 0) return refuse(error);
  std::array<iovec, pieces_at_once> vectors;
  auto op = operation(io_code::write_vector, vectors.data(), list_pieces(from, 0, vectors), checked(offset));
  return perform(f, op, waits_for_vector_write, until);
}

std::int32_t open_file::read_some(open_file* f, std::span<std::byte> to, deadline until) {
  const bool positioned = f != nullptr && f->has_position();
  if (positioned && checked(f->position) < 0) return refuse(-EINVAL);
  if (f != nullptr && f->awaits_writer_ && !to.empty()) {
    if (const auto result = await_writer(f, until); result < 0) return result;
  }
  auto op = positioned ? operation(io_code::read, to.data(), to.size(), checked(f->position))
                       : operation(io_code::read, to.data(), to.size());
  const auto result = perform(f, op, waits_for_read, until);
  if (positioned && result > 0) f->position += static_cast<std::uint64_t>(result);
  return result;
}

// poll reports nothing until a writer has opened the pipe; afterwards it reports bytes, or that the writer has closed.
std::int32_t open_file::await_writer(open_file* f, deadline until) {
  io_operation op;
  op.code = io_code::ready;
  op.flags = POLLIN;
  const auto result = perform(f, op, waits_for_writer, until);
  if (result >= 0) f->awaits_writer_ = false;
  return result;
}

std::int32_t open_file::write_some(open_file* f, std::span<const std::byte> from, deadline until) {
  const bool positioned = f != nullptr && f->has_position();
  if (positioned && checked(f->position) < 0) return refuse(-EINVAL);
  auto op = positioned ? operation(io_code::write, from.data(), from.size(), checked(f->position))
                       : operation(io_code::write, from.data(), from.size());
  const auto result = perform(f, op, waits_for_write, until);
  if (positioned && !f->appends_ && result > 0) f->position += static_cast<std::uint64_t>(result);
  return result;
}

std::int32_t open_file::append_some(open_file* f, std::span<const std::byte> from, deadline until) {
  if (const auto error = refusal(f, 0); error < 0) return refuse(error);
  auto op = operation(io_code::write, from.data(), from.size(), 0);
  op.flags = RWF_APPEND;
  return perform(f, op, waits_for_append, until);
}

std::int32_t open_file::sync(open_file* f, bool data_only, deadline until) {
  io_operation op;
  op.code = io_code::sync;
  op.flags = data_only ? 1 : 0;
  return perform(f, op, waits_for_sync, until);
}

std::size_t open_file::write_all(open_file* f, std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return all_of(from, ec, [&](auto rest) { return write_some(f, rest, until); });
}

std::size_t open_file::append_all(open_file* f, std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return all_of(from, ec, [&](auto rest) { return append_some(f, rest, until); });
}

std::size_t open_file::rest() noexcept {
  struct stat about;
  if (!has_position() || descriptor_->with_fd([&](int fd) { return ::fstat(fd, &about); }) != 0) return 0;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  return size > position ? static_cast<std::size_t>(size - position) : 0;
}

template <class Container>
void open_file::read_all(open_file* f, Container& to, std::error_code& ec, deadline until) {
  constexpr std::size_t least = 4096, most = std::size_t{1} << 24;
  // One byte more than there is, so that the end is found without another allocation.
  std::size_t room = f != nullptr ? std::max(f->rest() + 1, least) : least;
  for (std::size_t held = to.size();;) {
    to.resize(held + room);
    const auto into = std::as_writable_bytes(std::span(to)).subspan(held);
    std::int32_t result = 0;
    try {
      result = read_some(f, into, until);
    } catch (...) {
      to.resize(held);
      throw;
    }
    held += static_cast<std::size_t>(std::max(result, 0));
    if (result <= 0) {
      to.resize(held);
      ec = error_of(result);
      return;
    }
    room = static_cast<std::size_t>(result) < into.size() ? into.size() - static_cast<std::size_t>(result)
                                                          : std::clamp(held, least, most);
  }
}

template void open_file::read_all(open_file*, std::string&, std::error_code&, deadline);
template void open_file::read_all(open_file*, std::vector<std::byte>&, std::error_code&, deadline);

}  // namespace ramie::io_internal
