// SPDX-License-Identifier: BSL-1.0
// Where runnable fibers wait: the ring, the LIFO slot, the injection queue.
#include <explore/memory.hpp>
#include "runtime/src/sched/deque.hpp"
#include "runtime/src/sched/injection_queue.hpp"
#include "runtime/src/sched/lifo_slot.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;

struct item {
  plain<int> content{0};  // written before the item is queued, read by whoever gets it
  int seen = 0;

  item& filled() {
    content = 1;
    return *this;
  }
  static void use(item* i) {
    if (i == nullptr) return;
    require(++i->seen == 1, "an entry was taken twice");
    i->content = i->content + 1;
  }
};

template <std::size_t N>
void require_all_used(const item (&items)[N]) {
  for (const item& i : items) {
    require(i.seen != 0, "an entry is lost");
    require(i.seen == 1, "an entry was taken twice");
  }
}

// A scenario with rings, which shed what does not fit to it.
class ring_scenario : public scenario {
 public:
  void put(item* i) { item::use(i); }
  void put(item* const* items, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) item::use(items[i]);
  }

 protected:
  static void steal(deque<item>& from, deque<item>& into) {
    std::uint32_t taken = 0;
    item::use(from.steal(into, taken));
  }
  static void drain(deque<item>& d) {
    while (item* const i = d.pop_old()) ++i->seen;
  }
};

class ring_ends final : public ring_scenario {
 public:
  explicit ring_ends(std::uint16_t begin) : ring_(begin) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thief(first_); }, [this] { thief(second_); }};
  }
  void check() override {
    drain(ring_);
    drain(first_);
    drain(second_);
    require_all_used(items_);
  }

 private:
  void owner() {
    for (int i = 0; i < 3; ++i) ring_.push(&items_[i].filled(), *this);
    item::use(ring_.pop_young());
    item::use(ring_.pop_old());
    item::use(ring_.pop_young());  // the last one: a thief may be faster
    for (int i = 3; i < 6; ++i) ring_.push(&items_[i].filled(), *this);
    item::use(ring_.pop_young());
    item::use(ring_.pop_young());
  }
  void thief(deque<item>& mine) {
    steal(ring_, mine);
    item::use(mine.pop_old());
  }

  deque<item> ring_, first_, second_;
  item items_[6];
};

// A thief takes half, and another takes from the thief what it has just copied.
class ring_chain final : public ring_scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              for (auto& i : items_) ring_.push(&i.filled(), *this);
            },
            [this] { steal(ring_, first_); }, [this] { steal(first_, second_); }};
  }
  void check() override {
    for (auto* d : {&ring_, &first_, &second_}) drain(*d);
    require_all_used(items_);
  }

 private:
  deque<item> ring_, first_, second_;
  item items_[4];
};

// An owner whose ring is being copied out of by a thief takes the rest of it, and then steals itself: what it brings
// home must not overwrite what the thief has claimed and not read yet. (The Promela model found this.)
class ring_busy_thief final : public ring_scenario {
 public:
  ring_busy_thief() {
    for (int i = 0; i < 4; ++i) home_.push(&items_[i], *this);
    for (int i = 4; i < 8; ++i) abroad_.push(&items_[i], *this);
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { steal(home_, thief_); }};
  }
  void check() override {
    for (auto* d : {&home_, &abroad_, &thief_}) drain(*d);
    require_all_used(items_);
  }

 private:
  void owner() {
    while (item* const i = home_.pop_old()) item::use(i);
    steal(abroad_, home_);
  }
  deque<item> home_, abroad_, thief_;
  item items_[8];
};

// The owner overfills its ring, several times round, while thieves take and copy.
class ring_overflows final : public ring_scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thief(); }};
  }
  void check() override {
    drain(ring_);
    drain(mine_);
    require_all_used(items_);
  }

 private:
  void owner() {
    for (auto& i : items_) ring_.push(&i.filled(), *this);
  }
  void thief() {
    steal(ring_, mine_);
    item::use(mine_.pop_old());
    steal(ring_, mine_);
  }
  deque<item> ring_, mine_;
  item items_[7];
};

// D8: a ring of three whose owner knows the head from an RMW, so that it pops the younger half without one.
class ring_of_three : public ring_scenario {
 public:
  explicit ring_of_three(std::uint16_t begin) : ring_(begin) {
    for (int i = 0; i < 4; ++i) ring_.push(&items_[i], *this);
    item::use(ring_.pop_young());
  }
  void check() override {
    for (auto* d : {&ring_, &first_, &second_}) drain(*d);
    for (int i = 0; i < pushed_; ++i) require(items_[i].seen == 1, "an entry is lost, or was taken twice");
  }

 protected:
  void push() { ring_.push(&items_[pushed_++].filled(), *this); }
  void pop_young() { item::use(ring_.pop_young()); }
  void pop_old() { item::use(ring_.pop_old()); }

  deque<item> ring_, first_, second_;

 private:
  item items_[8];
  int pushed_ = 4;
};

// Two thefts in a row beside an owner that pops, pushes and pops again without an RMW. The second thief must not reach what the
// owner has popped with its view from before the first claim.
class ring_two_thefts final : public ring_of_three {
 public:
  using ring_of_three::ring_of_three;
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thieves(); }};
  }

 private:
  void owner() {
    pop_young();
    push();
    pop_young();
    pop_young();
    pop_young();
  }
  void thieves() {
    steal(ring_, first_);
    steal(ring_, second_);
  }
};

