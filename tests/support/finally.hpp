// SPDX-License-Identifier: BSL-1.0
// What is done when a scope ends, whether it is left or thrown out of.
#pragma once

#include <utility>

namespace test {

template <class F>
class finally {
 public:
  explicit finally(F f) : f_(std::move(f)) {}
  ~finally() { f_(); }
  finally(const finally&) = delete;
  finally& operator=(const finally&) = delete;

 private:
  F f_;
};

}  // namespace test
