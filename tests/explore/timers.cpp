// SPDX-License-Identifier: BSL-1.0
// The life of a timer: its owner sets it, somebody else fires it, its owner takes it back. Once it is the owner's
// again it is overwritten: whoever touches it then is found out. And who waits for the time is woken when it comes.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <ramie/nursery.hpp>
#include <ramie/options.hpp>
#include <ramie/runtime.hpp>
#include <ramie/this_fiber.hpp>

#include <ramie/platform/clock.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/wait.hpp>
#include "runtime/src/sched/scheduler.hpp"
#include "runtime/src/time/timekeeper.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;

enum class mood : std::uint8_t {
  calm,
  disturbed,  // woken for nothing, it sets the timer again and waits on
  cancelled,  // woken for nothing, it leaves
};

class watched_timer final : public waitable {
 public:
  watched_timer(timekeeper& keeper, mood m) : keeper_(keeper), when_(keeper.now() + 1h), mood_(m) {}

  // The owner, once. Returns when the timer is its own again.
  void use() {
    static const wait_reason for_its_time{"timer of a scenario"};
    entry_ = new (room_) wake_up(when_);
    waiter node;
    (void)fiber_wait(*this, node, for_its_time);
    require(fired() || mood_ == mood::cancelled, "woken before the time");
    if (!fired()) keeper_.remove(*entry_);
    entry_->~wake_up();
    std::fill_n(room_, sizeof room_, overwritten);
    over_.store(true);
  }
  // Somebody else, once.
  void wake_for_nothing() {
    until([this] { return published_.load(); });
    who_.wake();
  }
  [[nodiscard]] bool over() const { return over_.load(); }
  // When everybody has ended.
  void check() const {
    const auto same = [](std::byte b) { return b == overwritten; };
    require(std::all_of(room_, room_ + sizeof room_, same), "touched when it was its owner's again");
  }

 private:
  static constexpr std::byte overwritten{0xa5};
  [[nodiscard]] bool fired() const { return entry_->fired.load(std::memory_order_acquire); }

  bool try_complete(waiter&) override { return fired() || leaves_; }
  bool publish(waiter& node) override {
    keeper_.set(*entry_, waker(node), keeper_.now());
    if (!published_.load()) who_ = waker(node);
    published_.store(true);
    return true;
  }
  void unpublish(waiter&) noexcept override { leaves_ = mood_ == mood::cancelled; }

  timekeeper& keeper_;
  const timekeeper::time_point when_;
  const mood mood_;
  alignas(wake_up) std::byte room_[sizeof(wake_up)];
  wake_up* entry_ = nullptr;
  waker who_;  // of the first wait
  bool leaves_ = false;
  model_atomic<bool> published_{false}, over_{false};
};

// By hand: plain threads, one of which moves the clock.
class timer_by_hand final : public scenario {
 public:
  explicit timer_by_hand(mood m) : mood_(m) {}
  std::vector<std::function<void()>> threads() override {
    std::vector<std::function<void()>> all{[this] { timer_.use(); }, [this] { clock_.advance(2h); }};
    if (mood_ != mood::calm) all.push_back([this] { timer_.wake_for_nothing(); });
    return all;
  }
  void check() override { timer_.check(); }

 private:
  const mood mood_;
  ramie::platform::virtual_clock clock_{false};
  timekeeper keeper_{&clock_, 1};
  watched_timer timer_{keeper_, mood_};
};

// By workers: a fiber has set it on one, and another fires it wherever it runs.
class timer_of_workers final : public scenario {
 public:
  explicit timer_of_workers(mood m) : mood_(m) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
      ramie::options o;
      o.workers = 2;
      o.elastic = false;
      ramie::run(o, [this] { play(); });
    }};
  }
  void check() override { require(ended_, "the program did not end"); }

 private:
  void play() {
    timekeeper& keeper = this_worker()->sched.deadlines;
    watched_timer timer(keeper, mood_);
    ramie::nursery n;
    n.spawn([&] {
      while (!timer.over()) {
        (void)keeper.fire_due(keeper.now() + 2h, overflow_batch);
        ramie::yield();
      }
    });
    if (mood_ != mood::calm) n.spawn([&] { timer.wake_for_nothing(); });
    timer.use();
    n.join();
    timer.check();
    ended_ = true;
  }
  const mood mood_;
  bool ended_ = false;
};

template <class Scenario>
scenario_maker with(mood m) {
  return [m] { return std::make_unique<Scenario>(m); };
}

}  // namespace

list timer_scenarios() {
  return {
      {"timer_by_hand", with<timer_by_hand>(mood::calm), 3, 0, 0},
      {"timer_by_hand_set_again", with<timer_by_hand>(mood::disturbed), 2, 0, 0},
      {"timer_by_hand_removed", with<timer_by_hand>(mood::cancelled), 2, 0, 0},
      {"timer_of_workers", with<timer_of_workers>(mood::calm), 2, 0, 0, 4'000},
      {"timer_of_workers_set_again", with<timer_of_workers>(mood::disturbed), 2, 0, 0, 4'000},
      {"timer_of_workers_removed", with<timer_of_workers>(mood::cancelled), 2, 0, 0, 4'000},
  };
}

}  // namespace explore
