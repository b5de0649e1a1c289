// SPDX-License-Identifier: BSL-1.0
// The queues of what fibers wait at for each other: condition_variable, event, latch, barrier.
#include <explore/memory.hpp>
#include "sync/src/barrier_core.hpp"
#include "sync/src/condition_core.hpp"
#include "sync/src/event_core.hpp"
#include "sync/src/latch_core.hpp"

#include "scenarios.hpp"
#include "waits.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace ramie::sync_internal;

enum class mood : std::uint8_t {
  calm,
  disturbed,  // the first waiter is woken by accident
  cancelled,  // the first waiter is cancelled while it waits
};

// Something is made under a mutex, and others wait for it. Each who finds it tells the next: if a notification goes
// with one that is cancelled, somebody waits for ever.
class condition_scenario final : public scenario {
 public:
  condition_scenario(int waiters, bool all, mood m) : waiters_(waiters), all_(all), mood_(m) {}
  threads_of threads() override {
    threads_of every{[this] { make(); }};
    for (int i = 0; i < waiters_; ++i) every.push_back([this, i] { use(i); });
    if (mood_ == mood::cancelled) every.push_back([this] { cancellation_.strike(self_[0]); });
    return every;
  }
  void check() override {
    require(!condition_.is_waited_for() && condition_.waiters.first == nullptr, "somebody is listed");
    require(mutex_.word.load() == 0, "it is locked for ever");
  }

 private:
  void make() {
    lock(mutex_, self_[2]);
    made_ = true;
    mutex_word::unlock(mutex_);
    notify();
  }
  void use(int i) {
    lock(mutex_, self_[i]);
    bool goes_on = true;
    while (goes_on && !made_) goes_on = wait(i);
    mutex_word::unlock(mutex_);
    if (goes_on && !all_) notify();  // the next
    if (i == 0) cancellation_.over();
  }
  // As condition_wait does it. False: cancelled.
  bool wait(int i) {
    condition_waitable<mutex_word::unlock> on(condition_, mutex_);
    condition_waiter node;
    const bool may_be_cancelled = mood_ == mood::cancelled && i == 0;
    if (may_be_cancelled) {
      (void)cancellation_.wait(self_[i], on, node);
    } else {
      self_[i].wait(on, node);
    }
    lock(mutex_, self_[i]);
    return !may_be_cancelled || node.was_notified();
  }
  void notify() {
    if (condition_.is_waited_for()) condition_queue::notify(condition_, all_);
  }

  const int waiters_;
  const bool all_;
  const mood mood_;
  mutex_core mutex_;
  condition_core condition_;
  cancellation cancellation_;
  fiber self_[3];
  plain<bool> made_{false};
};

// Two wait for an event that is set once, and perhaps reset at once: then when both are listed.
class event_scenario final : public scenario {
 public:
  event_scenario(bool reset, mood m) : reset_(reset), mood_(m) {}
  threads_of threads() override {
    threads_of all{[this] { set(); }, [this] { wait(0); }, [this] { wait(1); }};
    if (mood_ == mood::disturbed) all.push_back([this] { self_[0].wake_by_accident(1); });
    if (mood_ == mood::cancelled) all.push_back([this] { cancellation_.strike(self_[0]); });
    return all;
  }
  void check() override {
    require(event_.waiters.first == nullptr && event_.word.load() == (reset_ ? 0 : event_word::happened),
            "the word is not what it should be");
  }

 private:
  void set() {
    if (reset_) until([this] { return event_.waiters.places == 2; });
    made_ = 1;
    event_word::set(event_);
    if (reset_) event_word::reset(event_);
  }
  void wait(int i) {
    if (!event_word::has_happened(event_)) {
      event_waitable on(event_);
      queue_waiter node;
      if (mood_ == mood::cancelled && i == 0) {
        if (!cancellation_.wait(self_[i], on, node)) return require(!node.released, "cancelled, though it was released");
      } else {
        self_[i].wait(on, node);
      }
    }
    require(made_ == 1, "nothing has happened");
  }
  const bool reset_;
  const mood mood_;
  event_core event_;
  cancellation cancellation_;
  fiber self_[2];
  plain<int> made_{0};
};

// Whoever resets an event and then looks for what was made before it was set misses nothing.
class event_looked_after final : public scenario {
 public:
  threads_of threads() override {
    return {[this] {
              made_.store(1, std::memory_order_relaxed);
              event_word::set(event_);
            },
            [this] {
              event_word::reset(event_);
              if (made_.load(std::memory_order_relaxed) == 1) return;
              event_waitable on(event_);
              queue_waiter node;
              self_.wait(on, node);
            }};
  }
  void check() override {}  // that everybody ends is the claim

 private:
  event_core event_;
  model_atomic<int> made_{0};
  fiber self_;
};

// Two count down, each for what it has made, and two wait: the same, or others.
class latch_scenario final : public scenario {
 public:
  latch_scenario(bool others, mood m) : others_(others), mood_(m) {}
  threads_of threads() override {
    threads_of all;
    for (int i = 0; i < 2; ++i) {
      all.push_back([this, i] {
        count_down(i);
        if (!others_) wait(i);
      });
      if (others_) all.push_back([this, i] { wait(i); });
    }
    if (mood_ == mood::disturbed) all.push_back([this] { self_[0].wake_by_accident(1); });
    if (mood_ == mood::cancelled) all.push_back([this] { cancellation_.strike(self_[0]); });
    return all;
  }
  void check() override { require(latch_.word.load() == 0 && latch_.waiters.first == nullptr, "it is not open"); }

