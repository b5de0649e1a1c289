// SPDX-License-Identifier: BSL-1.0
#include "channel/src/core.hpp"

#include <cstdlib>

#include <explore/memory.hpp>

#include "fibers.hpp"
#include "scenarios.hpp"

// What the core asks of the runtime. Everybody is a plain thread here, so that the lock is a spin lock; the granted
// lock has a scenario of its own.
constinit thread_local ramie::runtime_internal::worker_local* ramie_this_worker_local = nullptr;

namespace ramie::runtime_internal {

bool claim(waiter& node) noexcept {
  return node.who->word.claim(static_cast<std::uint16_t>(node.ticket)) == claim_result::won;
}
void complete(fiber& who) noexcept {
  if (who.word.complete() == complete_result::must_enqueue) who.enqueue();
}
worker_local& yield_at_budget_end(worker_local& local) noexcept {
  return local;
}
// Scenarios publish and unpublish by themselves (fibers.hpp).
wait_result fiber_wait_fresh_first(waitable&, waiter&, const wait_reason&) {
  std::abort();
}
wait_result fiber_wait_until(waitable&, waiter&, const wait_reason&, std::chrono::steady_clock::time_point) {
  std::abort();
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {
void check_cancelled() {}
}  // namespace ramie::inline v0

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace ramie::channel_internal;
using ramie::channel_status;
using ramie::platform::biased_lock;
using ramie::platform::lock_user;

// Two workers and a stranger take a lock again and again: granted, asked for, revoked, granted to the other.
class lock_scenario final : public scenario {
 public:
  lock_scenario(int first, int second) : first_(first), second_(second) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] { use(&parties_[0], first_); }, [this] { use(&parties_[1], second_); }, [this] { use(nullptr, 1); }};
  }
  void check() override { require(counted_ == first_ + second_ + 1, "somebody did not get in"); }

 private:
  void use(const lock_user* me, int times) {
    for (int i = 0; i < times; ++i) {
      biased_lock::guard hold(lock_, me);
      require(!taken_, "two are inside");
      taken_ = true;
      step();
      counted_ = counted_ + 1;
      taken_ = false;
    }
  }
  const int first_, second_;
  ramie::platform::lock_family family_;
  lock_user parties_[2] = {{&family_, 0}, {&family_, 1}};
  biased_lock lock_;
  plain<bool> taken_{false};
  plain<int> counted_{0};
};

// Elements whose moves must be ordered after what made them, and before what looks at them.
using element = plain<int>;
constexpr element_ops ints{
    sizeof(element), alignof(element), [](void* slot, void* from) { new (slot) element(*static_cast<element*>(from)); },
    [](void* landing, void* from) { *static_cast<element*>(landing) = static_cast<element*>(from)->get(); },
    [](void* slot) noexcept { static_cast<element*>(slot)->set(-2); }};

// Fibers that send and receive once each, perhaps somebody who closes, or who wakes for nothing. What was sent is
// received or still there, in the order of each sender; nobody is left waiting.
class channel_scenario final : public scenario {
 public:
  struct plan {
    int capacity, filled, senders, receivers;
    bool closed = true, sender_disturbed = false, receiver_disturbed = false;
  };
  explicit channel_scenario(plan p) : plan_(p), core_(ints, slots_, static_cast<std::size_t>(p.capacity)) {
    for (int i = 0; i < p.filled; ++i) {
      wake_batch nobody;
      element value(100 + i);
      require(core_.try_send(&value, nobody) == channel_status::ok, "the buffer has no room");
    }
  }
  std::vector<std::function<void()>> threads() override {
    std::vector<std::function<void()>> all;
    for (int i = 0; i < plan_.senders; ++i) all.push_back([this, i] { send(i); });
    for (int i = 0; i < plan_.receivers; ++i) all.push_back([this, i] { receive(i); });
    if (plan_.closed) all.push_back([this] { require(core_.close(nullptr), "closed before"); });
    if (plan_.sender_disturbed) all.push_back([this] { sender_[0].wake_by_accident(1); });
    if (plan_.receiver_disturbed) all.push_back([this] { receiver_[0].wake_by_accident(1); });
    return all;
  }
  void check() override {
    int came[2] = {0, 0}, filled = 0, next_filled = 100;
    const auto count = [&](int value) {
      if (value < 100) {
        ++came[value];
      } else {
        require(value == next_filled++, "the buffer is out of order");
        ++filled;
      }
    };
    // Receivers run at the same time: what they got of the buffer is in order only for one of them.
    for (int i = 0; i < plan_.receivers; ++i) {
      if (got_[i] >= 0) count(got_[i]);
    }
    for (element value(0);;) {
      wake_batch nobody;
      const channel_status how = core_.try_recv(&value, nobody);
      if (how != channel_status::ok) {
        require((how == channel_status::closed) == plan_.closed, "open after a close");
        break;
      }
      count(value.get());
    }
    require(filled == plan_.filled, "an element of the buffer is lost");
    for (int i = 0; i < plan_.senders; ++i) {
      require(came[i] == (sent_[i] == channel_status::ok ? 1 : 0), "an element is lost, doubled, or came unsent");
    }
  }

 private:
  void send(int i) {
    element value(i);
    channel_waiter node(&value, true);
    sender_[i].wait(core_, node);
    require(node.outcome != 0, "a send has no outcome");
    sent_[i] = node.how();
  }
  void receive(int i) {
    element value(-1);
    channel_waiter node(&value, false);
    receiver_[i].wait(core_, node);
    require(node.outcome != 0, "a receive has no outcome");
    got_[i] = node.how() == channel_status::ok ? value.get() : -1;
  }

  const plan plan_;
  alignas(element) std::byte slots_[4 * sizeof(element)] = {};
  channel_core core_;
  fiber sender_[2], receiver_[2];
  channel_status sent_[2] = {};
  int got_[2] = {-1, -1};
};

}  // namespace

list channel_scenarios() {
  using plan = channel_scenario::plan;
  const auto with = [](plan p) { return [p] { return std::make_unique<channel_scenario>(p); }; };
  return {
      {"granted_lock", [] { return std::make_unique<lock_scenario>(4, 3); }, 3, 2, 1},
      // The first lets go while the second, which has it by revoking and then long use, holds it by a grant again.
      {"lease_ends_late", [] { return std::make_unique<lock_scenario>(3, 5); }, 3, 1, 1},
      {"channel_meets_close", with(plan{0, 0, 1, 1}), 3, 2, 1},
      {"channel_meeting", with(plan{0, 0, 1, 1, false}), 3, 3, 1},
      {"channel_moves_up", with(plan{1, 1, 1, 1, false}), 3, 2, 1},
      {"channel_makes_room", with(plan{1, 1, 2, 1}), 2, 1, 1},
      {"channel_sender_disturbed", with(plan{1, 1, 1, 1, true, true, false}), 2, 1, 1},
      {"channel_receiver_disturbed", with(plan{0, 0, 1, 1, true, false, true}), 2, 1, 1},
  };
}

}  // namespace explore
