// SPDX-License-Identifier: BSL-1.0
// Where runnable fibers are queued and in which order they run: Q5, Q7, Q11, Q12, Q18. By hand: no worker has a thread.
#include <atomic>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/runtime/budget.hpp>
#include <support/crew.hpp>
#include <support/still_scheduler.hpp>
#include <support/test.hpp>

namespace conformance_queueing {

using namespace ramie::detail;
using test::still_scheduler;

// A worker with a few entries in its ring, and who runs next.
struct busy_worker : still_scheduler {
  explicit busy_worker(std::size_t queued) {
    for (std::size_t i = 0; i < queued; ++i) push(fibers[i]);
  }
  void wake(std::size_t i) { sched().schedule_on(w(), fibers[i]); }
  // The number of the next one, or -1.
  int next() {
    const fiber* const f = sched().next_local(w());
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
  CHECK_FALSE(b.w().newest.empty());
  CHECK(b.w().ring.size() == 2);
  b.wake(6);  // the older one makes way, to the young end
  CHECK(b.w().ring.peek_young() == &b.fibers[5]);
  b.sched().push_spawned(b.w(), b.fibers[7]);
  CHECK(b.w().ring.peek_young() == &b.fibers[7]);
  b.sched().schedule_outside(b.fibers[8]);
  CHECK(b.sched().injection.size() == 1);
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
  b.w().lifo_polls.set(max_lifo_polls);
  CHECK(b.next() == 0);
  CHECK(b.w().newest.empty());
  CHECK(b.all() == order{1, 5});
}

TEST_CASE("the slot's turns begin anew at the end of a tick", "[conformance][queues]") {
  busy_worker b(2);
  b.w().tempo.restart(0, {});
  b.wake(5);
  b.w().lifo_polls.set(max_lifo_polls);
  b.w().count.polls.set(budget_per_tick - 1);
  CHECK(b.next() == 5);
  CHECK(b.all() == order{0, 1});
}

// Q12, Q18: in the order of the clause, when the injection queue's turn has come and when it has not.
TEST_CASE("the injection queue has its turn before the slot, else comes behind the ring", "[conformance][queues]") {
  busy_worker b(1);
  b.sched().injection.put(&b.fibers[8]);
  b.wake(5);
  SECTION("its turn") {
    b.w().count.polls.set(interval_for(initial_task_estimate.count()) - 1);
    CHECK(b.all() == order{8, 5, 0});
  }
  SECTION("not its turn") { CHECK(b.all() == order{5, 0, 8}); }
}

// Q12: before it looks elsewhere, a worker takes from the injection queue; then from others.
TEST_CASE("a worker steals only when the injection queue is empty, too", "[conformance][queues]") {
  still_scheduler s(2);
  s.sched().live.store(2);
  s.w(1).state.store(worker_state::active);
  for (std::size_t i = 0; i < 2; ++i) s.push(s.fibers[i], 1);
  s.sched().injection.put(&s.fibers[5]);
  CHECK(s.sched().worker_next(s.w(0)) == &s.fibers[5]);
  CHECK(s.w(0).state.load() == worker_state::active);
  CHECK(s.w(0).count.steals.get() == 0);
  s.w(0).searching.set(true);
  CHECK(s.sched().worker_next(s.w(0)) == &s.fibers[0]);
  CHECK(s.w(0).count.steals.get() == 1);
  CHECK(s.w(0).count.stolen.get() == 1);
  CHECK(s.w(1).ring.size() == 1);
  (void)s.w(1).ring.pop_old();
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
    still_scheduler s(2);
    s.nobody_searches();
    s.w(1).state.store(worker_state::sleep);
    s.sched().idle.announce_sleep(1, false);
    for (std::size_t i = 0; i < queued; ++i) s.sched().injection.put(&s.fibers[i]);
    CHECK(s.sched().next_local(s.w()) == &s.fibers[0]);
    CHECK(s.w().ring.size() == queued - 1);
    CHECK(s.sched().idle.look().parked() == (queued == 1 ? 1 : 0));
  }
}

// Q17
TEST_CASE("who steps aside leaves a full budget to those who come", "[conformance][queues]") {
  std::uint32_t left = 0, back = 0;
  ramie::run(test::with_workers(1), [&] {
    ramie::nursery n;
    n.spawn([&] {
      left = this_worker()->budget.get();
      this_worker()->budget.set(0);
    });
    this_worker()->budget.set(0);
    back = step_aside(*this_desk()).budget.get();
    n.join();
  });
  CHECK(left == budget_per_tick);
  CHECK(back == budget_per_tick);
}

// C18
TEST_CASE("what only tries takes from the budget and never steps aside", "[conformance][queues][channel]") {
  std::vector<std::uint32_t> left;
  bool early = true;
  std::atomic<bool> ran{false};
  ramie::run(test::with_workers(1), [&] {
    const ramie::channel<int> c(1);
    ramie::nursery n;
    n.spawn([&] { ran = true; });
    auto& budget = this_desk()->budget;
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
TEST_CASE("who steps aside for the slot takes its place there, with a full budget for the other",
          "[conformance][queues]") {
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
  still_scheduler s;
  auto& sched = s.sched();
  sched.live.store(1);  // else the spawn would start the first worker
  std::vector<fiber*> many(global_queue_soft_capacity, &s.fibers[0]);
  sched.injection.reserve(many.size() + 2);
  sched.injection.put(many.data(), static_cast<std::uint32_t>(many.size() - 1));
  CHECK(s.runtime().stats().injection_over_mark == 0);
  sched.schedule_outside(s.fibers[1]);
  sched.schedule_outside(s.fibers[2]);  // a wake never waits
  CHECK(s.runtime().stats().injection_over_mark == 1);
  std::atomic<bool> ran{false};
  std::thread outside([&] { s.runtime().run([&] { ran = true; }); });
  test::until([&] { return sched.injection.waiting_outside() == 1 || sched.injection.size() > many.size() + 1; });
  CHECK(sched.injection.size() == many.size() + 1);  // it has queued nothing
  CHECK(sched.frames.count().made == 0);             // and holds nothing
  CHECK(sched.injection.take(many.data(), 1) == 1);
  CHECK(sched.injection.waiting_outside() == 1);  // at the mark is not below it
  CHECK(sched.injection.take(many.data(), 1) == 1);
  test::until([&] { return sched.frames.count().made != 0 && sched.outside_in_flight.load() == 0 &&
                           sched.injection.size() == many.size(); });
  // All that is not a fiber that could run is taken out; then the worker that was claimed is started.
  while (sched.injection.size() > 1) (void)sched.injection.take(many.data(), 1);
  sched.live.store(0);
  CHECK(sched.rouse(0));
  outside.join();
  CHECK(ran);
}

}  // namespace conformance_queueing
