// SPDX-License-Identifier: BSL-1.0
// Where runnable fibers are queued and in which order they run: Q5, Q7, Q11, Q12, Q18. By hand: no worker has a thread.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <thread>
#include <vector>

#include <ramie/platform/fatal.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/budget.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/threadless_runtime.hpp>
#include <support/test.hpp>

namespace conformance_run_queues {

using namespace ramie::runtime_internal;
using test::dies_saying;
using test::threadless_runtime;
using test::with_workers;

// A worker with a few entries in its ring, and who runs next.
struct busy_worker : threadless_runtime {
  explicit busy_worker(std::size_t queued) {
    for (std::size_t i = 0; i < queued; ++i) push(fibers[i]);
  }
  void wake(std::size_t i) { run_queues::push_woken(w(), fibers[i]); }
  // The number of the next one, or -1.
  int next() {
    const fiber* const f = dispatcher::next_local(w());
    return f != nullptr ? static_cast<int>(f - fibers.data()) : -1;
  }
  std::vector<int> all() {
    std::vector<int> order;
    for (int i = next(); i >= 0; i = next()) order.push_back(i);
    return order;
  }
};
using order = std::vector<int>;

// Q5
TEST_CASE("a woken fiber goes to the slot, a spawned one to the young end, one from outside to the injection queue",
          "[conformance][queues]") {
  busy_worker b(2);
  b.wake(5);
  CHECK_FALSE(b.w().queue.newest.empty());
  CHECK(b.w().queue.ring.size() == 2);
  b.wake(6);  // the older one is displaced, to the young end
  CHECK(b.w().queue.ring.peek_young() == as_entry(b.fibers[5]));
  run_queues::push_spawned(b.w(), b.fibers[7]);
  CHECK(b.w().queue.ring.peek_young() == as_entry(b.fibers[7]));
  b.sched().queues.push_from_outside(b.sched().pool, b.fibers[8]);
  CHECK(test::injection(b.sched()).size() == 1);
  CHECK(b.all() == order{6, 0, 1, 5, 7, 8});
  CHECK(b.sched().pressure() == 2 + 1 - 6);  // woken, from outside, polled; by hand nobody has counted the others
}

// Q7
TEST_CASE("the slot goes first three times in a row, then the ring's oldest", "[conformance][queues]") {
  busy_worker b(3);
  order seen;
  for (std::size_t woken = 3; woken < 10; ++woken) {  // whoever runs wakes one more
    b.wake(woken);
    seen.push_back(b.next());
  }
  // The fourth goes to the ring's young end and the count begins anew with the ring's oldest.
  CHECK(seen == order{3, 4, 5, 0, 7, 8, 9});
  CHECK(b.all() == order{1, 2, 6});
  CHECK(b.w().count.lifo_hits.get() == 6);
}

TEST_CASE("under a policy no task goes to the ring past it", "[conformance][queues]") {
  ramie::options o;
  o.workers = 1;
  o.chaos = ramie::chaos_mode{1};
  ramie::runtime rt(o);
  worker& w = *scheduler_of(rt).pool.workers()[0];
  REQUIRE(w.policy != nullptr);
  fiber before;
  fiber_record task;
  w.queue.ring.push(as_entry(before), w.queue.overflow);  // the owner knows now that there is room
  REQUIRE(w.queue.ring.pop_young() == as_entry(before));
  CHECK_FALSE(run_queues::try_push_task(w, task));
  CHECK(w.queue.ring.empty());
}

TEST_CASE("while the ring is empty the slot goes first as often as it likes", "[conformance][queues]") {
  busy_worker b(0);
  for (std::size_t woken = 0; woken < 10; ++woken) {
    b.wake(woken);
    CHECK(b.next() == static_cast<int>(woken));
  }
  CHECK(b.w().count.lifo_hits.get() == 10);
  CHECK(b.next() == -1);
}

TEST_CASE("a slot that has had its turns is flushed to the ring's young end", "[conformance][queues]") {
  busy_worker b(2);
  b.wake(5);
  b.w().queue.lifo_polls.set(max_lifo_polls);
  CHECK(b.next() == 0);
  CHECK(b.w().queue.newest.empty());
  CHECK(b.all() == order{1, 5});
}

TEST_CASE("the slot's turns begin anew at the end of a tick", "[conformance][queues]") {
  busy_worker b(2);
  b.w().dispatch.pacing.restart(0, {});
  b.wake(5);
  b.w().queue.lifo_polls.set(max_lifo_polls);
  b.w().count.polls.set(budget_per_tick - 1);
  CHECK(b.next() == 5);
  CHECK(b.all() == order{0, 1});
}

// Q12, Q18: in the order of the clause, when the injection queue's turn has come and when it has not.
TEST_CASE("the injection queue has its turn before the slot, else comes behind the ring", "[conformance][queues]") {
  busy_worker b(1);
  test::injection(b.sched()).put(as_entry(b.fibers[8]));
  b.wake(5);
  SECTION("its turn") {
    b.w().count.polls.set(interval_for(initial_task_estimate.count()) - 1);
    CHECK(b.all() == order{8, 5, 0});
  }
  SECTION("not its turn") { CHECK(b.all() == order{5, 0, 8}); }
}

// Q12: before it looks elsewhere, a worker takes from the injection queue; then from others.
TEST_CASE("a worker steals only when the injection queue is empty, too", "[conformance][queues]") {
  threadless_runtime s(2);
  test::live(s.sched()).store(2);
  s.w(1).life.state.store(worker_state::active);
  for (std::size_t i = 0; i < 2; ++i) s.push(s.fibers[i], 1);
  test::injection(s.sched()).put(as_entry(s.fibers[5]));
  CHECK(s.sched().dispatch.next(s.w(0)) == &s.fibers[5]);
  CHECK(s.w(0).life.state.load() == worker_state::active);
  CHECK(s.w(0).count.steals.get() == 0);
  s.w(0).dispatch.searching.set(true);
  CHECK(s.sched().dispatch.next(s.w(0)) == &s.fibers[0]);
  CHECK(s.w(0).count.steals.get() == 1);
  CHECK(s.w(0).count.stolen.get() == 1);
  CHECK(s.w(1).queue.ring.size() == 1);
  (void)s.w(1).queue.ring.pop_old();
}

// Q16: those at the young end have started, so the oldest has its turn.
TEST_CASE("who waits hands over to the oldest if the youngest has started", "[conformance][queues]") {
  test::journal<int> seen;
  ramie::run(test::with_workers(1), [&] {
    ramie::channel<int> done(0);
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&, i] {
        ramie::yield();
        seen.add(i);
        if (i == 2) done.send(1);
      });
    }
    ramie::yield();
    (void)done.recv();
    n.join();
  });
  CHECK(seen.entries() == order{0, 1, 2});
}

