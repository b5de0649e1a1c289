// SPDX-License-Identifier: BSL-1.0
// The timer wheel and the heap of exact timers against a sorted map.
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <ramie/runtime/timer_heap.hpp>
#include <ramie/runtime/timer_wheel.hpp>

#include <support/seeds.hpp>
#include <support/test.hpp>

namespace unit_timers {

using namespace ramie::runtime_internal;

namespace {

constexpr std::uint64_t whole_wheel = std::uint64_t{1} << (timer_wheel::slot_bits * timer_wheel::levels);

// All that is due, in the order of their ticks if they are at different ones.
std::vector<timer_node*> due(timer_wheel& wheel, std::uint64_t now) {
  std::vector<timer_node*> found;
  while (timer_node* const node = wheel.take_due(now)) found.push_back(node);
  return found;
}

// Distances that a program might ask for, and some that only a tester would.
std::uint64_t distance(test::dice& random) {
  switch (random() % 8) {
    case 0: return random() % 2;
    case 1: return random() % 64;
    case 2: return random() % 4096;
    case 3: return 64 * (random() % 70);  // the edges of slots
    case 4: return (std::uint64_t{1} << (6 * (random() % 6))) - 1 + random() % 3;
    case 5: return random() % (whole_wheel / 64);
    case 6: return random() % (3 * whole_wheel);
    default: return random() % 1000;
  }
}

struct timer : timer_node {
  std::multimap<std::uint64_t, timer*>::iterator entry;
};

// Inserts, cancels and moves time at random; every timer must come at its tick or at the first look after it, once.
class rivals {
 public:
  rivals(std::uint64_t seed, std::uint64_t start) : random_(seed), wheel_(start), now_(start), timers_(512) {
    for (auto& t : timers_) free_.push_back(&t);
  }
  void step() {
    switch (random_() % 4) {
      case 0:
      case 1: return insert();
      case 2: return cancel();
      default: return move();
    }
  }
  [[nodiscard]] bool agree() const { return agree_; }

 private:
  void insert() {
    if (free_.empty()) return;
    timer& t = *free_.back();
    free_.pop_back();
    const bool past = random_() % 32 == 0;
    const auto tick = past ? now_ - std::min<std::uint64_t>(now_, random_() % 100) : now_ + distance(random_);
    const auto before = wheel_.next(), its = wheel_.insert(t, tick);
    agree_ = agree_ && wheel_.next() == std::min(before, its);
    t.entry = sorted_.emplace(tick, &t);
  }
  void cancel() {
    if (sorted_.empty()) return;
    auto at = sorted_.lower_bound(now_ + distance(random_));
    if (at == sorted_.end()) at = sorted_.begin();
    timer& t = *at->second;
    wheel_.remove(t);
    forget(t);
  }
  void move() {
    const auto promised = wheel_.next();
    agree_ = agree_ && promised <= (sorted_.empty() ? timer_wheel::never : std::max(now_, sorted_.begin()->first));
    const bool exactly = promised != timer_wheel::never && random_() % 2 == 0;
    now_ = std::max(now_, exactly ? promised : now_ + distance(random_));
    for (timer_node* const node : due(wheel_, now_)) {
      auto& t = static_cast<timer&>(*node);
      agree_ = agree_ && !t.listed() && t.entry->first <= now_;  // not early
      forget(t);
    }
    agree_ = agree_ && (sorted_.empty() || sorted_.begin()->first > now_);  // not late
    agree_ = agree_ && wheel_.size() == sorted_.size() && wheel_.now() == now_;
  }
  void forget(timer& t) {
    sorted_.erase(t.entry);
    free_.push_back(&t);
  }

