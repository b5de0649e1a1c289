// SPDX-License-Identifier: BSL-1.0
// Every counter of runtime::stats(): what it counts happens a known number of times, and it is told as that, by its worker
// and in the total. Programs on one worker say what becomes of all counters; the others are driven by hand, without
// threads. What the monitor counts is in worker_states.cpp, the pool of blocking() in blocking_pool.cpp.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/thread_meter.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/finally.hpp>
#include <support/pending_read.hpp>
#include <support/reports.hpp>
#include <support/threadless_runtime.hpp>
#include <support/test.hpp>

namespace conformance_stats {

namespace faults = ramie::platform::faults;
using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using ramie::nursery;
using ramie::worker_stats;
using ramie::platform::fault;
using test::threadless_runtime;
using test::with_workers;

// What is told, and where a worker counts it.
struct counter {
  const char* name;
  std::uint64_t worker_stats::*told;
  counters::count counters::*counted;
  counters::count counters::*besides = nullptr;
};
constexpr counter all_counters[] = {
    {"spawned", &worker_stats::spawned, &counters::spawned},
    {"started", &worker_stats::started, &counters::started},
    {"finished_in_place", &worker_stats::finished_in_place, &counters::finished_in_place},
    {"adopted", &worker_stats::adopted, &counters::adopted},
    {"discarded", &worker_stats::discarded, &counters::discarded},
    {"switches", &worker_stats::switches, &counters::switches, &counters::hand_offs},
    {"hand_offs", &worker_stats::hand_offs, &counters::hand_offs},
    {"polls", &worker_stats::polls, &counters::polls},
    {"parks", &worker_stats::parks, &counters::parks},
    {"enqueued", &worker_stats::enqueued, &counters::enqueued, &counters::spawned},
    {"lifo_hits", &worker_stats::lifo_hits, &counters::lifo_hits},
    {"batch_fetches", &worker_stats::batch_fetches, &counters::batch_fetches},
    {"overflows", &worker_stats::overflows, &counters::overflows},
    {"steals", &worker_stats::steals, &counters::steals},
    {"stolen", &worker_stats::stolen, &counters::stolen},
    {"migrations", &worker_stats::migrations, &counters::migrations},
    {"times_parked", &worker_stats::times_parked, &counters::times_parked},
    {"spins", &worker_stats::spins, &counters::spins},
    {"naps", &worker_stats::naps, &counters::naps},
    {"retreats", &worker_stats::retreats, &counters::retreats},
    {"withdrawals", &worker_stats::withdrawals, &counters::withdrawals},
    {"cancel_redelivered", &worker_stats::cancel_redelivered, &counters::cancel_redelivered},
};
static_assert(sizeof(worker_stats) == std::size(all_counters) * sizeof(std::uint64_t),
              "a new counter belongs in this list, and needs a test below");

TEST_CASE("each counter of a worker is told as itself, and those of all workers are summed", "[conformance][stats]") {
  threadless_runtime s(3);
  std::uint64_t next = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    for (const counter& c : all_counters) (s.w(i).count.*c.counted).set(next += i + 3);
  }
  const auto seen = s.runtime().stats();
  REQUIRE(seen.workers.size() == 3);
  for (const counter& c : all_counters) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto besides = c.besides != nullptr ? (s.w(i).count.*c.besides).get() : 0;
      INFO(c.name << " of worker " << i);
      CHECK(seen.workers[i].*c.told == (s.w(i).count.*c.counted).get() + besides);
      sum += seen.workers[i].*c.told;
    }
    INFO(c.name << " in total");
    CHECK(seen.total.*c.told == sum);
  }
}

// The counters that have moved, and by how much, in the order of stats.hpp.
std::string difference(const worker_stats& before, const worker_stats& after) {
  std::string moved;
  for (const counter& c : all_counters) {
    if (after.*c.told == before.*c.told) continue;
    moved += (moved.empty() ? "" : ", ") + (c.name + (" " + std::to_string(after.*c.told - before.*c.told)));
  }
  return moved;
}