// Q10, I3: while it moves them they are in no queue, where somebody who falls asleep could have looked.
TEST_CASE("who takes more than one from the injection queue tells a sleeper", "[conformance][queues]") {
  for (const std::size_t queued : {1u, 6u}) {
    threadless_runtime s(2);
    s.nobody_searches();
    s.w(1).life.state.store(worker_state::sleep);
    s.sched().pool.idle().announce_sleep(1, false);
    for (std::size_t i = 0; i < queued; ++i) test::injection(s.sched()).put(as_entry(s.fibers[i]));
    CHECK(dispatcher::next_local(s.w()) == &s.fibers[0]);
    CHECK(s.w().queue.ring.size() == queued - 1);
    CHECK(s.sched().pool.idle().load().parked() == (queued == 1 ? 1 : 0));
  }
}

// Q17
TEST_CASE("who yields at the end of its budget leaves a full one to those who come", "[conformance][queues]") {
  std::uint32_t left = 0, back = 0;
  ramie::run(test::with_workers(1), [&] {
    ramie::nursery n;
    n.spawn([&] {
      left = this_worker()->budget.get();
      this_worker()->budget.set(0);
    });
    this_worker()->budget.set(0);
    back = yield_at_budget_end(*this_worker_local()).budget.get();
    n.join();
  });
  CHECK(left == budget_per_tick);
  CHECK(back == budget_per_tick);
}

// C18
TEST_CASE("what only tries takes from the budget and never yields", "[conformance][queues][channel]") {
  std::vector<std::uint32_t> left;
  bool early = true;
  std::atomic<bool> ran{false};
  ramie::run(test::with_workers(1), [&] {
    const ramie::channel<int> c(1);
    ramie::nursery n;
    n.spawn([&] { ran = true; });
    auto& budget = this_worker_local()->budget;
    for (const std::uint32_t from : {5u, 0u}) {
      budget.set(from);
      (void)c.try_send(1);
      left.push_back(budget.get());
      (void)c.try_recv();
      left.push_back(budget.get());
    }
    early = ran.load();
    n.join();
  });
  CHECK(left == std::vector<std::uint32_t>{4, 3, 0, 0});
  CHECK_FALSE(early);
}

// Q17: two that work for each other. Each goes on for a budget, and takes the other's place in the slot.
TEST_CASE("who yields to the slot takes its place there, with a full budget for the other", "[conformance][queues]") {
  constexpr int elements = 10'000;
  ramie::runtime rt(test::with_workers(1));
  int received = 0;
  ramie::runtime_stats before;
  rt.run([&] {
    ramie::channel<int> c(elements);
    ramie::nursery n;
    n.spawn([&] {
      while (received < elements) received += c.recv().has_value();
    });
    ramie::yield();
    before = rt.stats();
    for (int i = 0; i < elements; ++i) c.send(i);
    n.join();
  });
  const auto after = rt.stats().total;
  const auto polls = after.polls - before.total.polls;
  CHECK(received == elements);
  CHECK(polls >= elements / budget_per_tick);
  CHECK(polls <= 4 * elements / budget_per_tick);
  CHECK(polls - (after.lifo_hits - before.total.lifo_hits) < 10);
}

