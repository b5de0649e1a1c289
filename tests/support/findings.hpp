// SPDX-License-Identifier: BSL-1.0
// What went wrong in fibers and threads: noted there, by line, and checked outside.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include <ramie/source_location.hpp>

namespace test {

class findings {
 public:
  void expect(bool holds, ramie::source_location where = ramie::source_location::current()) {
    if (holds) return;
    std::lock_guard hold(mutex_);
    ++wrong_[where.line()];
  }
  // "line 12: 3 times; ", or "" if all was well.
  [[nodiscard]] std::string wrong() {
    std::lock_guard hold(mutex_);
    std::string all;
    for (const auto& [line, times] : wrong_) {
      all += "line " + std::to_string(line) + ": " + std::to_string(times) + " times; ";
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<unsigned long, int> wrong_;
};

}  // namespace test