// What body() moves, a root fiber on a worker that has done nothing else before.
template <class Body>
std::string counted(Body body) {
  ramie::runtime rt(with_workers(1));
  std::string moved;
  rt.run([&] {
    const auto before = rt.stats();
    body();
    const auto after = rt.stats();
    moved = difference(before.total, after.total);
    if (moved != difference(before.workers[0], after.workers[0])) moved += "; not what its worker tells";
  });
  return moved;
}

TEST_CASE("spawns, starts and ends in place are counted", "[conformance][stats]") {
  const auto family = [] {
    nursery n;
    for (int i = 0; i < 5; ++i) n.spawn([] {});
    n.join();
  };
  const std::string five = "spawned 5, started 5, finished_in_place 5, polls 5, enqueued 5";
  CHECK(counted(family) == five);
  CHECK(counted([&] {
          ramie::this_fiber::set_name("what such a fiber spawns takes another way");
          family();
        }) == five);
}

TEST_CASE("fibers that end without running are counted", "[conformance][stats]") {
  SECTION("cancelled before they start") {
    CHECK(counted([] {
            nursery n;
            for (int i = 0; i < 4; ++i) n.spawn([] {});
            n.cancel();
            n.join();
          }) == "spawned 4, finished_in_place 4, discarded 4, polls 4, enqueued 4");
  }
  SECTION("without a stack") {
    const test::finally all_well([] { faults::plan_for(fault::stack_mapping, 0, 0); });
    bool told = false;
    const auto moved = counted([&] {
      nursery n;
      faults::plan_for(fault::stack_mapping, 1, faults::for_good);
      n.spawn(ramie::spawn_options{.stack_size = 32 << 20}, [] {});  // more than the joiner has
      try {
        n.join();
      } catch (const ramie::stack_exhausted&) {
        told = true;
      }
    });
    CHECK(told);
    // The joiner waits, for the child that can't start, and goes on when that has ended.
    CHECK(moved == "spawned 1, adopted 1, discarded 1, switches 2, polls 2, parks 1, enqueued 2, lifo_hits 1");
  }
}

// Root and child take turns: four yields and three, and each of them is polled after each. The root keeps its stack when
// it first leaves it, and so does the child. Straight from one to the other they go unless the child has yet to start, or
// has ended.
TEST_CASE("yields, adopted stacks and hand-offs are counted", "[conformance][stats]") {
  CHECK(counted([] {
          nursery n;
          n.spawn([] {
            for (int i = 0; i < 3; ++i) ramie::yield();
          });
          for (int i = 0; i < 4; ++i) ramie::yield();
        }) == "spawned 1, started 1, adopted 2, switches 8, hand_offs 6, polls 8, enqueued 8");
}

// Three children park, and then the root, which they wake in the end: with its yield, and the spawns, that makes eight.
TEST_CASE("parks and wakes are counted", "[conformance][stats]") {
  CHECK(counted([] {
          gate door;
          nursery n;
          for (int i = 0; i < 3; ++i) n.spawn([&door] { test::wait_at(door); });
          ramie::yield();
          door.open();
          n.join();
        }) == "spawned 3, started 3, adopted 4, switches 8, hand_offs 2, polls 8, parks 4, enqueued 8, lifo_hits 2");
}

