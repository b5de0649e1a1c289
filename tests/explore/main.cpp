// SPDX-License-Identifier: BSL-1.0
// The lock-free leaves under every interleaving: the real headers, with the model's atomics and a ring of
// four. Exit code 1 and a trail when a scenario fails.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <explore/explorer.hpp>

#include <ramie/runtime/live_count.hpp>
#include <sched/deque.hpp>
#include <sched/idle_set.hpp>
#include <sched/lifo_slot.hpp>

#include "channels.hpp"
#include "fibers.hpp"

namespace {

using namespace ramie::detail;
using explore::require;
using explore::until;
template <class T>
using shared = explore::model_atomic<T>;

// A fiber that waits once or twice, run by one or two workers. The first wait is claimed by a partner that
// moves an element, and may be cancelled meanwhile, so that the partner comes late and finds the second;
// the second wait has a plain wake and nothing else.
class park_and_wake final : public explore::scenario {
 public:
  park_and_wake(int waits, int workers) : wanted_(waits), workers_(workers) {
    word_.initialise(0);
    word_.init_to_runnable();
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
      until([this] { return over_.load() != 0 || queued_.load() != 0; });
      if (over_.load() != 0) return;
      if (queued_.exchange(0) == 0) continue;
      run_fiber();
    }
  }
  void run_fiber() {
    require(!stack_in_use_, "two workers on one stack");
    stack_in_use_ = true;
    word_.runnable_to_running();
    if (waits_ > 0 && claimed_[waits_]) require(moved_[waits_], "the fiber runs while its element is being moved");
    if (waits_ == wanted_) {
      over_.store(1);
      return;
    }
    ++waits_;
    word_.running_to_parking(static_cast<std::uint16_t>(waits_));
    listed_.store(waits_);  // published: from here on wakers find it
    stack_in_use_ = false;  // the switch
    if (word_.commit_park() == commit_result::must_enqueue) enqueue();
  }
  void partner(int wait) {
    until([this, wait] { return listed_.load() >= wait; });
    if (word_.claim(static_cast<std::uint16_t>(wait)) != claim_result::won) return;
    require(waits_ == wait, "a stale ticket claimed a later wait");
    claimed_[wait] = true;
    explore::step();  // the element is on its way
    moved_[wait] = true;
    if (word_.complete() == complete_result::must_enqueue) enqueue();
  }
  // Nothing to hand over: cancellation, a timer.
  void waker(int wait) {
    until([this, wait] { return listed_.load() >= wait; });
    if (word_.wake(static_cast<std::uint16_t>(wait)) == wake_result::must_enqueue) enqueue();
  }
  void enqueue() {
    ++enqueued_;
    require(queued_.exchange(1) == 0, "queued twice");
  }

  const int wanted_, workers_;
  fiber_word word_;
  shared<int> queued_{0}, over_{0}, listed_{0};
  bool stack_in_use_ = false;
  int waits_ = 0, enqueued_ = 0;
  bool claimed_[3] = {}, moved_[3] = {};
};

struct item {
  int seen = 0;
};

class ring_ends final : public explore::scenario {
 public:
  explicit ring_ends(int before) {
    // Move the indices to where a wrap is near.
    item warm;
    for (int i = 0; i < before; ++i) {
      ring_.push(&warm, *this);
      (void)ring_.pop_old();
    }
  }
  void put(item* i) { ++i->seen; }
  void put(item* const* items, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) ++items[i]->seen;
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thief(first_); }, [this] { thief(second_); }};
  }
  void check() override {
    drain(ring_);
    drain(first_);
    drain(second_);
    for (const item& i : items_) {
      require(i.seen != 0, "an entry is lost");
      require(i.seen == 1, "an entry was taken twice");
    }
  }

 private:
  void owner() {
    for (int i = 0; i < 3; ++i) ring_.push(&items_[i], *this);
    use(ring_.pop_young());
    use(ring_.pop_old());
    use(ring_.pop_young());  // the last one: a thief may be faster
    for (int i = 3; i < 6; ++i) ring_.push(&items_[i], *this);
    use(ring_.pop_young());
    use(ring_.pop_young());
  }
  void thief(deque<item>& mine) {
    std::uint32_t taken = 0;
    use(ring_.steal(mine, taken));
  }
  static void use(item* i) {
    if (i != nullptr) require(++i->seen == 1, "an entry was taken twice");
  }
  static void drain(deque<item>& d) {
    while (item* const i = d.pop_old()) ++i->seen;
  }

  deque<item> ring_, first_, second_;
  item items_[6];
};

class newest_slot final : public explore::scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { slot_.open_to_thieves(); }, [this] { use(slot_.steal()); }};
  }
  void check() override {
    use(slot_.take());
    for (const item& i : items_) require(i.seen == 1, "an entry is lost or was taken twice");
  }

 private:
  void owner() {
    use(slot_.put(&items_[0]));
    use(slot_.put(&items_[1]));
    use(slot_.take());
    slot_.close();
    use(slot_.put(&items_[2]));
    use(slot_.take());
  }
  static void use(item* i) {
    if (i != nullptr) require(++i->seen == 1, "an entry was taken twice");
  }

  lifo_slot<item> slot_;
  item items_[3];
};

