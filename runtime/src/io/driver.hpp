// SPDX-License-Identifier: BSL-1.0
// Operations under way, and who takes their completions.
//
//   - The worker that began them (their owner), by two functions that the dispatcher calls: poll(), at the end of a
//     tick or at the injection queue's turn, at every 128th poll that finds its own queues empty, and before it
//     searches (under a policy also poll_all(), before each choice in its loop); park(), in a nap, in a sleep, and
//     while it has retreated. What was submitted goes to the kernel in the same functions.
//   - The monitor, for an owner that is held up by a fiber (io_port::poll_for_owner): one that hogs its worker does not
//     delay the operations of others.
//
// Whoever takes a completion makes its fiber runnable: request.hpp.
#pragma once

#include <cstddef>

#include <ramie/options.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>

#include "port.hpp"

namespace ramie::runtime_internal {

class scheduler;
class worker;

class io_driver {
 public:
  io_driver(scheduler& of, io_choice wanted) noexcept : sched_(of), setup_(wanted) {}
  io_driver(const io_driver&) = delete;
  io_driver& operator=(const io_driver&) = delete;

  // Before an operation of a fiber on `w`: opens the worker's port, and sees to it that the deadline can be kept. 0, or
  // -errno if the machine refuses what it needs.
  [[nodiscard]] int prepare(worker& w, platform::time_point until) noexcept;
  // An operation is under way: if this worker is held up, the monitor sees to it.
  void begun(worker& w) noexcept;

  // The owner --------------------------------------------------------------------------------------------
  // Sends what was submitted and completes what is done, as much as the ring has room for: more would overflow to the
  // injection queue, and have to wait there behind those who come after. True: there was something.
  bool poll(worker& w) noexcept;
  bool poll_all(worker& w) noexcept;  // without regard to the ring

  // What was done while the worker rested. Delivered when the worker counts as awake.
  class completions {
   public:
    completions() noexcept = default;
    void deliver() noexcept { io_port::complete(done_); }

   private:
    friend class io_driver;
    io_port::batch done_;
  };
  // Sleeps until whatever concerns the worker: an unpark, the time, its operations.
  void park(worker& w, platform::time_point until, completions& brought) noexcept;

 private:
  void open_port(worker& w);

  scheduler& sched_;
  io_setup setup_;
  platform::atomic<bool> watched_{false};  // by a monitor that would not be there otherwise
};

}  // namespace ramie::runtime_internal