// Pressure is what was made runnable less what was polled: nothing, when all but the asker have ended (E5). By each way
// into the queues and out of them.
TEST_CASE("what is made runnable is polled, once", "[conformance][stats]") {
  ramie::runtime rt(with_workers(1));
  std::vector<std::int64_t> left;
  rt.run([&] {
    const auto look = [&] { left.push_back(rt.stats().pressure.current); };
    const auto empty = [] {};
    // A join that yields now and then to strangers: with room in the ring and without, to old ones and to young ones.
    for (const auto& [children, young] : {std::pair{100, 0}, std::pair{1'000, 0}, std::pair{1'000, 10}}) {
      test::fiber_group strangers(rt);
      for (int i = 0; i < children / 3; ++i) strangers.spawn(empty);
      nursery n;
      for (int i = 0; i < children; ++i) n.spawn(empty);
      for (int i = 0; i < young; ++i) strangers.spawn([] { ramie::yield(); });
      n.join();
    }
    look();
    {  // what was spawned last goes first
      nursery n;
      ramie::channel<int> c(0);
      for (int i = 0; i < 100; ++i) {
        auto child = n.spawn([&] { c.send(i); });
        (void)c.recv();
        child.get();
        n.spawn(empty).get();
      }
      n.join();
    }
    look();
    {  // a budget that is used up
      nursery n;
      ramie::channel<int> c(1);
      n.spawn([] {
        for (int i = 0; i < 10; ++i) ramie::yield();
      });
      for (int i = 0; i < 1'000; ++i) {
        c.send(i);
        (void)c.recv();
      }
      n.join();
    }
    look();
    for (int i = 0; i < 10; ++i) {
      ramie::channel<int> c(0);
      std::thread outside([&] { c.send(1); });
      (void)c.recv();
      outside.join();
    }
    look();
  });
  CHECK(left == std::vector<std::int64_t>(4, 0));
  CHECK(rt.stats().pressure.current == 0);
}

// A fiber that goes on after `cancelled`, three times.
TEST_CASE("a cancellation that is delivered again is counted", "[conformance][stats]") {
  const test::reports quiet;
  ramie::runtime rt(with_workers(1));
  rt.run([] {
    nursery n;
    n.spawn([] {
      ramie::yield();
      for (int i = 0; i < 4; ++i) {
        try {
          ramie::yield();
        } catch (const ramie::cancelled&) {
        }
      }
    });
    ramie::yield();
    n.cancel();
    n.join();
  });
  CHECK(rt.stats().total.cancel_redelivered == 3);
  CHECK(rt.stats().workers[0].cancel_redelivered == 3);
}

// It sleeps whenever its only fiber waits, and is woken from outside when it has.
TEST_CASE("a worker's sleeps are counted", "[conformance][stats]") {
  ramie::runtime rt(with_workers(1));
  ramie::channel<int> bell(0);
  constexpr int nights = 20;
  std::uint64_t before = 0, after = 0;
  const auto sleeps = [&rt] { return rt.stats().total.times_parked; };
  std::atomic<bool> begun{false};
  std::thread outside([&] {
    test::until([&] { return begun.load(); });
    for (std::uint64_t i = 1; i <= nights; ++i) {
      ramie::testing::wait_all_blocked(rt);
      test::until([&] { return sleeps() == before + i; });  // it counts when it has announced itself
      bell.send(1);
    }
  });
  rt.run([&] {
    test::until([&] { return !test::parts::somebody_pushes(scheduler_of(rt).queues); });  // or its signal wakes the worker later
    before = sleeps();
    begun = true;
    for (int i = 0; i < nights; ++i) (void)bell.recv();
    after = sleeps();
  });
  outside.join();
  CHECK(after - before == nights);
  CHECK(rt.stats().workers[0].times_parked >= after);
}

// By hand -------------------------------------------------------------------------------------------

TEST_CASE("thefts and what they took are counted", "[conformance][stats][stealing]") {
  threadless_runtime s(3);
  for (std::size_t i = 1; i < 3; ++i) s.w(i).life.state.store(worker_state::active);
  for (std::size_t i = 0; i < 7; ++i) s.push(s.fibers[i], 1);
  s.w(0).dispatch.searching.set(true);
  CHECK(s.sched().dispatch.next(s.w(0)) == &s.fibers[0]);  // and the three behind it: half of them, rounded up
  CHECK(s.w(0).queue.ring.size() == 3);
  auto seen = s.runtime().stats();
  CHECK(seen.workers[0].steals == 1);
  CHECK(seen.workers[0].stolen == 4);
  CHECK(seen.workers[0].polls == 1);
  // The newest of a stalled worker.
  while (s.w(0).queue.ring.pop_old() != nullptr) {
  }
  while (s.w(1).queue.ring.pop_old() != nullptr) {
  }
  (void)s.w(2).queue.newest.put(&s.fibers[9]);
  s.w(2).queue.newest.open_to_thieves();
  s.w(0).dispatch.searching.set(true);
  CHECK(s.sched().dispatch.next(s.w(0)) == &s.fibers[9]);
  seen = s.runtime().stats();
  CHECK(seen.workers[0].steals == 2);
  CHECK(seen.workers[0].stolen == 5);
  CHECK(seen.workers[0].polls == 2);
  CHECK(seen.total.steals == 2);
  CHECK(seen.total.stolen == 5);
}

