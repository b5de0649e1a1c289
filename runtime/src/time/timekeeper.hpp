// SPDX-License-Identifier: BSL-1.0
// Deadlines of one runtime: a binary heap under a mutex, and a thread that sleeps until the earliest. The thread
// starts with the first deadline; with a manual clock there is none, and whoever advances the clock carries
// the deadlines out. (The timer wheel replaces this.)
//
// An entry lives with the scope it cancels, whose owner adds and removes it. Once remove() has returned nobody touches
// the entry any more. A scope whose time has come is pinned under the mutex and cancelled without it: callbacks of
// stop tokens may do anything. It is not closed before that.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/deadline.hpp>

namespace ramie::detail {

class timekeeper final : platform::clock_listener {
 public:
  // `manual` null: the machine's steady clock. Throws usage_error if it advances by itself and serves another already.
  explicit timekeeper(platform::virtual_clock* manual);
  ~timekeeper();
  timekeeper(const timekeeper&) = delete;
  timekeeper& operator=(const timekeeper&) = delete;

  // Any thread. Throws std::bad_alloc, or std::system_error if the thread can't be started; the entry is not in
  // then.
  void add(deadline_entry& entry);
  void remove(deadline_entry& entry) noexcept;
  // Wakes `who` when the time comes; at once if it has.
  void arm(wake_up& entry, waker who) noexcept;
  [[nodiscard]] platform::time_point now() const noexcept { return clock_.now(); }
  void stop() noexcept;

  // Of a clock that advances by itself: to the earliest deadline, which is carried out. False: there is none.
  [[nodiscard]] bool jump() noexcept;
  [[nodiscard]] bool advances_itself() const noexcept { return manual_ != nullptr && manual_->advances_itself; }

 private:
  void time_passed() noexcept override;
  void run() noexcept;
  void carry_out_due(std::unique_lock<platform::mutex>& hold) noexcept;
  void sift_up(std::size_t at) noexcept;
  void sift_down(std::size_t at) noexcept;
  void put(std::size_t at, deadline_entry& entry) noexcept;

  platform::virtual_clock* const manual_;
  const platform::clock_source& clock_;
  platform::mutex mutex_;
  platform::condition_variable changed_;
  std::vector<deadline_entry*> heap_;
  platform::thread thread_;
  bool stopping_ = false;
};

}  // namespace ramie::detail
