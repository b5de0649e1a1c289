// SPDX-License-Identifier: BSL-1.0
// An open descriptor, and the one way fibers and threads wait for what they do with it.
//
// Invariants
//   IO11  An operation and the memory it names belong to the kernel until its completion has arrived. Cancellation, a
//         deadline and close() ask for its end; perform() returns or throws only after that.
//   IO12  What was transferred counts: an operation that has succeeded is never turned into a cancellation, a timeout
//         or an error. The cancellation is delivered at the next cancellation point instead.
//   IO13  close() ends the operations that the backend has with -EBADF, and those that come later are refused with it.
//         It does not wait. The descriptor is closed exactly once, by its last user: no operation ever reaches another
//         file that got the same number. A system call under way on another thread finishes first.
//   IO22  For the same reason the descriptor is released only while no operation or system call uses it.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <ramie/deadline.hpp>
#include <ramie/detail/descriptor_ref.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

class worker;

// One operation under way, as its descriptor sees it.
class io_use {
 public:
  // Asks for its end. With the descriptor's lock: the use is not over before it is released.
  virtual void end() noexcept = 0;

 protected:
  ~io_use() = default;

 private:
  friend class open_descriptor;
  io_use* next_ = nullptr;
  io_use* previous_ = nullptr;
};

class open_descriptor {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr time_point never = time_point::max();

  // Takes the descriptor over. Throws std::bad_alloc; it is closed then.
  [[nodiscard]] static descriptor_ref adopt(int fd);

  // Carries out `op` on this descriptor (op.fd is set here) and waits for its end, as a fiber or as a plain thread.
  // Returns what the system call would have: a count, a descriptor, poll events; or -errno. Never -EAGAIN, -EINTR. Of
  // its own it returns -EBADF (closed, before or meanwhile) and -ETIMEDOUT (`until` has come; if it had come before, it
  // is still tried once). What the mechanism can't do without blocking is done on a thread of the blocking pool.
  // What the machine refuses to begin with is returned, too: -EMFILE, -ENOMEM, -EPERM …
  // A cancellation point on every call: throws `cancelled`, with nothing transferred, and nothing else.
  [[nodiscard]] std::int32_t perform(platform::io_operation& op, const wait_reason& why, time_point until = never);

  // Waits until one of `events` (POLLIN, POLLOUT) holds of a descriptor that belongs to somebody else, or POLLERR,
  // POLLHUP do: returns those that hold, or -errno as perform() does. The descriptor is not closed, and its flags stay
  // as they are. A cancellation point on every call.
  [[nodiscard]] static std::int32_t wait_ready(int fd, std::uint32_t events, const wait_reason& why,
                                               time_point until = never);

  // f(fd) for a system call that does not wait; returns what it returns, or -EBADF if the descriptor is closed. It is
  // not closed while f runs.
  template <class F>
  [[nodiscard]] int with_fd(F f) {
    if (!begin_use()) return -EBADF;
    const int result = f(fd_);
    end_use();
    return result;
  }

  // Any fiber or thread; idempotent. Not a cancellation point.
  void close() noexcept;
  // Gives the descriptor to the caller, who closes it, without the O_NONBLOCK that was set here; from here on this
  // object is as closed (IO13). -EBADF: it was closed before. -EBUSY: somebody uses it, and nothing has changed. Not a
  // cancellation point.
  [[nodiscard]] int release() noexcept;
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] bool in_use() const noexcept;
  // For messages and tests; it may be closed at any moment.
  [[nodiscard]] int number() const noexcept { return fd_; }

 private:
  friend class descriptor_ref;

  explicit open_descriptor(int fd, bool owned = true) noexcept : fd_(fd), owned_(owned) {}
  ~open_descriptor();
  open_descriptor(const open_descriptor&) = delete;
  open_descriptor& operator=(const open_descriptor&) = delete;

  [[nodiscard]] bool begin_use() noexcept;
  [[nodiscard]] bool begin_use(io_use& use) noexcept;
  void end_use() noexcept;
  void end_use(io_use& use) noexcept;
  class use_of;
  // With the lock.
  void list(io_use& use) noexcept;
  [[nodiscard]] bool nobody_left() const noexcept;  // it is to be closed now
  [[nodiscard]] std::int32_t perform_as_fiber(platform::io_operation& op, const wait_reason& why, time_point until);
  // -ERESTART: the operation was cancelled, but the fiber no longer is, because the scope has ended: try again.
  [[nodiscard]] std::int32_t submit_and_wait(worker& w, platform::io_operation& op, const wait_reason& why,
                                             time_point until);
  [[nodiscard]] std::int32_t perform_as_thread(platform::io_operation& op, time_point until);
  [[nodiscard]] std::int32_t perform_on_thread_of_pool(platform::io_operation& op);
  void make_non_blocking() noexcept;

  const int fd_;
  const bool owned_;  // false: of wait_ready(); nobody calls close() then
  platform::atomic<std::uint32_t> references_{1};
  mutable platform::spin_lock lock_;
  bool closing_ = false;
  bool non_blocking_ = false;      // O_NONBLOCK is set
  bool set_non_blocking_ = false;  // and it was not before
  std::uint32_t plain_uses_ = 0;   // with_fd
  io_use* uses_ = nullptr;
};

// open_descriptor::perform, also for an object that has no descriptor: -EBADF then, and a cancellation point all the
// same.
[[nodiscard]] std::int32_t perform(const descriptor_ref& fd, platform::io_operation& op, const wait_reason& why,
                                   deadline until);

// What an operation `ready` on a descriptor of somebody else says: the events that hold, or -errno.
[[nodiscard]] std::int32_t events_or_error(std::int32_t result, std::uint32_t wanted) noexcept;

// Both manners of saying that something failed. `result` is a count or -errno.
[[noreturn]] void throw_io_error(std::int32_t result, const char* what);
[[nodiscard]] inline std::size_t value_or_throw(std::int32_t result, const char* what) {
  if (result < 0) [[unlikely]]
    throw_io_error(result, what);
  return static_cast<std::size_t>(result);
}
[[nodiscard]] inline std::size_t value_or_error(std::int32_t result, std::error_code& ec) noexcept {
  if (result >= 0) [[likely]] {
    ec.clear();
    return static_cast<std::size_t>(result);
  }
  ec.assign(-result, std::system_category());
  return 0;
}

}  // namespace ramie::runtime_internal
