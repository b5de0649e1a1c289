// SPDX-License-Identifier: BSL-1.0
// One direction of a duplex: a ring of bytes, those who wait to read it and those who wait to write it.
//
// Invariants, whenever nobody holds the lock
//   ST13  Readers are listed only while the ring is empty and both ends are open, writers only while it is full and
//         both ends are open. So no later call overtakes one that waits.
//   ST14  A waiter is claimed under the lock and its bytes are moved there, all or none, and it is completed by its
//         claimer after the lock was released. A call that was cancelled, or whose deadline came, has moved nothing.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>

#include <ramie/platform/random.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

// A call under way. `result` is a count or -errno, once it is over.
struct pipe_read : waiter {
  explicit pipe_read(std::span<std::byte> buffer) noexcept : into(buffer) {}
  const std::span<std::byte> into;
  std::ptrdiff_t result = 0;
  wake_batch wakes;  // whom this call has served, completed when it has left the lock
};
struct pipe_write : waiter {
  explicit pipe_write(std::span<const std::byte> buffer) noexcept : from(buffer) {}
  const std::span<const std::byte> from;
  std::ptrdiff_t result = 0;
  wake_batch wakes;
};

class byte_pipe {
 public:
  byte_pipe(std::size_t capacity, std::uint64_t short_seed)
      : ring_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity), dice_(short_seed) {}

  // The waits. Each is over without parking if it can move a byte, or never will.
  class reading final : public waitable {
   public:
    explicit reading(byte_pipe& p) noexcept : pipe_(p) {}
    bool try_complete(waiter& node) override { return pipe_.try_read(static_cast<pipe_read&>(node)); }
    bool publish(waiter& node) override { return pipe_.list(node, pipe_.readers_, &byte_pipe::read_waits); }
    void unpublish(waiter& node) noexcept override { pipe_.unlist(node, pipe_.readers_); }

   private:
    byte_pipe& pipe_;
  };
  class writing final : public waitable {
   public:
    explicit writing(byte_pipe& p) noexcept : pipe_(p) {}
    bool try_complete(waiter& node) override { return pipe_.try_write(static_cast<pipe_write&>(node)); }
    bool publish(waiter& node) override { return pipe_.list(node, pipe_.writers_, &byte_pipe::write_waits); }
    void unpublish(waiter& node) noexcept override { pipe_.unlist(node, pipe_.writers_); }

   private:
    byte_pipe& pipe_;
  };

  // No more is written, because of the writer's end: later calls get that error, -EPIPE or -EBADF.
  void end_writing(int error) noexcept {
    end([&] { write_error_ = write_error_ == -EBADF ? -EBADF : error; });
  }
  // No more is read, because of the reader's end: later calls get that, 0 (the end of the stream) or -EBADF.
  void end_reading(int result) noexcept {
    end([&] {
      read_ended_ = true;
      read_result_ = read_result_ == -EBADF ? -EBADF : result;
      size_ = 0;
    });
  }

  // Whether reading was ended with -EBADF.
  [[nodiscard]] bool reader_closed() noexcept {
    std::lock_guard hold(lock_);
    return read_result_ == -EBADF;
  }
  [[nodiscard]] std::size_t size() noexcept {
    std::lock_guard hold(lock_);
    return size_;
  }

 private:
  // The most that is moved at once: the lock is a spin lock.
  static constexpr std::size_t most_at_once = 16 * 1024;

  [[nodiscard]] bool try_read(pipe_read& call) noexcept {
    std::lock_guard hold(lock_);
    if (read_waits()) return false;
    call.result = read(call.into);
    serve(call.wakes);
    return true;
  }
  [[nodiscard]] bool try_write(pipe_write& call) noexcept {
    std::lock_guard hold(lock_);
    if (write_waits()) return false;
    call.result = write(call.from);
    serve(call.wakes);
    return true;
  }
  // False: it need not wait. The call is then made anew, so that nobody is woken while it is half parked.
  [[nodiscard]] bool list(waiter& node, wait_list& to, bool (byte_pipe::*waits)() const noexcept) noexcept {
    std::lock_guard hold(lock_);
    if (!(this->*waits)()) return false;
    to.add(node);
    return true;
  }
  void unlist(waiter& node, wait_list& from) noexcept {
    std::lock_guard hold(lock_);
    from.remove(node);
  }
  template <class Change>
  void end(Change change) noexcept {
    wake_batch wakes;
    std::lock_guard hold(lock_);
    change();
    serve(wakes);
  }

  // With the lock, all that follows.
  [[nodiscard]] bool read_waits() const noexcept { return size_ == 0 && !read_ended_ && write_error_ == 0; }
  [[nodiscard]] bool write_waits() const noexcept { return size_ == capacity_ && !read_ended_ && write_error_ == 0; }

  // Of calls that need not wait.
  std::ptrdiff_t read(std::span<std::byte> into) noexcept {
    if (read_ended_) return read_result_;
    const std::size_t n = some_of(std::min(into.size(), size_));
    const std::size_t straight = std::min(n, capacity_ - begin_);
    std::memcpy(into.data(), ring_.get() + begin_, straight);
    std::memcpy(into.data() + straight, ring_.get(), n - straight);
    begin_ = (begin_ + n) % capacity_;
    size_ -= n;
    return static_cast<std::ptrdiff_t>(n);
  }
  std::ptrdiff_t write(std::span<const std::byte> from) noexcept {
    if (write_error_ != 0) return write_error_;
    if (read_ended_) return -EPIPE;
    const std::size_t n = some_of(std::min(from.size(), capacity_ - size_));
    const std::size_t end = (begin_ + size_) % capacity_;
    const std::size_t straight = std::min(n, capacity_ - end);
    std::memcpy(ring_.get() + end, from.data(), straight);
    std::memcpy(ring_.get(), from.data() + straight, n - straight);
    size_ += n;
    return static_cast<std::ptrdiff_t>(n);
  }

  // Brings ST13 about again: performs the calls of those who need not wait any more. They are the caller's to
  // complete.
  void serve(wake_batch& wakes) noexcept {
    for (bool moved = true; moved;) {
      moved = false;
      while (!read_waits()) {
        auto* const call = static_cast<pipe_read*>(readers_.claim_first());
        if (call == nullptr) break;
        call->result = read(call->into);
        wakes.add(*call, 1);
        moved = true;
      }
      while (!write_waits()) {
        auto* const call = static_cast<pipe_write*>(writers_.claim_first());
        if (call == nullptr) break;
        call->result = write(call->from);
        wakes.add(*call, 1);
        moved = true;
      }
    }
  }

  // n, or less if that was asked for; never none of some.
  [[nodiscard]] std::size_t some_of(std::size_t n) noexcept {
    n = std::min(n, most_at_once);
    if (dice_ == 0 || n < 2) return n;
    dice_ = platform::xorshift_step(dice_);
    // Half of the time a few bytes: so small pieces are frequent also where there is much.
    return 1 + (dice_ >> 8) % ((dice_ & 1) != 0 ? n : std::min<std::size_t>(n, 4));
  }

  platform::spin_lock lock_;
  const std::unique_ptr<std::byte[]> ring_;
  const std::size_t capacity_;
  std::size_t begin_ = 0, size_ = 0;
  bool read_ended_ = false;
  int read_result_ = 0;  // of reads, once read_ended_
  int write_error_ = 0;  // 0: the writer's end is open
  std::uint64_t dice_;   // 0: nothing is cut short
  wait_list readers_, writers_;
};

}  // namespace ramie::io_internal
