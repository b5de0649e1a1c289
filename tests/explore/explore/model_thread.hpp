// SPDX-License-Identifier: BSL-1.0
// Threads of the model, and what they block on. Waits of a condition variable with a deadline wait without.
#pragma once

#if defined(RAMIE_SIMULATED)

#include <explore/simulated_thread.hpp>

#else

#include <condition_variable>
#include <mutex>
#include <utility>

#include <explore/explorer.hpp>
#include <explore/model_atomic.hpp>

namespace explore {

inline constexpr bool spinning_helps = false;  // no other thread runs meanwhile
void pause() noexcept;  // nothing to do until somebody else has done something
inline void yield_thread() noexcept {
  pause();
}

class mutex {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) {
      until([this] { return !held_.load(std::memory_order_relaxed); });
    }
  }
  [[nodiscard]] bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  model_atomic<bool> held_{false};
};

class condition_variable {
 public:
  void wait(std::unique_lock<mutex>& hold) noexcept {
    const auto before = notified_.load();
    hold.unlock();
    until([this, before] { return notified_.load() != before; });
    hold.lock();
  }
  template <class Holds>
  void wait(std::unique_lock<mutex>& hold, Holds holds) noexcept {
    while (!holds()) wait(hold);
  }
  template <class Time>
  std::cv_status wait_until(std::unique_lock<mutex>& hold, Time) noexcept {
    wait(hold);
    return std::cv_status::no_timeout;
  }
  void notify_one() noexcept { notify_all(); }
  void notify_all() noexcept { notified_.fetch_add(1); }

 private:
  model_atomic<unsigned> notified_{0};
};

class thread {
 public:
  thread() noexcept = default;
  template <class F>
  explicit thread(F body) : number_(start_thread(std::move(body))), joinable_(true) {}
  thread(thread&& other) noexcept : number_(other.number_), joinable_(std::exchange(other.joinable_, false)) {}
  thread& operator=(thread&& other) noexcept {
    number_ = other.number_;
    joinable_ = std::exchange(other.joinable_, false);
    return *this;
  }
  [[nodiscard]] bool joinable() const noexcept { return joinable_; }
  void join() noexcept {
    join_thread(number_);
    joinable_ = false;
  }

 private:
  std::size_t number_ = 0;
  bool joinable_ = false;
};

}  // namespace explore

#endif
