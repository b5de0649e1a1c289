// SPDX-License-Identifier: BSL-1.0
// What "sleepers" is in the C++ programs: many fibers, each of which sleeps a few times and logs how late it was.
#pragma once

#include <cstdint>

#include <compare/program.hpp>
#include <compare/random.hpp>

namespace compare {

// 1 to 100 ms in steps of a microsecond, by splitmix64 from the fiber's number: the same in every program.
class sleep_times {
 public:
  explicit sleep_times(long fiber) : random_(fiber) {}
  std::chrono::microseconds next() { return std::chrono::microseconds(1'000 + random_.next() % 99'001); }

 private:
  splitmix random_;
};

class sleep_log {
 public:
  sleep_log(long fibers, long sleeps)
      : sleeps_(static_cast<std::size_t>(sleeps)), late_(static_cast<std::size_t>(fibers) * sleeps_) {
    for (long f = 0; f < fibers; ++f) {
      sleep_times times(f);
      std::chrono::microseconds sum{0};
      for (std::size_t k = 0; k < sleeps_; ++k) sum += times.next();
      ideal_ = std::max(ideal_, sum);
    }
    cpu_before_ = cpu_ms();
    start_ = stopwatch::now();
  }

  // All that a fiber does. A reading of the clock a sleep: the end of one is the beginning of the next.
  void live(long fiber, auto sleep_for) {
    sleep_times times(fiber);
    long* const late = &late_[static_cast<std::size_t>(fiber) * sleeps_];
    auto now = stopwatch::now();
    for (std::size_t k = 0; k < sleeps_; ++k) {
      const auto time = times.next();
      const auto due = now + time;
      sleep_for(time);
      now = stopwatch::now();
      late[k] = std::chrono::duration_cast<std::chrono::nanoseconds>(now - due).count();
    }
  }

  // When all of them have ended.
  [[nodiscard]] result found() {
    const double wall = ns_each(1, start_), cpu = cpu_ms() - cpu_before_;
    const auto early = std::count_if(late_.begin(), late_.end(), [](long ns) { return ns < 0; });
    std::sort(late_.begin(), late_.end());
    const auto p99 = late_[static_cast<std::size_t>(0.99 * static_cast<double>(late_.size() - 1))];
    return {wall / std::chrono::duration<double, std::nano>(ideal_).count(),
            "x",
            {{"p99_ms", static_cast<double>(p99) / 1e6},
             {"max_ms", static_cast<double>(late_.back()) / 1e6},
             {"cpu_s", cpu / 1e3},
             {"early", static_cast<double>(early)}}};
  }

 private:
  const std::size_t sleeps_;
  std::vector<long> late_;  // ns, of every sleep
  std::chrono::microseconds ideal_{0};
  double cpu_before_ = 0;
  stopwatch::time_point start_;
};

}  // namespace compare
