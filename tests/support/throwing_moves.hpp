// SPDX-License-Identifier: BSL-1.0
// Elements that throw when they are moved or copied.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace test {

// Throws on the k-th move or copy from now on, and then stays what it was.
class throwing {
 public:
  static inline std::atomic<int> until_throw{0};
  explicit throwing(int v) : value_(v) {}
  throwing(const throwing& other) : value_((strain(), other.value_)) {}
  throwing(throwing&& other) : value_((strain(), std::exchange(other.value_, 0))) {}
  throwing& operator=(throwing&& other) {
    strain();
    value_ = std::exchange(other.value_, 0);
    return *this;
  }
  ~throwing() = default;
  [[nodiscard]] int value() const { return value_; }  // 0: it was moved from

 private:
  static void strain() {
    if (until_throw.load() > 0 && until_throw.fetch_sub(1) == 1) throw std::runtime_error("fell");
  }
  int value_;
};

// Whether f() throws what an element throws on its k-th move or copy.
template <class F>
bool falls(int k, F f) {
  throwing::until_throw.store(k);
  bool fell = false;
  try {
    f();
  } catch (const std::runtime_error& e) {
    fell = std::string_view(e.what()) == "fell";
  }
  throwing::until_throw.store(0);
  return fell;
}

}  // namespace test