 private:
  void count_down(int i) {
    made_[i] = 1;
    require(latch_word::count_down(latch_, 1), "below zero");
  }
  void wait(int i) {
    latch_waitable on(latch_);
    queue_waiter node;
    if (mood_ == mood::cancelled && i == 0) {
      if (!cancellation_.wait(self_[i], on, node)) return;
    } else {
      self_[i].wait(on, node);
    }
    require(made_[0] + made_[1] == 2, "it is open too early");
  }
  const bool others_;
  const mood mood_;
  latch_core latch_{2 << 1, {}};
  cancellation cancellation_;
  fiber self_[2];
  plain<int> made_[2];
};

// The latch is gone as soon as its only waiter goes on, while who counted down may still be inside.
class latch_gone final : public scenario {
 public:
  threads_of threads() override {
    return {[this] {
              made_ = 1;
              require(latch_word::count_down(*latch_, 1), "below zero");
            },
            [this] {
              latch_waitable on(*latch_);
              queue_waiter node;
              self_.wait(on, node);
              latch_->~latch_core();
              made_ = made_ + 1;
            }};
  }
  void check() override { require(made_ == 2, "it was not waited for"); }

 private:
  alignas(latch_core) std::byte room_[sizeof(latch_core)];
  latch_core* latch_ = new (room_) latch_core{1 << 1, {}};
  fiber self_;
  plain<int> made_{0};
};

// Two parties meet; a third, if there is one, drops out instead. Each generation has one leader. A party that is
// cancelled has not come, and comes again.
class barrier_scenario final : public scenario {
 public:
  barrier_scenario(int rounds, bool third_drops, mood m) : rounds_(rounds), third_drops_(third_drops), mood_(m) {}
  threads_of threads() override {
    threads_of all{[this] { meet(0); }, [this] { meet(1); }};
    if (third_drops_) {
      all.push_back([this] {
        came_[0][2] = true;
        require(barrier_parties::arrive_and_drop(barrier_), "nobody is left");
      });
    }
    if (mood_ == mood::disturbed) all.push_back([this] { self_[0].wake_by_accident(1); });
    if (mood_ == mood::cancelled) all.push_back([this] { cancellation_.strike(self_[0]); });
    return all;
  }
  void check() override {
    require(leaders_ == rounds_ && barrier_.generation == static_cast<std::uint64_t>(rounds_), "not one leader each");
    require(barrier_.missing == 2 && barrier_.waiters.first == nullptr, "somebody is missing");
  }

 private:
  void meet(int i) {
    for (int round = 0; round < rounds_; ++round) {
      came_[round][i] = true;
      if (wait(i)) ++leaders_;
      require(came_[round][1 - i], "the other has not come");
    }
    require(!third_drops_ || came_[0][2], "the third has not dropped out");
  }
  // Whether it leads.
  bool wait(int i) {
    barrier_waitable on(barrier_);
    barrier_waiter node;
    const bool may_be_cancelled = mood_ == mood::cancelled && i == 0;
    if (may_be_cancelled && !cancellation_.wait(self_[i], on, node)) {
      barrier_waiter again;
      self_[i].wait(on, again);
      return again.leads;
    }
    if (!may_be_cancelled) self_[i].wait(on, node);
    return node.leads;
  }
  const int rounds_;
  const bool third_drops_;
  const mood mood_;
  barrier_core barrier_{third_drops_ ? 3u : 2u, third_drops_ ? 3u : 2u, 0, {}};
  cancellation cancellation_;
  fiber self_[2];
  plain<bool> came_[2][3];
  int leaders_ = 0;
};

}  // namespace

list signal_scenarios() {
  return {
      {"condition", with<condition_scenario>(1, false, mood::calm), 4, 3, 1},
      {"condition_chain", with<condition_scenario>(2, false, mood::calm), 2, 2, 1},
      {"condition_one_leaves", with<condition_scenario>(2, false, mood::cancelled), 2, 1, 1},
      {"condition_all", with<condition_scenario>(2, true, mood::calm), 2, 2, 1},
      {"event", with<event_scenario>(false, mood::calm), 3, 2, 1},
      {"event_disturbed", with<event_scenario>(false, mood::disturbed), 2, 1, 1},
      {"event_reset_at_once", with<event_scenario>(true, mood::calm), 3, 2, 1},
      {"event_one_leaves", with<event_scenario>(true, mood::cancelled), 2, 1, 1},
      {"event_looked_after", with<event_looked_after>(), 3, 3, 1},
      {"latch", with<latch_scenario>(false, mood::calm), 5, 3, 1},
      {"latch_of_others", with<latch_scenario>(true, mood::calm), 2, 1, 1},
      {"latch_disturbed", with<latch_scenario>(false, mood::disturbed), 3, 2, 1},
      {"latch_one_leaves", with<latch_scenario>(false, mood::cancelled), 3, 2, 1},
      {"latch_gone", with<latch_gone>(), 5, 3, 1},
      {"barrier", with<barrier_scenario>(2, false, mood::calm), 2, 2, 1},
      {"barrier_dropped", with<barrier_scenario>(2, true, mood::calm), 2, 2, 1},
      {"barrier_disturbed", with<barrier_scenario>(1, false, mood::disturbed), 3, 2, 1},
      {"barrier_one_leaves", with<barrier_scenario>(1, false, mood::cancelled), 3, 2, 1},
  };
}

}  // namespace explore
