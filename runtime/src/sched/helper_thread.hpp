// SPDX-License-Identifier: BSL-1.0
// A runtime's own threads besides its workers: its monitor, the keeper of its time, those of its blocking pool. What
// runs on them may be a program's code – a report handler, the callback of a stop token, a call that blocks – so those
// who must know whose thread they are on can ask.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>

namespace ramie::runtime_internal {

// The part of a runtime (a monitor, timekeeper or blocking_pool) that the calling thread was started for; null: none.
// Set once, by the thread itself. The threads of the explorer have one each (tests/explore).
extern constinit thread_local const void* helper_of;

// A thread that a part starts when it is first needed, with the parker in which it sleeps. Starts and stop are under
// one mutex: after stop() there is no thread and none is started. What the thread sleeps for, and how those who wake it
// know that it sleeps, are its part's own (monitor.hpp, timekeeper.hpp).
class helper_thread {
 public:
  enum class start_result : std::uint8_t {
    started,       // by this call
    was_started,   // before
    must_not_run,  // stop() was called
  };
  // Has the thread call the member function of `part`. Throws std::system_error, std::bad_alloc: it may be tried again.
  // Any thread.
  template <auto Member, class Part>
  start_result start(Part& part) {
    std::lock_guard hold(start_mutex_);
    if (stopping_.load(std::memory_order_relaxed)) return start_result::must_not_run;
    if (started_.load(std::memory_order_relaxed)) return start_result::was_started;
    thread_ = platform::start_thread<Member>(part);
    started_.store(true, std::memory_order_release);  // pairs with the acquire in is_started
    return start_result::started;
  }
  [[nodiscard]] bool is_started() const noexcept { return started_.load(std::memory_order_acquire); }
  // Any thread but this one. Returns when it has ended. Idempotent.
  void stop() noexcept {
    {
      std::lock_guard hold(start_mutex_);
      stopping_.store(true, std::memory_order_release);  // pairs with the acquire in is_stopping
    }
    parker_.unpark();
    if (thread_.joinable()) thread_.join();
  }
  // Any thread.
  void unpark() noexcept { parker_.unpark(); }

  // The thread itself ----------------------------------------------------------------------------------
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  void park() noexcept { parker_.park(); }
  bool park_until(platform::time_point t) noexcept { return parker_.park_until(t); }

 private:
  platform::thread_parker parker_;
  platform::atomic<bool> started_{false};
  platform::atomic<bool> stopping_{false};
  platform::mutex start_mutex_;
  platform::thread thread_;
};

}  // namespace ramie::runtime_internal