  test::dice random_;
  timer_wheel wheel_;
  std::uint64_t now_;
  std::vector<timer> timers_;
  std::vector<timer*> free_;
  std::multimap<std::uint64_t, timer*> sorted_;
  bool agree_ = true;
};

}  // namespace

TEST_CASE("a timer wheel hands out every timer at its tick, whatever happens around it", "[unit][timers]") {
  const std::uint64_t starts[] = {0, 63, 4095, whole_wheel - 5, 7 * whole_wheel - 1, 1'700'000'000'000};
  for (const auto start : starts) {
    for (std::uint64_t seed = 1; seed <= (test::large() ? 40u : 4u); ++seed) {
      rivals both(seed, start);
      for (int i = 0; i < 100'000 && both.agree(); ++i) both.step();
      INFO("start " << start << ", seed " << seed);
      REQUIRE(both.agree());
    }
  }
}

TEST_CASE("a timer wheel knows the next tick exactly within 64 ticks, and never too late", "[unit][timers]") {
  timer_wheel wheel(100);
  CHECK(wheel.next() == timer_wheel::never);
  CHECK(wheel.empty());
  timer_node near, slot, far, beyond, gone;
  wheel.insert(beyond, 100 + 2 * whole_wheel);
  CHECK(wheel.next() == whole_wheel);  // when the far ones are sorted in
  wheel.insert(far, 100 + 64 * 64);
  CHECK(wheel.next() == 4096);
  wheel.insert(slot, 200);
  CHECK(wheel.next() == 192);  // its slot of 64
  wheel.insert(near, 101);
  CHECK(wheel.next() == 101);
  wheel.insert(gone, 99);
  CHECK(wheel.next() == 100);  // at once
  CHECK(due(wheel, 100) == std::vector<timer_node*>{&gone});
  CHECK(due(wheel, 101) == std::vector<timer_node*>{&near});
  CHECK(due(wheel, 199).empty());
  CHECK(wheel.next() == 200);
  CHECK(due(wheel, 5'000'000'000) == std::vector<timer_node*>{&slot, &far, &beyond});
  CHECK(wheel.empty());
}

TEST_CASE("timers beyond the wheel's reach are sorted in when their time comes near", "[unit][timers]") {
  timer_wheel wheel(0);
  timer_node node;
  const auto when = 5 * whole_wheel + 17;
  wheel.insert(node, when);
  for (int looks = 0; wheel.next() < when; ++looks) {
    REQUIRE(looks < 12);
    CHECK(due(wheel, wheel.next()).empty());
  }
  CHECK(due(wheel, when - 1).empty());
  CHECK(due(wheel, when) == std::vector<timer_node*>{&node});
}

TEST_CASE("a clock that jumps far ahead makes all timers due at once", "[unit][timers]") {
  timer_wheel wheel(0);
  std::vector<timer_node> nodes(1000);
  for (std::size_t i = 0; i < nodes.size(); ++i) wheel.insert(nodes[i], i * i * i);
  CHECK(due(wheel, std::uint64_t{1} << 40).size() == nodes.size());
}

TEST_CASE("exact timers come in their order, whichever were removed", "[unit][timers]") {
  using time_point = std::chrono::steady_clock::time_point;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    test::dice random(seed);
    timer_heap heap;
    std::vector<timer_node> nodes(300);
    std::multimap<time_point, timer_node*> sorted;
    bool agree = true;
    for (int i = 0; i < 20'000; ++i) {
      timer_node& node = nodes[random() % nodes.size()];
      if (node.listed()) {
        timer_node& victim = random() % 2 == 0 ? node : *heap.first();
        heap.remove(victim);
        const auto [first, last] = sorted.equal_range(victim.when);
        for (auto at = first; at != last; ++at) {
          if (at->second != &victim) continue;
          sorted.erase(at);
          break;
        }
      } else {
        node.when = time_point(std::chrono::nanoseconds(random() % 1000));
        heap.insert(node);
        sorted.emplace(node.when, &node);
      }
      agree = agree && heap.empty() == sorted.empty();
      agree = agree && (sorted.empty() || heap.first()->when == sorted.begin()->first);
    }
    REQUIRE(agree);
  }
}

}  // namespace unit_timers
