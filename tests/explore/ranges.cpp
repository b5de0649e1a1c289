// SPDX-License-Identifier: BSL-1.0
// The indices of a loop: an owner that takes them one by one, and thieves, one at a time, that take halves.
#include "nursery/src/index_range.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using ramie::nursery_internal::index_range;

class range_of_indices final : public scenario {
 public:
  range_of_indices(std::size_t count, int splits) : left_({0, count}), count_(count), splits_(splits) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thief(); }};
  }
  void check() override {
    for (std::size_t i = 0; i < count_; ++i) {
      require(called_[i] != 0, "an index is lost");
      require(called_[i] == 1, "an index was given out twice");
    }
  }

 private:
  void owner() {
    for (std::size_t i = 0; left_.take(i);) ++called_[i];
  }
  void thief() {
    for (int n = 0; n < splits_; ++n) {
      const auto share = left_.split();
      for (std::size_t i = share.first; i < share.last; ++i) ++called_[i];
    }
  }

  index_range left_;
  const std::size_t count_;
  const int splits_;
  int called_[8] = {};
};

// The owner's third call waits until the fourth has been made: by a thief, who must not go away with nothing because the
// owner has passed its middle.
class range_with_a_call_that_waits final : public scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { last_ = left_.split(); }};
  }
  void check() override {
    require(!last_.empty(), "a thief has left indices behind");
    require(last_.first == taken_ && last_.last == 4, "an index is lost, or was given out twice");
  }

 private:
  void owner() {
    for (std::size_t i = 0; taken_ < 3 && left_.take(i);) ++taken_;
  }

  index_range left_{{0, 4}};
  std::size_t taken_ = 0;
  index_range::piece last_{0, 0};
};

}  // namespace

list range_scenarios() {
  const auto of = [](std::size_t count, int splits) {
    return [count, splits] { return std::make_unique<range_of_indices>(count, splits); };
  };
  return {{"range_of_one", of(1, 1), 3, 3, 2},
          {"range_of_three", of(3, 1), 3, 3, 2},
          {"range_split_twice", of(4, 2), 3, 2, 1},
          {"range_with_a_call_that_waits", [] { return std::make_unique<range_with_a_call_that_waits>(); }, 3, 3, 2}};
}

}  // namespace explore
