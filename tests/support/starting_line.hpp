// SPDX-License-Identifier: BSL-1.0
// Where two threads start at the same moment.
#pragma once

#include <atomic>
#include <thread>

namespace test {

// Two threads meet here again and again. They spin, so that neither has to be woken when both are there.
class starting_line {
 public:
  void meet() noexcept {
    const long mine = came_.fetch_add(1) / 2 * 2 + 2;
    for (int spins = 1; came_.load() < mine; ++spins) {
      if (spins % 4'096 == 0) std::this_thread::yield();
    }
  }

 private:
  std::atomic<long> came_{0};
};

}  // namespace test
