// SPDX-License-Identifier: BSL-1.0
// Workers that sleep: the idle set, the thread parker, and both together.
#include <explore/memory.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/futex_parker.hpp>
#include "runtime/src/sched/idle_set.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using ramie::platform::futex_parker;
template <class T>
using shared = model_atomic<T>;
constexpr auto relaxed = std::memory_order_relaxed;

// Two workers that look for two entries, sleep when there are none, and are woken by the producers. The queue itself
// orders nothing but its entries: the rest is the handshake of idle_set.hpp, as idle.cpp and worker_pool.hpp do it.
class nobody_sleeps_on_work final : public scenario {
 public:
  nobody_sleeps_on_work() {
    for (int i = 0; i < 2; ++i) idle_.add_worker();
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { worker(0); }, [this] { worker(1); }, [this] { producer(); }, [this] { producer(); }};
  }
  void check() override {
    require(consumed_.load() == 2, "an entry is left");
    require(idle_.load().parked() + idle_.load().searching() <= 2, "counted twice");
  }

 private:
  void worker(std::uint32_t index) {
    bool searching = false;
    while (consumed_.load(relaxed) != 2) {
      if (!searching) searching = idle_.try_become_searcher(2);
      if (take()) {
        found_work(searching);
        searching = false;
        if (consumed_.fetch_add(1, relaxed) == 1) wake_for_the_end();
        continue;
      }
      idle_.announce_sleep(index, searching);  // 1
      searching = true;
      ramie::platform::heavy_fence();  // 2
      const bool needed = queued_.load(relaxed) != 0 || consumed_.load(relaxed) == 2;
      if (needed && idle_.cancel_sleep(index)) continue;
      parker_[index].park();
    }
  }
  void found_work(bool searching) {
    if (!searching) return;
    const auto left = idle_.leave_search();
    if (!left.should_wake()) return;
    left.all_but_one_parked() ? ramie::platform::full_fence() : ramie::platform::heavy_fence();
    if (queued_.load(relaxed) != 0) wake_one();
  }
  void producer() {
    queued_.fetch_add(1, relaxed);
    ramie::platform::full_fence();
    if (idle_.load().should_wake()) wake_one();
  }
  void wake_for_the_end() {
    ramie::platform::light_fence();
    wake_one();
  }
  bool take() {
    int n = queued_.load(relaxed);
    while (n > 0) {
      if (queued_.compare_exchange_strong(n, n - 1, relaxed, relaxed)) return true;
    }
    return false;
  }
  void wake_one() {
    const auto index = idle_.claim_parked();
    if (!index) return;
    require(idle_.load().parked() <= 2 && idle_.load().searching() <= 2, "counted out before it was counted in");
    parker_[*index].unpark();
  }

  idle_set idle_{2};
  shared<int> queued_{0}, consumed_{0};
  futex_parker parker_[2];
};

// Tokens from two threads for one that parks: two that meet are one, what every giver of it did before is seen, and
// there is no other.
class parker_tokens final : public scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { give(0); }, [this] { give(1); }};
  }
  void check() override {}  // that everybody ends is the claim

 private:
  void owner() {
    parker_.park();
    require_seen();
    until([this] { return last_.load(relaxed) == 2; });
    give(2);
    parker_.park();  // a third one, or one that was not merged: in any case one is there
    require_seen();
  }
  void give(int who) {
    done_[who] = 1;
    parker_.unpark();
    given_[who] = true;
    last_.fetch_add(1, relaxed);
  }
  void require_seen() {
    for (int i = 0; i < 3; ++i) {
      if (given_[i]) done_[i] = 2;  // a race if it is not
    }
  }

  futex_parker parker_;
  shared<int> last_{0};
  plain<int> done_[3];
  bool given_[3] = {};  // what the test itself knows
};

// One park, and the memory is gone as soon as it returns, while the giver may still be inside unpark().
class parker_gone final : public scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); },
            [this] {
              done_ = 1;
              parker_->unpark();
            }};
  }
  void check() override { require(done_.get() == 2, "not woken"); }

 private:
  void owner() {
    parker_->park();
    done_ = done_ + 1;
    parker_->~futex_parker();
  }
  alignas(futex_parker) std::byte room_[sizeof(futex_parker)];
  futex_parker* parker_ = new (room_) futex_parker;
  plain<int> done_;
};

}  // namespace

list sleeper_scenarios() {
  return {
      {"nobody_sleeps_on_work", [] { return std::make_unique<nobody_sleeps_on_work>(); }, 3, 2, 1},
      {"parker_tokens", [] { return std::make_unique<parker_tokens>(); }, 4, 3, 2},
      {"parker_gone", [] { return std::make_unique<parker_gone>(); }, 9, 9, 2},
  };
}

}  // namespace explore
