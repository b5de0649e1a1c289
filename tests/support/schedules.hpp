// SPDX-License-Identifier: BSL-1.0
// A small program over many schedules, and how it notices that two are where one should be.
#pragma once

#include <ramie/testing.hpp>
#include <support/test.hpp>

namespace test {

template <class Program>
void over_many_schedules(Program program) {
  ramie::testing::explore_options how;
  how.schedules = static_cast<unsigned>(scaled(400, 40));
  how.failure = ramie::testing::on_failure::returns;
  CHECK(ramie::testing::explore(how, program).failure == "");
}

// Counts who is inside, also if that ends by a cancellation.
class presence {
 public:
  explicit presence(int& count) : count_(++count) {}
  ~presence() { --count_; }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;

 private:
  int& count_;
};

}  // namespace test
