// SPDX-License-Identifier: BSL-1.0
// Completions on top of readiness (epoll, poll). An operation is tried at once; if it would block, it is listed with
// its descriptor, and tried again when that is ready.
//
// Invariants, all under the lock
//   RD1  An operation is in no list (its submitter tries it), in the list of its descriptor, or in the done list.
//   RD2  If the list of a descriptor is not empty, the events that its operations wait for are armed, or an event of it
//        has been collected and is about to be handled. Arming is level triggered, and comes after listing: readiness
//        in between is not missed.
//   IO6  A thread that puts an operation into the done list while another one sleeps in wait() ends that sleep.
//
// Descriptors are non-blocking (O_NONBLOCK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/thread.hpp>

#include "io_mechanisms.hpp"

namespace ramie::platform {

// What differs between epoll and poll.
class readiness_source {
 public:
  struct event {
    std::int32_t fd;
    std::uint32_t events;  // POLLIN, POLLOUT, POLLERR, POLLHUP
  };

  virtual ~readiness_source() = default;
  // Watches the descriptor for `events`, until one has been collected; 0: none. Returns 0 or an errno.
  [[nodiscard]] virtual int arm(std::int32_t fd, std::uint32_t events) noexcept = 0;
  // Collects events; if there are none, sleeps until there are or until `until` (time_point::min(): does not sleep).
  // Called without the lock.
  [[nodiscard]] virtual std::size_t collect(std::span<event> out, time_point until) noexcept = 0;
  // Ends a collect() that sleeps, or the next one.
  virtual void interrupt() noexcept = 0;
  [[nodiscard]] virtual io_mechanism mechanism() const noexcept = 0;
};

class readiness_backend final : public io_backend {
 public:
  explicit readiness_backend(std::unique_ptr<readiness_source> source) noexcept : source_(std::move(source)) {}

  [[nodiscard]] io_mechanism mechanism() const noexcept override { return source_->mechanism(); }
  [[nodiscard]] bool wants_non_blocking() const noexcept override { return true; }
  void submit(io_operation& op) noexcept override;
  void cancel(io_operation& op) noexcept override;
  void flush() noexcept override {}
  [[nodiscard]] std::size_t poll(std::span<io_operation*> out) noexcept override;
  [[nodiscard]] std::size_t wait(std::span<io_operation*> out, time_point until) noexcept override;
  void wake() noexcept override;
  [[nodiscard]] std::size_t under_way() const noexcept override { return under_way_; }

 private:
  static constexpr std::size_t events_at_once = 64;  // few: collect() runs on the stack of a fiber that has just parked

  [[nodiscard]] std::int32_t list(io_operation& op) noexcept;
  [[nodiscard]] bool grow_to(std::size_t descriptors) noexcept;
  [[nodiscard]] int arm(std::int32_t fd) noexcept;
  void work_off(const readiness_source::event& e) noexcept;
  void collect(time_point until) noexcept;
  void done(io_operation& op) noexcept;
  [[nodiscard]] std::size_t hand_out(std::span<io_operation*> out) noexcept;

  const std::unique_ptr<readiness_source> source_;
  mutex mutex_;
  std::vector<io_operation*> waiting_;  // by descriptor
  io_operation* first_done_ = nullptr;
  io_operation** last_done_ = &first_done_;
  counter under_way_;
  bool sleeping_ = false;
  bool woken_ = false;
};

}  // namespace ramie::platform