// Q11. Nobody runs anything here: the spawn comes back only when the test has made room.
TEST_CASE("a thread outside that spawns waits at the soft mark", "[conformance][queues]") {
  threadless_runtime s;
  auto& sched = s.sched();
  test::live(sched).store(1);  // else the spawn would start the first worker
  std::vector<queued*> many(injection_soft_capacity, as_entry(s.fibers[0]));
  sched.queues.reserve(many.size() + 2);
  test::injection(sched).put(many.data(), static_cast<std::uint32_t>(many.size() - 1));
  CHECK(s.runtime().stats().injection_over_mark == 0);
  sched.queues.push_from_outside(sched.pool, s.fibers[1]);
  sched.queues.push_from_outside(sched.pool, s.fibers[2]);  // a wake never waits
  CHECK(s.runtime().stats().injection_over_mark == 1);
  std::atomic<bool> ran{false};
  std::thread outside([&] { s.runtime().run([&] { ran = true; }); });
  test::until([&] { return test::injection(sched).waiting_outside() == 1 || test::injection(sched).size() > many.size() + 1; });
  CHECK(test::injection(sched).size() == many.size() + 1);  // it has queued nothing
  CHECK(sched.frames.count().made == 0);             // and holds nothing
  CHECK(test::injection(sched).take(many.data(), 1) == 1);
  CHECK(test::injection(sched).waiting_outside() == 1);  // at the mark is not below it
  CHECK(test::injection(sched).take(many.data(), 1) == 1);
  test::until([&] { return sched.frames.count().made != 0 && !test::parts::somebody_pushes(sched.queues) &&
                           test::injection(sched).size() == many.size(); });
  // All that is not a fiber that could run is taken out; then the worker that was claimed is started.
  while (test::injection(sched).size() > 1) (void)test::injection(sched).take(many.data(), 1);
  test::live(sched).store(0);
  CHECK(test::parts::wake_claimed(sched.pool, 0));
  outside.join();
  CHECK(ran);
}

// F2, T17, K20. Only builds with checks look.
TEST_CASE("builds with checks notice a misplaced fiber and a changed rounding mode", "[conformance][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  dies_saying(
      [] {
        ramie::runtime rt(with_workers(1));
        static fiber f;
        scheduler_of(rt).queues.push_from_outside(scheduler_of(rt).pool, f);
      },
      "is queued while INIT (F2)");
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          static fiber f;
          worker& here = *this_worker();
          run_queues::push_woken(here, f);
          ::_exit(0);  // before the worker comes upon it
        });
      },
      "is queued while INIT (F2)");
#if defined(__x86_64__) && !defined(RAMIE_USE_FCONTEXT)
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          ramie::nursery n;
          n.spawn([] {});
          std::fesetround(FE_UPWARD);
          ramie::yield();
        });
      },
      "changed floating-point environment");
#endif
}

// Q16
TEST_CASE("what was spawned last goes first when its spawner waits, but not for ever", "[conformance][fairness]") {
  int most = 0;
  ramie::run(with_workers(1), [&] {
    // Many short polls: the injection queue's turn, which would come in between, becomes rare.
    for (int i = 0; i < test::scaled(10'000, 1'000); ++i) {
      ramie::nursery n;
      n.spawn([] {});
      n.join();
    }
    ramie::channel<int> done(0);
    for (int round = 0; round < test::scaled(10, 3); ++round) {
      int before_stranger = 0;
      bool stranger_ran = false;
      ramie::nursery n;
      n.spawn([&] { stranger_ran = true; });
      for (int i = 0; i < 200; ++i) {
        n.spawn([&] { done.send(1); });
        (void)done.recv();
        before_stranger += !stranger_ran;
      }
      n.join();
      most = std::max(most, before_stranger);
    }
  });
  CHECK(most >= 1);
  CHECK(most <= static_cast<int>(max_fresh_polls));
}

// Q10, Q12, Q13
TEST_CASE("the injection queue's turn takes one fiber while the ring has some, else a batch", "[conformance][queues]") {
  threadless_runtime s;
  for (std::size_t i = 0; i < 11; ++i) test::injection(s.sched()).put(as_entry(s.fibers[i]));
  s.w().queue.ring.push(as_entry(s.fibers[11]), s.w().queue.overflow);
  s.w().count.polls.set(interval_for(initial_task_estimate.count()) - 1);  // its turn comes with the next poll
  CHECK(dispatcher::next_local(s.w()) == &s.fibers[0]);
  CHECK(test::injection(s.sched()).size() == 10);
  CHECK(dispatcher::next_local(s.w()) == &s.fibers[11]);
  CHECK(dispatcher::next_local(s.w()) == &s.fibers[1]);  // nothing local: its share, which is all of it
  CHECK(s.sched().queues.injection_empty());
  CHECK(s.w().queue.ring.size() == 9);
  while (s.w().queue.ring.pop_old() != nullptr) {
  }
}

}  // namespace conformance_run_queues
