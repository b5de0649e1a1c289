// SPDX-License-Identifier: BSL-1.0
// A fiber's word: waits, claims, wakes, and the references to a frame.
#include <explore/memory.hpp>
#include <explore/model_atomic.hpp>
#include "runtime/src/task/state.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
template <class T>
using shared = model_atomic<T>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

// A fiber that waits once or twice, run by one or two workers. The first wait is claimed by a partner that
// moves an element, and may be cancelled meanwhile, so that the partner comes late and finds the second;
// the second wait has a plain wake and nothing else. The run queue orders what goes through it, no more.
class park_and_wake final : public scenario {
 public:
  park_and_wake(int waits, int workers) : wanted_(waits), workers_(workers) {
    word_.init_to_runnable(0);
    queued_.store(1);
  }
  std::vector<std::function<void()>> threads() override {
    std::vector<std::function<void()>> all{[this] { partner(1); }, [this] { waker(1); }};
    for (int i = 0; i < workers_; ++i) all.push_back([this] { worker(); });
    if (wanted_ == 2) all.push_back([this] { waker(2); });
    return all;
  }
  void check() override {
    require(waits_ == wanted_, "the fiber did not get through its waits");
    require(enqueued_ == wanted_, "not exactly one enqueue per wait");
  }

 private:
  void worker() {
    for (;;) {
      until([this] { return over_.load(relaxed) != 0 || queued_.load(relaxed) != 0; });
      if (over_.load(relaxed) != 0) return;
      if (queued_.exchange(0, acquire) == 0) continue;
      run_fiber();
    }
  }
  void run_fiber() {
    require(!stack_in_use_, "two workers on one stack");
    stack_in_use_ = true;
    word_.runnable_to_running();
    frame_ = frame_ + 1;  // a race if what the last worker did is not seen
    if (waits_ > 0 && claimed_[waits_])
      require(element_[waits_] == waits_, "the fiber runs while its element is being moved");
    if (waits_ == wanted_) return over_.store(1, relaxed);
    ++waits_;
    word_.running_to_parking(static_cast<std::uint16_t>(waits_));
    element_[waits_] = 0;            // its node
    listed_.store(waits_, release);  // published, by the waitable's lock: from here on wakers find it
    stack_in_use_ = false;           // the switch
    if (word_.commit_park() == commit_result::must_enqueue) enqueue();
  }
  void partner(int wait) {
    until([this, wait] { return listed_.load(relaxed) >= wait; });
    if (word_.claim(static_cast<std::uint16_t>(wait)) != claim_result::won) return;
    require(waits_ == wait, "a stale ticket claimed a later wait");
    claimed_[wait] = true;
    step();  // the element is on its way
    element_[wait] = wait;
    if (word_.complete() == complete_result::must_enqueue) enqueue();
  }
  // Nothing to hand over: cancellation, a timer.
  void waker(int wait) {
    until([this, wait] { return listed_.load(relaxed) >= wait; });
    if (word_.wake(static_cast<std::uint16_t>(wait)) == wake_result::must_enqueue) enqueue();
  }
  void enqueue() {
    ++enqueued_;
    require(queued_.exchange(1, release) == 0, "queued twice");
  }

  const int wanted_, workers_;
  fiber_word word_;
  shared<int> queued_{0}, over_{0}, listed_{0};
  plain<int> frame_{0};
  plain<int> element_[3];
  // What the test itself knows.
  bool stack_in_use_ = false;
  int waits_ = 0, enqueued_ = 0;
  bool claimed_[3] = {};
};

// A fiber parks while its scope is cancelled: the two lists of cancel_scope.hpp, as commit_park (runner.hpp) and
// cancel_once (scope.cpp) go through them. One of them must see the other.
class park_meets_cancel final : public scenario {
 public:
  park_meets_cancel() {
    word_.init_to_runnable(0);
    word_.runnable_to_running();
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { parker(); }, [this] { canceller(); }};
  }
  void check() override { require(seen_, "a fiber parks for ever in a scope that is cancelled"); }

 private:
  void parker() {
    for (std::uint16_t ticket = 1; !seen_; ++ticket) {
      const auto accounted = epoch_.load(acquire);
      if (requested_.load(acquire)) break;
      word_.running_to_parking(ticket);
      if (word_.commit_park() != commit_result::must_enqueue) wait_in_park(ticket, accounted);
      (void)queued_.exchange(0, acquire);
      word_.runnable_to_running();
    }
    seen_ = true;
  }
  void wait_in_park(std::uint16_t ticket, std::uint64_t accounted) {
    if (epoch_.load(std::memory_order_seq_cst) != accounted && word_.wake(ticket) == wake_result::must_enqueue) return;
    until([this] { return queued_.load(relaxed) != 0; });
  }
  void canceller() {
    requested_.store(true, release);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    fence(std::memory_order_seq_cst);
    const auto now = word_.load();
    if (word_.wake(now.ticket()) == wake_result::must_enqueue) queued_.store(1, release);
  }

  fiber_word word_;
  shared<std::uint64_t> epoch_{0};
  shared<bool> requested_{false};
  shared<int> queued_{0};
  bool seen_ = false;
};

}  // namespace

list word_scenarios() {
  return {
      {"one_wait_two_workers", [] { return std::make_unique<park_and_wake>(1, 2); }, 3, 2, 1},
      {"two_waits_one_worker", [] { return std::make_unique<park_and_wake>(2, 1); }, 3, 2, 1},
      {"park_meets_cancel", [] { return std::make_unique<park_meets_cancel>(); }, 9, 6, 3},
  };
}

}  // namespace explore
