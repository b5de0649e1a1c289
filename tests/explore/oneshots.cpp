// SPDX-License-Identifier: BSL-1.0
// Oneshots: a receiver that leaves while the sender wakes it.
#include "channel/src/oneshot_core.hpp"

#include "scenarios.hpp"
#include "waits.hpp"

namespace ramie::runtime_internal {

void waker::wake() const noexcept {
  who_->wake_by_accident(static_cast<std::uint16_t>(ticket_));
}

}  // namespace ramie::runtime_internal

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace ramie::channel_internal;

// The receiver is woken by a value or by the other end that goes, by a cancellation, or by both at once. When its wait
// is over, its fiber is gone, while whoever has settled the oneshot may still be about to wake it.
class oneshot_left final : public scenario {
 public:
  oneshot_left(oneshot_core::state end, bool again) : end_(end), again_(again) {}
  threads_of threads() override {
    return {[this] { receive(); },
            [this] {
              made_ = 1;
              const auto before = settle(core_, end_);
              require(before == oneshot_core::empty || before == oneshot_core::receiver_waiting, "settled twice");
            },
            [this] {
              cancellation_.strike(*self_);
              struck_.store(true);
            }};
  }
  void check() override { require(core_.now.load() == end_ && !core_.published, "it has not ended as it was settled"); }

 private:
  void receive() {
    oneshot_arrival on(core_);
    waiter node;
    const bool stayed = cancellation_.wait(*self_, on, node);
    until([this] { return struck_.load(); });  // whoever cancels keeps the fiber there, too
    if (!stayed && again_) self_->wait(on, node);
    self_->~fiber();
    if (stayed || again_) require(is_final(core_) && made_ == 1, "the wait is over, and nothing has come");
  }

  const oneshot_core::state end_;
  const bool again_;  // a receiver that has left comes back
  oneshot_core core_;
  cancellation cancellation_;
  model_atomic<bool> struck_{false};
  alignas(fiber) std::byte room_[sizeof(fiber)];
  fiber* self_ = new (room_) fiber;
  plain<int> made_{0};
};

}  // namespace

list oneshot_scenarios() {
  return {
      {"oneshot_left", with<oneshot_left>(oneshot_core::value_sent, false), 4, 3, 1},
      {"oneshot_left_by_a_sender", with<oneshot_left>(oneshot_core::closed, false), 3, 2, 1},
      {"oneshot_left_and_taken_up_again", with<oneshot_left>(oneshot_core::value_sent, true), 3, 2, 1},
  };
}

}  // namespace explore