TEST_CASE("wakes, polls, turns of the slot and visits to the injection queue are counted", "[conformance][stats]") {
  threadless_runtime s;
  const auto told = [&, before = s.runtime().stats().total] { return difference(before, s.runtime().stats().total); };
  auto& sched = s.sched();
  run_queues::push_woken(s.w(), s.fibers[0]);
  run_queues::push_woken(s.w(), s.fibers[1]);  // the first one is displaced, to the ring
  CHECK(told() == "enqueued 2");
  CHECK(dispatcher::next_local(s.w()) == &s.fibers[1]);
  CHECK(told() == "polls 1, enqueued 2, lifo_hits 1");
  CHECK(dispatcher::next_local(s.w()) == &s.fibers[0]);
  CHECK(told() == "polls 2, enqueued 2, lifo_hits 1");
  for (std::size_t i = 2; i < 5; ++i) sched.queues.push_from_outside(sched.pool, s.fibers[i]);
  CHECK(s.runtime().stats().enqueued_outside == 3);
  for (std::size_t i = 2; i < 5; ++i) CHECK(dispatcher::next_local(s.w()) == &s.fibers[i]);  // all of them at once
  CHECK(told() == "polls 5, enqueued 2, lifo_hits 1, batch_fetches 1");
  CHECK(dispatcher::next_local(s.w()) == nullptr);
  CHECK(told() == "polls 5, enqueued 2, lifo_hits 1, batch_fetches 1");
  run_queues::push_yielded_locally(s.w(), s.fibers[5]);
  run_queues::push_yielded_locally(s.w(), s.fibers[6]);
  CHECK(told() == "polls 5, enqueued 4, lifo_hits 1, batch_fetches 1");
  set_this_worker(&s.w());
  give_back(s.fibers[7]);  // by a join that has taken a stranger
  set_this_worker(nullptr);
  CHECK(told() == "polls 5, enqueued 5, lifo_hits 1, batch_fetches 1");
  CHECK(s.runtime().stats().pressure.current == 3);
  while (dispatcher::next_local(s.w()) != nullptr) {
  }
  CHECK(s.runtime().stats().pressure.current == 0);
}

TEST_CASE("a full ring that sheds is counted once", "[conformance][stats][queues]") {
  threadless_runtime s;
  std::vector<fiber> many(ring_capacity + overflow_batch + 2);
  s.sched().queues.reserve(many.size());
  std::vector<std::uint64_t> told;
  for (std::size_t i = 0; i < many.size(); ++i) {
    s.push(many[i]);
    if (i + 1 >= ring_capacity) told.push_back(s.runtime().stats().total.overflows);
  }
  // Full; then half of it and the newcomer leave; then it fills again.
  std::vector<std::uint64_t> expected(overflow_batch + 3, 1);
  expected.front() = 0;
  expected.back() = 2;
  CHECK(told == expected);
  CHECK(s.runtime().stats().workers[0].overflows == 2);
  while (s.w().queue.ring.pop_old() != nullptr) {
  }
}

// A worker by hand that will find nothing before somebody has seen it asleep, or what else is asked for.
template <class Condition>
const fiber* next_after(threadless_runtime& s, Condition holds) {
  std::thread helper([&] {
    test::until(holds);
    test::injection(s.sched()).put(as_entry(s.fibers[0]));
    s.w().unpark();
  });
  const fiber* const found = s.sched().dispatch.next(s.w());
  helper.join();
  return found;
}

