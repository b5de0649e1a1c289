// SPDX-License-Identifier: BSL-1.0
// Joins: how many fibers of a nursery live, and the one who waits for none.
#include <explore/memory.hpp>
#include <ramie/runtime/live_count.hpp>

#include "fibers.hpp"
#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
template <class T>
using shared = model_atomic<T>;

// An owner joins while children end elsewhere, one of them after it has spawned another, and somebody wakes the owner
// for nothing. The count dies as soon as the join is over, and what the children did is seen.
class join_and_end final : public scenario {
 public:
  explicit join_and_end(int accidents) : accidents_(accidents) {
    live_ = new (room_) live_count;
    live_->spawned_by_owner();
    live_->spawned_by_owner();
    live_->spawned_by_owner();
    live_->ended_in_place();
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { join(); }, [this] { end(0); },
            [this] {
              live_->spawned_by_descendant();
              spawned_.store(1, std::memory_order_release);
              end(1);
            },
            [this] {
              until([this] { return spawned_.load(std::memory_order_relaxed) != 0; });
              end(2);
            },
            [this] {
              for (int i = 1; i <= accidents_; ++i) owner_.wake_by_accident(static_cast<std::uint16_t>(i));
            }};
  }
  void check() override { require(joined_, "the join did not end"); }

 private:
  void join() {
    waiter node;
    owner_.wait(*live_, node);
    live_->~live_count();
    for (auto& r : results_) require(r == 1, "the join is over before a child is");
    joined_ = true;
  }
  void end(int child) {
    results_[child] = 1;
    live_->ended_elsewhere();
  }

  const int accidents_;
  alignas(live_count) std::byte room_[sizeof(live_count)];
  live_count* live_;
  fiber owner_;
  shared<int> spawned_{0};
  plain<int> results_[3];
  bool joined_ = false;
};

}  // namespace

list join_scenarios() {
  return {
      {"join_and_end", [] { return std::make_unique<join_and_end>(0); }, 3, 2, 1},
      {"join_woken_by_accident", [] { return std::make_unique<join_and_end>(1); }, 3, 1, 1},
  };
}

}  // namespace explore