// Two workers that look for two entries, sleep when there are none, and are woken by the producers.
class nobody_sleeps_on_work final : public explore::scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { worker(0); }, [this] { worker(1); }, [this] { producer(); }, [this] { producer(); }};
  }
  void check() override {
    require(consumed_.load() == 2, "an entry is left");
    require(idle_.look().parked() + idle_.look().searching() <= 2, "counted twice");
  }

 private:
  void worker(std::uint32_t index) {
    bool searching = false;
    while (consumed_.load() != 2) {
      if (!searching) searching = idle_.try_become_searcher(2);
      if (take()) {
        if (searching && idle_.leave_search() && queued_.load() != 0) wake_one();
        searching = false;
        consumed_.fetch_add(1);
        if (consumed_.load() == 2) wake_one();  // the end is news for the other one
        continue;
      }
      idle_.announce_sleep(index, searching);
      searching = true;
      if ((queued_.load() != 0 || consumed_.load() == 2) && idle_.cancel_sleep(index)) continue;
      until([this, index] { return token_[index].load() != 0; });
      token_[index].store(0);
    }
  }
  void producer() {
    queued_.fetch_add(1);
    if (idle_.look().should_wake()) wake_one();
  }
  bool take() {
    int n = queued_.load();
    while (n > 0) {
      if (queued_.compare_exchange_strong(n, n - 1)) return true;
    }
    return false;
  }
  void wake_one() {
    if (const auto index = idle_.claim_parked()) token_[*index].store(1);
  }

  idle_set idle_{2};
  shared<int> queued_{0}, consumed_{0};
  shared<int> token_[2];
};

// An owner joins while children end elsewhere, one of them after it has spawned another, and somebody wakes the owner
// for nothing. The count dies as soon as the join is over.
class join_and_end final : public explore::scenario {
 public:
  explicit join_and_end(int accidents) : accidents_(accidents) {
    live_ = new (room_) live_count;
    live_->spawned_by_owner();
    live_->spawned_by_owner();
    live_->spawned_by_owner();
    live_->ended_in_place();
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { join(); }, [this] { live_->ended_elsewhere(); },
            [this] {
              live_->spawned_by_descendant();
              spawned_.store(1);
              live_->ended_elsewhere();
            },
            [this] {
              until([this] { return spawned_.load() != 0; });
              live_->ended_elsewhere();
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
    joined_ = true;
  }

  const int accidents_;
  alignas(live_count) std::byte room_[sizeof(live_count)];
  live_count* live_;
  fiber owner_;
  shared<int> spawned_{0};
  bool joined_ = false;
};

struct entry {
  const char* name;
  std::function<std::unique_ptr<explore::scenario>()> make;
  unsigned preemptions;
};

const entry scenarios[] = {
    {"one_wait_two_workers", [] { return std::make_unique<park_and_wake>(1, 2); }, 3},
    {"two_waits_one_worker", [] { return std::make_unique<park_and_wake>(2, 1); }, 3},
    {"ring_ends", [] { return std::make_unique<ring_ends>(0); }, 3},
    {"ring_ends_at_wrap", [] { return std::make_unique<ring_ends>(65'533); }, 1},
    {"newest_slot", [] { return std::make_unique<newest_slot>(); }, 5},
    {"nobody_sleeps_on_work", [] { return std::make_unique<nobody_sleeps_on_work>(); }, 3},
    {"join_and_end", [] { return std::make_unique<join_and_end>(0); }, 3},
    {"join_woken_by_accident", [] { return std::make_unique<join_and_end>(1); }, 3},
    {"granted_lock", explore::granted_lock, 3},
    {"channel_meets_close", explore::channel_meets_close, 3},
    {"channel_meeting", explore::channel_meeting, 3},
    {"channel_moves_up", explore::channel_moves_up, 3},
    {"channel_makes_room", explore::channel_makes_room, 2},
    {"channel_sender_disturbed", explore::channel_sender_disturbed, 2},
    {"channel_receiver_disturbed", explore::channel_receiver_disturbed, 2},
};

}  // namespace

// No argument: all scenarios. --list: their names. Else only those named. RAMIE_TEST_SIZE=large: one more preemption
// each.
int main(int argc, char** argv) {
  int failed = 0;
  const char* const size = std::getenv("RAMIE_TEST_SIZE");
  const unsigned extra = size != nullptr && std::strcmp(size, "large") == 0 ? 1 : 0;
  const bool list = argc > 1 && std::strcmp(argv[1], "--list") == 0;
  for (const entry& e : scenarios) {
    if (list) std::puts(e.name);
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], e.name) == 0;
    if (!wanted) continue;
    const auto r = explore::run(e.make, {e.preemptions + extra, 200'000'000});
    if (r.failure.empty()) {
      std::printf("%-24s %9llu interleavings, %u preemptions%s: holds\n", e.name,
                  static_cast<unsigned long long>(r.executions), e.preemptions + extra,
                  r.exhausted ? ", exhausted" : "");
    } else {
      std::printf("%-24s %9llu interleavings: %s (trail %s)\n", e.name, static_cast<unsigned long long>(r.executions),
                  r.failure.c_str(), r.trail.substr(0, 200).c_str());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
