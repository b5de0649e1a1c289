// SPDX-License-Identifier: BSL-1.0
// What the tests of explore share.
#pragma once

#include <string>

#include <ramie/testing.hpp>

namespace test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline ramie::testing::explore_options asking(
    unsigned schedules, ramie::testing::strategy how = ramie::testing::strategy::mixed) {
  ramie::testing::explore_options o;
  o.schedules = schedules;
  o.how = how;
  o.failure = ramie::testing::on_failure::returns;
  return o;
}

}  // namespace test
