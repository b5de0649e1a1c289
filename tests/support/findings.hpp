// SPDX-License-Identifier: BSL-1.0
// What went wrong in fibers and threads: noted there, by line, and checked outside.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include <ramie/clock.hpp>
#include <ramie/source_location.hpp>
#include <support/crew.hpp>
#include <support/test.hpp>

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

// f(found) on a plain thread and as a fiber: both must see the same.
template <class F>
void as_thread_and_fiber(F f) {
  findings found;
  f(found);
  CHECK(found.wrong() == "");
  ramie::run(with_workers(1), [&] { f(found); });
  CHECK(found.wrong() == "");
}

// f(found, clock) as a fiber on one worker, where a yield lets all others get as far as they can, and time stands
// still.
template <class F>
void as_fiber(F f) {
  findings found;
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  ramie::run(o, [&] { f(found, clock); });
  CHECK(found.wrong() == "");
}

}  // namespace test