TEST_CASE("a nap is counted", "[conformance][stats]") {
  threadless_runtime s;
  test::live(s.sched()).store(1);
  s.w().dispatch.searching.set(true);
  s.w().dispatch.stealing.on_steal(stolen_before_judging,
                                   ramie::platform::steady_clock::instance().now() + 1h);  // no time at all, for each
  CHECK(next_after(s, [&] { return s.w().life.state.load() == worker_state::sleep; }) == &s.fibers[0]);
  CHECK(s.runtime().stats().total.naps == 1);
  CHECK(s.runtime().stats().workers[0].naps == 1);
}

TEST_CASE("a worker that has retreated shows until it is back", "[conformance][stats][retreat]") {
  threadless_runtime s(2);
  const auto now = ramie::platform::steady_clock::instance().now();
  const auto out = test::parts::suspensions(s.sched().dispatch).request(2, 1, now);
  REQUIRE(out);
  CHECK(s.runtime().stats().retreated_workers == 1);
  test::parts::suspensions(s.sched().dispatch).end(*out, now);
  CHECK(s.runtime().stats().retreated_workers == 0);
}

TEST_CASE("a retreat is counted", "[conformance][stats][retreat]") {
  if (ramie::platform::thread_meter().read().times == 0) LEFT_OUT("this system does not tell");
  threadless_runtime s(2);
  test::live(s.sched()).store(2);
  s.w().dispatch.searching.set(true);
  REQUIRE(s.sched().io.prepare(s.w(), timekeeper::never) == 0);
  test::pending_read under_way(*s.w().io.backend());
  // At its next look, which is the next thing it does, it has run for a second and waited for an hour.
  (void)s.w().dispatch.processor.measure({-1s, -1h, 0}, ramie::platform::steady_clock::instance().now() + 1h);
  for (unsigned i = 1; i < turns_per_crowding_measurement; ++i) (void)s.w().dispatch.processor.due();
  CHECK(next_after(s, [&] { return s.runtime().stats().total.retreats != 0; }) == &s.fibers[0]);
  CHECK(s.runtime().stats().retreated_workers == 0);
  CHECK(s.runtime().stats().total.retreats == 1);
  CHECK(s.runtime().stats().workers[0].retreats == 1);
  under_way.finish();
}

// The pools ------------------------------------------------------------------------------------------

TEST_CASE("workers, stacks and frames are told", "[conformance][stats]") {
  constexpr int fibers = 100;
  ramie::options o;
  o.workers = 3;
  o.elastic = false;
  ramie::runtime rt(o);
  auto seen = rt.stats();
  CHECK(seen.configured_workers == 3);
  CHECK(seen.workers.size() == 3);
  CHECK(seen.live_workers + seen.stacks_in_use + seen.stack_slots + seen.frames_made == 0);
  rt.run([&] {
    test::until([&] { return !test::parts::somebody_pushes(scheduler_of(rt).queues); });  // who may be starting a worker
    test::runtime_internal::gate door;
    std::atomic<int> here{0};
    nursery n;
    for (int i = 0; i < 3; ++i) {  // each on a worker of its own
      n.spawn([&] {
        here.fetch_add(1);
        test::until([&] { return here.load() >= 3; });
      });
    }
    test::fiber_group c(rt);
    for (int i = 0; i < fibers; ++i) {
      c.spawn([&] {
        here.fetch_add(1);
        test::wait_at(door);
      });
    }
    while (here.load() != fibers + 3) ramie::yield();
    ramie::testing::wait_all_blocked();
    seen = rt.stats();
    door.open();
    c.join();
    n.join();
  });
  CHECK(seen.live_workers == 3);
  CHECK(seen.stacks_in_use > fibers);
  CHECK(seen.stacks_in_use <= fibers + 2 + 3 * stack_cache_limit);
  CHECK(seen.stack_slots >= seen.stacks_in_use);
  CHECK(seen.frames_made == frames_per_slab);
  const auto after = rt.stats();
  CHECK(after.stacks_in_use < fibers);
  CHECK(after.stack_slots == seen.stack_slots);
}

}  // namespace conformance_stats
