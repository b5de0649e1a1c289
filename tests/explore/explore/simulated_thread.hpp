// SPDX-License-Identifier: BSL-1.0
// Threads of the simulator (bench/scale), a virtual processor each, and what they block on: locks as the C library makes
// them of a futex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include <explore/sites.hpp>

namespace explore {

inline constexpr bool spinning_helps = true;

// Before an atomic operation: whoever has an earlier clock goes first; then the calling processor gets the line.
void access_atomic(const void* address, access_kind kind) noexcept;
void pause_processor() noexcept;
void yield_thread() noexcept;
// The system's futex. `until`: nanoseconds of the simulated clock, or negative.
void sleep_at(const void* address, std::int64_t until) noexcept;
void wake_at(const void* address, unsigned most) noexcept;
// A thread on a processor of its own.
[[nodiscard]] std::size_t start_processor(std::function<void()> body);
void join_processor(std::size_t number) noexcept;

// Its value, and nothing else, as an atomic of the model; that one's header includes this one.
class futex_word {
 public:
  std::uint32_t exchange(std::uint32_t v) noexcept {
    access_atomic(&value_, access_kind::both);
    return std::exchange(value_, v);
  }
  std::uint32_t load() const noexcept {
    access_atomic(&value_, access_kind::load);
    return value_;
  }
  bool replace(std::uint32_t from, std::uint32_t to) noexcept {
    access_atomic(&value_, access_kind::both);
    if (value_ != from) return false;
    value_ = to;
    return true;
  }
  void add(std::uint32_t d) noexcept {
    access_atomic(&value_, access_kind::both);
    value_ += d;
  }
  // The kernel compares and queues in one step.
  void wait_while(std::uint32_t expected, std::int64_t until = -1) noexcept {
    if (value_ == expected) sleep_at(&value_, until);
  }
  void wake(unsigned most) noexcept { wake_at(&value_, most); }

 private:
  std::uint32_t value_ = 0;
};

class mutex {
 public:
  void lock() noexcept {
    if (word_.replace(0, 1)) return;
    while (word_.exchange(2) != 0) word_.wait_while(2);
  }
  [[nodiscard]] bool try_lock() noexcept { return word_.replace(0, 1); }
  void unlock() noexcept {
    if (word_.exchange(0) == 2) word_.wake(1);
  }

 private:
  futex_word word_;  // 0: free, 1: held, 2: held, and somebody may wait
};

class condition_variable {
 public:
  void wait(std::unique_lock<mutex>& hold) noexcept { wait_since(hold, -1); }
  template <class Holds>
  void wait(std::unique_lock<mutex>& hold, Holds holds) noexcept {
    while (!holds()) wait(hold);
  }
  template <class Time>
  std::cv_status wait_until(std::unique_lock<mutex>& hold, Time end) noexcept {
    const auto before = notified_.load();
    wait_since(hold, std::chrono::nanoseconds(end.time_since_epoch()).count());
    return notified_.load() == before ? std::cv_status::timeout : std::cv_status::no_timeout;
  }
  void notify_one() noexcept { notify(1); }
  void notify_all() noexcept { notify(~0u); }

 private:
  void wait_since(std::unique_lock<mutex>& hold, std::int64_t until) noexcept {
    const auto before = notified_.load();
    hold.unlock();
    notified_.wait_while(before, until);
    hold.lock();
  }
  void notify(unsigned most) noexcept {
    notified_.add(1);
    notified_.wake(most);
  }

  futex_word notified_;
};

class thread {
 public:
  thread() noexcept = default;
  template <class F>
  explicit thread(F body) : number_(start_processor(std::move(body))), joinable_(true) {}
  thread(thread&& other) noexcept : number_(other.number_), joinable_(std::exchange(other.joinable_, false)) {}
  thread& operator=(thread&& other) noexcept {
    number_ = other.number_;
    joinable_ = std::exchange(other.joinable_, false);
    return *this;
  }
  [[nodiscard]] bool joinable() const noexcept { return joinable_; }
  void join() noexcept {
    join_processor(number_);
    joinable_ = false;
  }

 private:
  std::size_t number_ = 0;
  bool joinable_ = false;
};

}  // namespace explore
