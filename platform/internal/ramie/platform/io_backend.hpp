// SPDX-License-Identifier: BSL-1.0
// Input and output as completions. The contract, on which one typed test suite runs for every mechanism (io_uring,
// epoll, poll; kqueue and IOCP will fit it):
//
//   submit(op)     The operation, and the memory that it names, belong to the backend from here until it is handed
//                  out. The backend may pass it to the kernel as late as at the next flush, poll or wait.
//   cancel(op)     Asks for its end. The operation is handed out all the same, once: with -ECANCELED, or with its
//                  result if that came first. Does nothing if it has been handed out, but the object must still exist.
//                  If a thread sleeps in wait(), that call hands the operation out.
//   flush()        Passes what was submitted to the kernel.
//   poll(out)      Hands out completed operations, as many as fit into `out`. Flushes. Never waits.
//   wait(out, t)   The same, but if there are none it sleeps: until there are, until wake(), or until t.
//   wake()         Ends a wait() that sleeps, or else the next one. Several may count as one, none is lost.
//
// Any thread may call any of them at any time, but only one at a time calls wait().
//
// What holds of all of them is in spec/io.md (IO1 to IO9). In short: an operation is handed out exactly once for each
// submit, whatever happens; until then it and its memory stay where they are, for the kernel may be writing there;
// nothing is allocated for it; the result is what the system call would have returned, or -errno.
//
// What a mechanism can't do without blocking (regular files, for epoll and poll) is handed out with -EOPNOTSUPP: the
// caller has threads for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ramie/platform/clock.hpp>

namespace ramie::platform {

enum class io_mechanism : std::uint8_t { automatic, io_uring, epoll, poll };
[[nodiscard]] const char* to_string(io_mechanism which) noexcept;

enum class io_code : std::uint8_t {
  nothing,          // completes at once with 0
  read,             // memory, count; offset, or -1: the descriptor's own position
  write,            // the same; flags at an offset: RWF_APPEND, the offset is not looked at then
  read_vector,      // memory: iovec[count]; offset
  write_vector,     //
  receive,          // memory, count, flags: recv
  send,             //
  receive_message,  // memory: msghdr; flags
  send_message,     //
  accept,           // memory: sockaddr or null, count: room there; flags: accept4's. Result: the descriptor
  connect,          // memory: sockaddr, count: its length
  ready,            // flags: POLLIN, POLLOUT …; result: those that hold
  sync,             // fsync; flags: not 0: fdatasync
};

struct io_operation {
  io_code code = io_code::nothing;
  std::int32_t fd = -1;
  void* memory = nullptr;
  std::uint32_t count = 0;
  std::uint32_t flags = 0;
  std::int64_t offset = -1;
  std::int32_t result = 0;
  bool tried = false;     // try_at_once has returned -EAGAIN: no need to try again before its descriptor is ready
  void* owner = nullptr;  // for the caller, not used by the backend

  // For the backend, between submit and hand-out.
  std::uint32_t state = 0;
  io_operation* next = nullptr;
  io_operation** link = nullptr;  // the pointer that points to this operation
};

class io_backend {
 public:
  using time_point = platform::time_point;
  static constexpr time_point never = time_point::max();

  virtual ~io_backend() = default;  // no operation is under way
  [[nodiscard]] virtual io_mechanism mechanism() const noexcept = 0;
  // Whether descriptors must be O_NONBLOCK; if not, operations are cheaper without it.
  [[nodiscard]] virtual bool wants_non_blocking() const noexcept = 0;
  virtual void submit(io_operation& op) noexcept = 0;
  virtual void cancel(io_operation& op) noexcept = 0;
  virtual void flush() noexcept = 0;
  [[nodiscard]] virtual std::size_t poll(std::span<io_operation*> out) noexcept = 0;
  [[nodiscard]] virtual std::size_t wait(std::span<io_operation*> out, time_point until) noexcept = 0;
  virtual void wake() noexcept = 0;
  // Submitted and not yet handed out. Any thread; a hint while others are at work.
  [[nodiscard]] virtual std::size_t under_way() const noexcept = 0;
};

// Whether it is for a regular file: at an offset, or a sync. Regular files are always ready, and block all the same.
[[nodiscard]] bool is_of_file(const io_operation& op) noexcept;
// Makes the system call on a non-blocking descriptor: -EAGAIN if it would have to wait; op.state must be 0 at the first
// attempt. Regular files: only what needs no waiting, else -EOPNOTSUPP.
[[nodiscard]] std::int32_t try_at_once(io_operation& op) noexcept;
// Carries out an operation of a regular file. Blocks.
[[nodiscard]] std::int32_t perform(const io_operation& op) noexcept;
// The events that its descriptor must be ready for: POLLIN, POLLOUT.
[[nodiscard]] std::uint32_t awaited(const io_operation& op) noexcept;

// The mechanism that was asked for; automatic: RAMIE_IO_BACKEND in the environment (io_uring, epoll, poll) if it is
// set, else the first of io_uring, epoll, poll that this machine grants. `why_not` says what was passed over and why
// (seccomp, io_uring_disabled, a kernel that is too old), or is empty. Throws std::system_error if the one that was
// asked for is refused, or if not even poll can be had (no descriptors, no memory).
[[nodiscard]] std::unique_ptr<io_backend> make_io_backend(io_mechanism which, std::string& why_not);

}  // namespace ramie::platform
