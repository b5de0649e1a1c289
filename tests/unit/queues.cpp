// SPDX-License-Identifier: BSL-1.0
// The leaf queues, alone: ring, LIFO slot, injection queue, idle set, pacer.
#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/src/sched/deque.hpp"
#include "runtime/src/sched/idle_set.hpp"
#include "runtime/src/sched/injection_queue.hpp"
#include "runtime/src/sched/lifo_slot.hpp"
#include "runtime/src/sched/pacer.hpp"
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace unit_queues {

using namespace ramie::runtime_internal;
using test::until;

struct item {
  int id = 0;
};

struct vector_overflow {
  std::vector<item*> got;
  int batches = 0;
  void put(item* i) { got.push_back(i); }
  void put(item* const* items, std::uint32_t n) {
    got.insert(got.end(), items, items + n);
    ++batches;
  }
};

struct ring_of_items {
  std::vector<item> items;
  deque<item> ring;
  vector_overflow over;
  explicit ring_of_items(int n) : items(static_cast<std::size_t>(n)) {
    for (int i = 0; i < n; ++i) items[static_cast<std::size_t>(i)].id = i;
  }
  void push(int i) { ring.push(&items[static_cast<std::size_t>(i)], over); }
};

TEST_CASE("the ring gives from both ends", "[unit][deque]") {
  ring_of_items r(4);
  for (int i = 0; i < 4; ++i) r.push(i);
  CHECK(r.ring.pop_old()->id == 0);
  CHECK(r.ring.pop_young()->id == 3);
  CHECK(r.ring.pop_young()->id == 2);
  CHECK(r.ring.pop_old()->id == 1);
  CHECK(r.ring.pop_old() == nullptr);
  CHECK(r.ring.pop_young() == nullptr);
}

TEST_CASE("the ring works across the wrap of its 16-bit indices", "[unit][deque]") {
  ring_of_items r(8);
  for (int round = 0; round < 70'000; ++round) {
    r.push(round % 8);
    auto* const got = round % 2 == 0 ? r.ring.pop_old() : r.ring.pop_young();
    if (got == nullptr || got->id != round % 8) FAIL("lost at round " << round);
  }
  CHECK(r.ring.empty());
}

TEST_CASE("a full ring sheds its older half and the newcomer in one batch", "[unit][deque]") {
  ring_of_items r(257);
  for (int i = 0; i < 257; ++i) r.push(i);
  CHECK(r.over.batches == 1);
  REQUIRE(r.over.got.size() == 129);
  CHECK(r.over.got.front()->id == 0);
  CHECK(r.over.got.back()->id == 256);
  CHECK(r.ring.size() == 128);
  CHECK(r.ring.pop_old()->id == 128);
}

TEST_CASE("a thief takes the older half", "[unit][deque]") {
  ring_of_items r(9);
  deque<item> mine;
  for (int i = 0; i < 9; ++i) r.push(i);
  std::uint32_t taken = 0;
  CHECK(r.ring.steal(mine, taken)->id == 0);
  CHECK(taken == 5);
  CHECK(mine.size() == 4);
  CHECK(r.ring.size() == 4);
  CHECK(mine.pop_old()->id == 1);
  CHECK(r.ring.pop_old()->id == 5);
}

TEST_CASE("threads share a ring without loss or duplicate", "[unit][deque]") {
  constexpr int count = 20'000;
  ring_of_items r(count);
  std::vector<std::atomic<int>> seen(count);
  std::atomic<bool> over{false};
  auto thief = [&] {
    deque<item> mine;
    std::uint32_t taken = 0;
    while (!over.load()) {
      if (auto* first = r.ring.steal(mine, taken)) seen[static_cast<std::size_t>(first->id)]++;
      while (auto* i = mine.pop_old()) seen[static_cast<std::size_t>(i->id)]++;
    }
  };
  std::thread one(thief), two(thief);
  for (int i = 0; i < count; ++i) {
    r.push(i);
    if (i % 3 == 0) {
      if (auto* got = r.ring.pop_young()) seen[static_cast<std::size_t>(got->id)]++;
    }
    if (i % 5 == 0) {
      if (auto* got = r.ring.pop_old()) seen[static_cast<std::size_t>(got->id)]++;
    }
  }
  while (auto* got = r.ring.pop_young()) seen[static_cast<std::size_t>(got->id)]++;
  while (!r.ring.empty()) std::this_thread::yield();
  over = true;
  one.join();
  two.join();
  for (auto* i : r.over.got) seen[static_cast<std::size_t>(i->id)]++;
  int wrong = 0;
  for (auto& s : seen) wrong += s.load() != 1;
  CHECK(wrong == 0);
}

TEST_CASE("the LIFO slot evicts the older and opens only to thieves of a stalled worker", "[unit][lifo]") {
  lifo_slot<item> slot;
  item a, b;
  CHECK(slot.put(&a) == nullptr);
  CHECK(slot.put(&b) == &a);
  CHECK(slot.steal() == nullptr);  // closed
  slot.open_to_thieves();
  CHECK(slot.stealable());
  CHECK(slot.steal() == &b);
  CHECK(slot.take() == nullptr);
  CHECK(slot.put(&a) == nullptr);
  CHECK(slot.take() == &a);  // open, and still the owner's
  slot.close();
  CHECK(slot.put(&b) == nullptr);
  CHECK(slot.steal() == nullptr);
  CHECK(slot.take() == &b);
}

TEST_CASE("the injection queue keeps order across batches", "[unit][injection]") {
  injection_queue<item> q;
  q.reserve(3);
  q.reserve(10);
  std::array<item, 10> items;
  item* pointers[10];
  for (int i = 0; i < 10; ++i) {
    items[static_cast<std::size_t>(i)].id = i;
    pointers[i] = &items[static_cast<std::size_t>(i)];
  }
  q.put(pointers[0]);
  q.put(pointers + 1, 9);
  CHECK(q.size() == 10);
  item* out[10];
  CHECK(q.take(out, 4) == 4);
  q.reserve(100);
  CHECK(q.take(out + 4, 10) == 6);
  CHECK(q.take(out, 1) == 0);
  for (int i = 0; i < 10; ++i) CHECK(out[i]->id == i);
}

TEST_CASE("a worker takes its fair share, from 4 to 64", "[unit][injection]") {
  STATIC_REQUIRE(fair_batch(1, 8) == 4);
  STATIC_REQUIRE(fair_batch(100, 10) == 10);
  STATIC_REQUIRE(fair_batch(1'000'000, 2) == 64);
  STATIC_REQUIRE(fair_batch(10, 0) == 10);
}

TEST_CASE("threads outside wait at the soft mark, and the crossing is counted", "[unit][injection]") {
  injection_queue<item> q;
  q.reserve(injection_soft_capacity);
  std::vector<item> items(injection_soft_capacity);
  for (auto& i : items) q.put(&i);
  CHECK(q.times_over_mark() == 1);
  std::atomic<bool> let_in{false};
  std::thread outside([&] {
    q.wait_for_capacity();
    let_in = true;
  });
  until([&] { return q.waiting_outside() == 1 || let_in.load(); });
  CHECK_FALSE(let_in);
  item* out[1];
  CHECK(q.take(out, 1) == 1);
  outside.join();
  CHECK(let_in);
}

TEST_CASE("the idle set finds the lowest sleeper and counts it as searching", "[unit][idle]") {
  idle_set set(130);
  set.announce_sleep(129, false);
  set.announce_sleep(65, false);
  CHECK(set.load().parked() == 2);
  CHECK(set.load().should_wake());
  CHECK(set.claim_parked() == 65u);
  CHECK(set.load().parked() == 1);
  CHECK(set.load().searching() == 1);
  CHECK_FALSE(set.load().should_wake());  // somebody searches: the chain will go on from there
  CHECK(set.leave_search().searching() == 0);
  CHECK(set.claim_parked() == 129u);
  CHECK(set.claim_parked() == std::nullopt);
}

TEST_CASE("waking without a claim neither underflows nor leaks a searcher", "[unit][idle]") {
  idle_set set(4);
  CHECK(set.try_become_searcher(4));
  set.announce_sleep(1, true);
  CHECK(set.load().searching() == 0);
  CHECK(set.cancel_sleep(1));  // timeout or second thoughts: it counts itself out, as a searcher
  CHECK(set.load().parked() == 0);
  CHECK(set.load().searching() == 1);
  CHECK_FALSE(set.cancel_sleep(1));  // a second time changes nothing
  CHECK(set.load().parked() == 0);
  CHECK(set.load().searching() == 1);
}

TEST_CASE("at most half of the workers search", "[unit][idle]") {
  idle_set set(8);
  CHECK(set.try_become_searcher(4));
  CHECK(set.try_become_searcher(4));
  CHECK_FALSE(set.try_become_searcher(4));
  CHECK(set.leave_search().searching() == 1);
  CHECK(set.leave_search().searching() == 0);  // the last one must look again
}

TEST_CASE("the monitor's mark is taken back by exactly one", "[unit][idle]") {
  idle_set set(1);
  set.set_monitor_asleep();
  CHECK(set.load().monitor_asleep());
  CHECK_FALSE(set.load().nothing_to_do());
  CHECK(set.clear_monitor_asleep());
  CHECK_FALSE(set.clear_monitor_asleep());
}

TEST_CASE("the interval follows its table", "[unit][pace]") {
  STATIC_REQUIRE(interval_for(1'000) == 255);
  STATIC_REQUIRE(interval_for(10'000) == 100);
  STATIC_REQUIRE(interval_for(50'000) == 20);
  STATIC_REQUIRE(interval_for(100'000) == 10);
  STATIC_REQUIRE(interval_for(1'000'000) == 8);
  STATIC_REQUIRE(interval_for(0) == 255);
}

TEST_CASE("a tick is 128 polls and moves the average by a tenth", "[unit][pace]") {
  ramie::platform::virtual_clock clock;
  pacer p;
  p.restart(0, clock.now());
  CHECK(p.interval() == 20);
  CHECK_FALSE(p.tick_ended(127));
  CHECK(p.tick_ended(128));
  clock.advance(std::chrono::microseconds(128 * 150));  // 150 us a poll: 0.9 * 50 + 0.1 * 150 = 60
  p.end_tick(128, clock.now());
  CHECK(p.interval() == 16);
  CHECK_FALSE(p.tick_ended(255));
  CHECK(p.tick_ended(256));
}

TEST_CASE("the injection queue's turn comes every interval", "[unit][pace]") {
  ramie::platform::virtual_clock clock;
  pacer p;
  p.restart(0, clock.now());
  std::vector<int> turns;
  for (std::uint64_t polls = 1; polls <= 100; ++polls) {
    if (p.due(polls) && p.injection_turn(polls)) turns.push_back(static_cast<int>(polls));
  }
  CHECK(turns == std::vector<int>{20, 40, 60, 80, 100});
}

}  // namespace unit_queues