// Both ends in turn: each pop of the old end moves the head, so that the next one of the young end has an RMW, and the longest
// begins anew.
class ring_mixed_pops final : public ring_of_three {
 public:
  using ring_of_three::ring_of_three;
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { steal(ring_, first_); }, [this] { steal(ring_, second_); }};
  }

 private:
  void owner() {
    push();
    pop_young();
    pop_young();
    pop_old();
    push();
    push();
    pop_young();
    push();
    pop_young();
    pop_young();
  }
};

// Two entries, and a second thief that sees none, then one: the owner has popped one, pushed, and popped again, all with its view
// from before the first claim. Between the two looks there would have to be an interrupt.
class ring_filled_between_looks final : public ring_of_three {
 public:
  ring_filled_between_looks() : ring_of_three(0) {
    pop_old();
    push();
    pop_young();  // by an RMW; one is left
    push();
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { thieves(); }};
  }

 private:
  void owner() {
    pop_young();
    push();
    pop_young();
  }
  void thieves() {
    steal(ring_, first_);
    steal(ring_, second_);
  }
};

class newest_slot final : public scenario {
 public:
  std::vector<std::function<void()>> threads() override {
    return {[this] { owner(); }, [this] { slot_.open_to_thieves(); }, [this] { item::use(slot_.steal()); }};
  }
  void check() override {
    item::use(slot_.take());
    require_all_used(items_);
  }

 private:
  void owner() {
    item::use(slot_.put(&items_[0].filled()));
    item::use(slot_.put(&items_[1].filled()));
    item::use(slot_.take());
    slot_.close();
    item::use(slot_.put(&items_[2].filled()));
    item::use(slot_.take());
  }

  lifo_slot<item> slot_;
  item items_[3];
};

// Two that put, one alone and one in a batch, two that take.
class injection final : public scenario {
 public:
  injection() { queue_.reserve(4); }
  std::vector<std::function<void()>> threads() override {
    return {[this] { queue_.put(&items_[0].filled()); }, [this] { put_batch(); }, [this] { take(1); },
            [this] { take(3); }};
  }
  void check() override {
    take(4);
    require(queue_.empty() && queue_.size() == 0, "the length is wrong");
    require_all_used(items_);
  }

 private:
  void put_batch() {
    item* batch[] = {&items_[1].filled(), &items_[2].filled(), &items_[3].filled()};
    queue_.put(batch, 3);
  }
  void take(std::uint32_t most) {
    item* out[4] = {};
    const auto n = queue_.take(out, most);
    for (std::uint32_t i = 0; i + 1 < n; ++i) require(out[i + 1] != &items_[1] || out[i] == &items_[0], "out of order");
    for (std::uint32_t i = 0; i < n; ++i) item::use(out[i]);
  }
  injection_queue<item> queue_;
  item items_[4];
};

// A thread outside waits at the soft mark until a worker has made room.
class injection_room final : public scenario {
 public:
  injection_room() {
    queue_.reserve(injection_soft_capacity);
    for (auto& i : items_) queue_.put(&i);
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { spawner(); }, [this] { take(); }, [this] { take(); }};
  }
  void check() override { require(spawned_, "nobody told the one who waits"); }

 private:
  void spawner() {
    queue_.wait_for_capacity();
    require(queue_.size() < injection_soft_capacity, "no room after the wait");
    spawned_ = true;
  }
  void take() {
    item* out = nullptr;
    require(queue_.take(&out, 1) == 1, "nothing to take");
  }
  injection_queue<item> queue_;
  item items_[injection_soft_capacity];
  bool spawned_ = false;
};

}  // namespace

list queue_scenarios() {
  return {
      {"ring_ends", [] { return std::make_unique<ring_ends>(std::uint16_t{0}); }, 3, 2, 1},
      {"ring_ends_at_wrap", [] { return std::make_unique<ring_ends>(std::uint16_t{65'533}); }, 3, 2, 1},
      {"ring_chain", [] { return std::make_unique<ring_chain>(); }, 4, 3, 1},
      {"ring_busy_thief", [] { return std::make_unique<ring_busy_thief>(); }, 4, 3, 1},
      {"ring_overflows", [] { return std::make_unique<ring_overflows>(); }, 4, 3, 1},
      {"ring_two_thefts", [] { return std::make_unique<ring_two_thefts>(std::uint16_t{0}); }, 4, 2, 2},
      {"ring_two_thefts_at_wrap", [] { return std::make_unique<ring_two_thefts>(std::uint16_t{65'533}); }, 4, 2, 2},
      {"ring_mixed_pops", [] { return std::make_unique<ring_mixed_pops>(std::uint16_t{65'532}); }, 3, 2, 1},
      {"ring_filled_between_looks", [] { return std::make_unique<ring_filled_between_looks>(); }, 4, 3, 2},
      {"newest_slot", [] { return std::make_unique<newest_slot>(); }, 5, 3, 2},
      {"injection", [] { return std::make_unique<injection>(); }, 3, 2, 1},
      {"injection_room", [] { return std::make_unique<injection_room>(); }, 4, 3, 1},
  };
}

}  // namespace explore
