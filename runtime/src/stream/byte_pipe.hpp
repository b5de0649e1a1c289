// SPDX-License-Identifier: BSL-1.0
// One direction of a duplex: a ring of bytes, those who wait to read it and those who wait to write it.
//
// Invariants, whenever nobody holds the lock
//   P1  Readers are listed only while the ring is empty and both ends are open, writers only while it is full and both
//       ends are open. So nobody who comes later overtakes one who waits.
//   P2  A waiter is claimed under the lock and its bytes are moved there: it takes part or it does not. Who was
//       cancelled, or too late, has moved nothing.
//   P3  Those claimed are completed after the lock has been released, by whoever claimed them.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>

#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

// A call under way. `result` is a count or -errno, once it is over.
struct pipe_read : waiter {
  explicit pipe_read(std::span<std::byte> buffer) noexcept : into(buffer) {}
  const std::span<std::byte> into;
  std::ptrdiff_t result = 0;
  waiter* to_wake = nullptr;  // by this call, when it has left the lock
};
struct pipe_write : waiter {
  explicit pipe_write(std::span<const std::byte> buffer) noexcept : from(buffer) {}
  const std::span<const std::byte> from;
  std::ptrdiff_t result = 0;
  waiter* to_wake = nullptr;
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
  // No more is read: the reader's end is closed.
  void end_reading() noexcept {
    end([&] {
      reader_closed_ = true;
      size_ = 0;
    });
  }

  [[nodiscard]] bool reader_closed() noexcept {
    std::lock_guard hold(lock_);
    return reader_closed_;
  }
  [[nodiscard]] std::size_t size() noexcept {
    std::lock_guard hold(lock_);
    return size_;
  }

 private:
  // Claimed waiters, chained by `next` in the order they were claimed.
  class claimed {
   public:
    void add(waiter& node) noexcept {
      node.next = nullptr;
      *last_ = &node;
      last_ = &node.next;
    }
    [[nodiscard]] waiter* all() const noexcept { return first_; }

   private:
    waiter* first_ = nullptr;
    waiter** last_ = &first_;
  };

  // The most that is moved at once: the lock is a spin lock.
  static constexpr std::size_t most_at_once = 16 * 1024;

  [[nodiscard]] bool try_read(pipe_read& call) noexcept {
    std::lock_guard hold(lock_);
    if (read_waits()) return false;
    call.result = read(call.into);
    call.to_wake = serve();
    return true;
  }
  [[nodiscard]] bool try_write(pipe_write& call) noexcept {
    std::lock_guard hold(lock_);
    if (write_waits()) return false;
    call.result = write(call.from);
    call.to_wake = serve();
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
    waiter* to_wake = nullptr;
    {
      std::lock_guard hold(lock_);
      change();
      to_wake = serve();
    }
    complete_all(to_wake);
  }

  // With the lock, all that follows.
  [[nodiscard]] bool read_waits() const noexcept { return size_ == 0 && !reader_closed_ && write_error_ == 0; }
  [[nodiscard]] bool write_waits() const noexcept { return size_ == capacity_ && !reader_closed_ && write_error_ == 0; }

  // Of calls that need not wait.
  std::ptrdiff_t read(std::span<std::byte> into) noexcept {
    if (reader_closed_) return -EBADF;
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
    if (reader_closed_) return -EPIPE;
    const std::size_t n = some_of(std::min(from.size(), capacity_ - size_));
    const std::size_t end = (begin_ + size_) % capacity_;
    const std::size_t straight = std::min(n, capacity_ - end);
    std::memcpy(ring_.get() + end, from.data(), straight);
    std::memcpy(ring_.get(), from.data() + straight, n - straight);
    size_ += n;
    return static_cast<std::ptrdiff_t>(n);
  }

  // Brings P1 about again: carries out the calls of those who need not wait any more. They are the caller's to
  // complete.
  [[nodiscard]] waiter* serve() noexcept {
    claimed ready;
    for (bool moved = true; moved;) {
      moved = false;
      while (!read_waits()) {
        auto* const call = static_cast<pipe_read*>(readers_.claim_first());
        if (call == nullptr) break;
        call->result = read(call->into);
        ready.add(*call);
        moved = true;
      }
      while (!write_waits()) {
        auto* const call = static_cast<pipe_write*>(writers_.claim_first());
        if (call == nullptr) break;
        call->result = write(call->from);
        ready.add(*call);
        moved = true;
      }
    }
    return ready.all();
  }

  // n, or less if that was asked for; never none of some.
  [[nodiscard]] std::size_t some_of(std::size_t n) noexcept {
    n = std::min(n, most_at_once);
    if (dice_ == 0 || n < 2) return n;
    dice_ ^= dice_ << 13;
    dice_ ^= dice_ >> 7;
    dice_ ^= dice_ << 17;
    // Half of the time a few bytes: so small pieces are frequent also where there is much.
    return 1 + (dice_ >> 8) % ((dice_ & 1) != 0 ? n : std::min<std::size_t>(n, 4));
  }

  platform::spin_lock lock_;
  const std::unique_ptr<std::byte[]> ring_;
  const std::size_t capacity_;
  std::size_t begin_ = 0, size_ = 0;
  bool reader_closed_ = false;
  int write_error_ = 0;  // 0: the writer's end is open
  std::uint64_t dice_;   // 0: nothing is cut short
  wait_list readers_, writers_;
};

}  // namespace ramie::detail
