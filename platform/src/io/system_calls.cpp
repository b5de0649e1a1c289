// SPDX-License-Identifier: BSL-1.0
// Operations as system calls of the calling thread.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/io_backend.hpp>

namespace ramie::platform {

namespace {

constexpr std::uint32_t started = 1;  // io_operation::state of a connect that is in progress

std::int32_t outcome(ssize_t returned) noexcept {
  return returned >= 0 ? static_cast<std::int32_t>(returned) : -errno;
}

std::int32_t try_connect(io_operation& op) noexcept {
  if (op.state == started) {
    pollfd one{op.fd, POLLOUT, 0};
    const int n = ::poll(&one, 1, 0);
    if (n <= 0) return n == 0 ? -EAGAIN : -errno;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(op.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
    return -error;
  }
  if (::connect(op.fd, static_cast<const sockaddr*>(op.memory), op.count) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return -errno;  // EAGAIN: of a unix socket whose queue is full
  op.state = started;
  return -EAGAIN;
}

std::int32_t try_ready(const io_operation& op) noexcept {
  pollfd one{op.fd, static_cast<short>(op.flags), 0};
  const int n = ::poll(&one, 1, 0);
  return n == 0 ? -EAGAIN : n < 0 ? -errno : one.revents;
}

std::int32_t try_accept(io_operation& op) noexcept {
  socklen_t room = op.count;
  const int fd = ::accept4(op.fd, static_cast<sockaddr*>(op.memory), op.memory != nullptr ? &room : nullptr,
                           static_cast<int>(op.flags));
  if (fd < 0) return -errno;
  op.count = room;
  return fd;
}

std::int32_t attempt(io_operation& op) noexcept {
  const auto flags = static_cast<int>(op.flags);
  auto* const vectors = static_cast<const iovec*>(op.memory);
  switch (op.code) {
    case io_code::nothing: return 0;
    case io_code::read: return outcome(::read(op.fd, op.memory, op.count));
    case io_code::write: return outcome(::write(op.fd, op.memory, op.count));
    case io_code::read_vector: return outcome(::readv(op.fd, vectors, static_cast<int>(op.count)));
    case io_code::write_vector: return outcome(::writev(op.fd, vectors, static_cast<int>(op.count)));
    case io_code::receive: return outcome(::recv(op.fd, op.memory, op.count, flags | MSG_DONTWAIT));
    case io_code::send: return outcome(::send(op.fd, op.memory, op.count, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    case io_code::receive_message:
      return outcome(::recvmsg(op.fd, static_cast<msghdr*>(op.memory), flags | MSG_DONTWAIT));
    case io_code::send_message:
      return outcome(::sendmsg(op.fd, static_cast<const msghdr*>(op.memory), flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    case io_code::accept: return try_accept(op);
    case io_code::connect: return try_connect(op);
    case io_code::ready: return try_ready(op);
    case io_code::sync: return -EOPNOTSUPP;
  }
  return -EINVAL;
}

// The most that is copied in one call: more would delay the other fibers of the worker.
constexpr std::size_t most_copied = 256 * 1024;

// Reads of regular files at an offset, from the page cache only. -EOPNOTSUPP: a thread has to do it.
std::int32_t attempt_cached(const io_operation& op) noexcept {
#if defined(RWF_NOWAIT)
  if (op.code == io_code::read || op.code == io_code::read_vector) {
    if (op.count == 0) return 0;
    iovec first{op.memory, op.count};
    if (op.code == io_code::read_vector) first = *static_cast<const iovec*>(op.memory);
    const bool whole = op.code == io_code::read_vector && first.iov_len < most_copied;  // the others mostly are, too
    first.iov_len = std::min(first.iov_len, most_copied);
    const auto* const vectors = whole ? static_cast<const iovec*>(op.memory) : &first;
    const std::int32_t result =
        outcome(::preadv2(op.fd, vectors, whole ? static_cast<int>(op.count) : 1, op.offset, RWF_NOWAIT));
    if (result >= 0) return result;
  }
#endif
  return -EOPNOTSUPP;
}

std::int32_t perform_write(const io_operation& op) noexcept {
  if (op.flags == 0) return outcome(::pwrite(op.fd, op.memory, op.count, op.offset));
  const iovec one{op.memory, op.count};
  return outcome(::pwritev2(op.fd, &one, 1, op.offset, static_cast<int>(op.flags)));
}

std::int32_t perform_once(const io_operation& op) noexcept {
  if (op.code == io_code::sync && faults::strikes(fault::file_sync)) return -EIO;
  auto* const vectors = static_cast<const iovec*>(op.memory);
  const auto count = static_cast<int>(op.count);
  switch (op.code) {
    case io_code::read: return outcome(::pread(op.fd, op.memory, op.count, op.offset));
    case io_code::write: return perform_write(op);
    case io_code::read_vector: return outcome(::preadv(op.fd, vectors, count, op.offset));
    case io_code::write_vector: return outcome(::pwritev(op.fd, vectors, count, op.offset));
    case io_code::sync: return outcome(op.flags != 0 ? ::fdatasync(op.fd) : ::fsync(op.fd));
    default: return -EOPNOTSUPP;
  }
}

}  // namespace

bool is_of_file(const io_operation& op) noexcept {
  return op.code == io_code::sync || (op.offset >= 0 && op.code >= io_code::read && op.code <= io_code::write_vector);
}

std::int32_t try_at_once(io_operation& op) noexcept {
  for (;;) {
    if (faults::occurs(io_fault::again)) {
      if (is_of_file(op)) return -EOPNOTSUPP;
      if (op.code != io_code::nothing) return -EAGAIN;
    }
    const std::int32_t result = is_of_file(op) ? attempt_cached(op) : attempt(op);
    if (result != -EINTR) return result == -EWOULDBLOCK ? -EAGAIN : result;
  }
}

std::int32_t perform(const io_operation& op) noexcept {
  for (;;) {
    const std::int32_t result = perform_once(op);
    if (result != -EINTR) return result;
  }
}

std::uint32_t awaited(const io_operation& op) noexcept {
  switch (op.code) {
    case io_code::write:
    case io_code::write_vector:
    case io_code::send:
    case io_code::send_message:
    case io_code::connect: return POLLOUT;
    case io_code::ready: return op.flags | POLLERR | POLLHUP;  // which poll always reports
    default: return POLLIN;
  }
}

}  // namespace ramie::platform
