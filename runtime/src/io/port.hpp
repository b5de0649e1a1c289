// SPDX-License-Identifier: BSL-1.0
// Where a worker hands operations to the machine. One for each worker slot, with a backend of its own: submissions are
// batched by the worker's polls, and workers do not meet in the kernel's locks. Opened by the first operation.
//
// Who takes completions, and when: driver.hpp.
//
// A token of its parker also wakes an owner that sleeps here: backend_sleep_flag.hpp. A request is completed by the
// thread that takes its completion; after that only its fiber may touch it: request.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ramie/options.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/constants.hpp>

#include "backend_sleep_flag.hpp"

namespace ramie::runtime_internal {

// How the workers of one runtime open theirs.
class io_setup {
 public:
  explicit io_setup(io_choice wanted) noexcept : wanted_(wanted) {}
  // Throws std::system_error or std::bad_alloc. A mechanism that can't be used here is reported, once.
  [[nodiscard]] std::unique_ptr<platform::io_backend> make();

 private:
  const io_choice wanted_;
  platform::atomic<bool> fallback_reported_{false};
};

class io_port {
 public:
  // Few: it is on the stack of whichever fiber has just parked. A poll takes several.
  struct batch {
    static constexpr std::size_t capacity = 32;
    platform::io_operation* ready[capacity];
    std::size_t count = 0;
  };
  static constexpr std::size_t most_per_poll = ring_capacity;  // what is completed fits into an empty ring

  // The owner ------------------------------------------------------------------------------------------
  [[nodiscard]] bool is_open() const noexcept { return backend() != nullptr; }
  void open(io_setup& how);  // throws

  // Operations are under way here: an owner that goes to sleep should do so in sleep().
  [[nodiscard]] bool busy() const noexcept { return under_way() != 0; }
  // Sends what was submitted, completes what is done, up to `limit` of it: what the ring has room for. More would be
  // shed to the injection queue, and have to wait there behind those who come after them. True: there was something.
  bool poll(std::size_t limit) noexcept;
  // Sleeps until an operation is done, the parker has a token (which it consumes), or the time has come.
  void sleep(platform::thread_parker& parker, platform::time_point until, batch& done) noexcept;
  static void complete(batch& done) noexcept;

  // Any thread -----------------------------------------------------------------------------------------
  void wake_if_asleep() noexcept {
    sleep_flag_.wake_if_asleep([this] { backend()->wake(); });
  }
  // Whether the owner has looked after them since this was last asked. The monitor.
  [[nodiscard]] bool polled_since_last_check() noexcept {
    const auto now = polls_.load(std::memory_order_relaxed);
    return std::exchange(polls_seen_, now) != now;
  }
  // For an owner that is held up. True: operations are under way.
  bool poll_for_owner() noexcept;
  [[nodiscard]] std::size_t under_way() const noexcept {
    const platform::io_backend* const b = backend();
    return b != nullptr ? b->under_way() : 0;
  }
  // Null: it is not open.
  [[nodiscard]] platform::io_backend* backend() const noexcept { return backend_.load(std::memory_order_acquire); }

 private:
  static bool poll(platform::io_backend& b, std::size_t limit) noexcept;

  std::unique_ptr<platform::io_backend> owned_;
  platform::atomic<platform::io_backend*> backend_{nullptr};  // the same, once it is open
  backend_sleep_flag sleep_flag_;
  platform::atomic<std::uint64_t> polls_{0};  // of the owner
  std::uint64_t polls_seen_ = 0;              // by the monitor
};

}  // namespace ramie::runtime_internal
