// SPDX-License-Identifier: BSL-1.0
// Ends the process when nothing has happened for a long time, and says what was being done.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace test {

class watchdog {
 public:
  // describe() prints to standard error; it is called while the others hang.
  watchdog(std::chrono::seconds patience, std::function<void()> describe)
      : patience_(patience), describe_(std::move(describe)), thread_([this] { watch(); }) {}
  ~watchdog() {
    {
      std::lock_guard hold(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  // Something happened. The new count, which also dates events: of two calls of which one happens before the other it
  // returns less. Relaxed, so that it orders nothing that the runtime ought to order.
  std::uint64_t step() noexcept { return steps_.fetch_add(1, std::memory_order_relaxed) + 1; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }

 private:
  void watch() {
    std::uint64_t seen = 0;
    // Looks are counted, not seconds: a machine that stands still stops the watchdog as well.
    int looks = 0;
    std::unique_lock hold(mutex_);
    while (!wake_.wait_for(hold, std::chrono::seconds(1), [this] { return over_; })) {
      const auto now = steps_.load(std::memory_order_relaxed);
      looks = now != std::exchange(seen, now) ? 0 : looks + 1;
      if (looks < patience_.count()) continue;
      std::fprintf(stderr, "watchdog: no step for %lld s after %llu steps\n", static_cast<long long>(patience_.count()),
                   static_cast<unsigned long long>(now));
      describe_();
      std::abort();
    }
  }

  const std::chrono::seconds patience_;
  const std::function<void()> describe_;
  std::atomic<std::uint64_t> steps_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace test
