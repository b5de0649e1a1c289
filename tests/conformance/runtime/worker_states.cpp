// SPDX-License-Identifier: BSL-1.0
// The states of workers and the elastic pool: Q1, E1 to E9. Most of it by hand, without threads and without time.
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/join.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/pending_read.hpp>
#include <support/reports.hpp>
#include <support/threadless_runtime.hpp>
#include <support/test.hpp>

namespace conformance_worker_states {

using namespace ramie::runtime_internal;
using test::threadless_runtime;
using test::with_workers;

// Q1: unstarted, dead, active and sleep, as a runtime goes through them.
TEST_CASE("a worker's state says whether it has a thread, runs fibers or sleeps", "[conformance][workers]") {
  ramie::runtime rt(test::one_elastic_worker());
  auto& sched = scheduler_of(rt);
  const auto state = [&](std::size_t index) { return sched.pool.workers()[index]->life.state.load(); };
  REQUIRE(sched.pool.workers().size() == 2);
  CHECK(state(0) == worker_state::unstarted);
  CHECK(state(1) == worker_state::dead);
  worker_state inside{}, other{};
  rt.run([&] {
    inside = state(0);
    other = state(1);
  });
  CHECK(inside == worker_state::active);
  CHECK(other == worker_state::dead);
  // Not by its state: whoever made the root runnable may have woken it a moment ago, for nothing, and it looks around once more.
  test::until([&] { return sched.pool.idle().load().parked() == 1; });
  CHECK(state(0) == worker_state::sleep);
  for (const auto s : {worker_state::active, worker_state::idle_spin, worker_state::sleep, worker_state::draining}) {
    CHECK(has_thread(s));
  }
  for (const auto s : {worker_state::dead, worker_state::unstarted}) CHECK_FALSE(has_thread(s));
}

// Q1: a worker that has been woken looks for work before it runs any.
TEST_CASE("a worker that is woken is idle and no longer asleep", "[conformance][workers]") {
  threadless_runtime s;
  test::live(s.sched()).store(1);
  s.w().dispatch.searching.set(true);
  const fiber* found = &s.fibers[0];
  std::thread thread([&] { found = s.sched().dispatch.next(s.w()); });
  test::until([&] { return s.sched().pool.idle().load().parked() == 1; });
  CHECK(s.w().life.state.load() == worker_state::sleep);
  s.w().life.attention.fetch_or(worker::stop);
  s.w().unpark();
  thread.join();
  CHECK(found == nullptr);
  CHECK(s.w().life.state.load() == worker_state::idle_spin);
  CHECK(s.sched().pool.idle().load().parked() == 0);
}

// K17, K21
TEST_CASE("a worker keeps 32 stacks, and trims what the pool has too many of before it sleeps",
          "[conformance][stacks]") {
  auto o = with_workers(1);
  o.stack_size = test::sanitized ? 64 * 1024 : 16 * 1024;
  ramie::runtime rt(o);
  auto& sched = scheduler_of(rt);
  const int count = test::scaled(3'000, 500);
  rt.run([&] {
    gate door;
    std::atomic<int> arrived{0};
    test::fiber_group c(rt);
    for (int i = 0; i < count; ++i) {
      c.spawn([&] {
        arrived.fetch_add(1);
        test::wait_at(door);
      });
    }
    while (arrived.load() != count) ramie::yield();
    door.open();
    c.join();
  });
  test::until([&] { return sched.pool.idle().load().parked() == 1; });
  const auto stacks = sched.stacks.count();
  CHECK(stacks.slots >= static_cast<std::size_t>(count));
  CHECK(sched.pool.workers()[0]->run.spare_count.get() <= stack_cache_limit);
  CHECK(stacks.taken <= stack_cache_limit + 1);
  if (!test::sanitized) CHECK(stacks.trimmed + 1024 + 64 >= static_cast<std::size_t>(count));
}

// E9. Its thread is told that it has been stalled and is surplus, in the middle of a fiber. What it leaves behind, and
// what another worker has, is there for the taking, and nobody else would take it.
TEST_CASE("a draining worker steals nothing and takes nothing", "[conformance][elastic]") {
  ramie::options o;
  o.workers = 2;
  o.elastic = false;
  ramie::runtime rt(o);
  auto& sched = scheduler_of(rt);
  worker& victim = *sched.pool.workers()[1];
  REQUIRE(sched.pool.idle().claim_parked(1) == 1u);
  (void)sched.pool.idle().leave_search();
  victim.life.state.store(worker_state::active);  // by hand: it has no thread
  std::atomic<int> ran{0};
  std::thread outside([&] {
    rt.run([&] {
      worker& w = *this_worker();
      test::fiber_group c(rt);
      for (int i = 0; i < 3; ++i) c.spawn([&] { ran.fetch_add(1); });
      queued* const youngest = w.queue.ring.pop_young();
      victim.queue.ring.push(youngest, victim.queue.overflow);
      test::live(sched).store(3);
      test::stalled(sched).fetch_add(1);
      w.life.attention.fetch_or(worker::stalled);
      ramie::yield();
      c.join();
    });
  });
  const auto& leaver = sched.pool.workers()[0]->life.state;
  test::until([&] { return leaver.load(std::memory_order_acquire) == worker_state::dead || ran.load() == 3; });
  const int ran_meanwhile = ran.load();
  const auto left = test::injection(sched).size();
  const auto not_stolen = victim.queue.ring.size();
  if (queued* const entry = victim.queue.ring.pop_old()) test::injection(sched).put(entry);
  test::live(sched).store(0);
  const bool again = ran_meanwhile == 3 || sched.pool.promote_one();
  outside.join();
  CHECK(ran_meanwhile == 0);
  CHECK(left == 3);  // two children and the root
  CHECK(not_stolen == 1);
  CHECK(again);
  CHECK(ran == 3);
  CHECK(rt.stats().pressure.retired_workers == 1);
}

// E1: fibers that block their workers until all of them have been seen, more of them than there may be workers.
TEST_CASE("there are never more than twice as many workers", "[conformance][elastic]") {
  const test::reports quiet;
  for (const unsigned configured : {1u, 2u}) {
    ramie::options o;
    o.workers = configured;
    ramie::runtime rt(o);
    std::atomic<bool> over{false};
    std::atomic<unsigned> blocked{0};
    std::thread outside([&] {
      rt.run([&] {
        ramie::nursery n;
        for (unsigned i = 0; i < 4 * configured; ++i) {
          n.spawn([&] {
            blocked.fetch_add(1);
            over.wait(false);
          });
        }
        n.join();
      });
    });
    // All there can be are blocked, and have been counted by whoever started them, and the monitor has looked for more of
    // them in vain.
    test::until([&] {
      const auto seen = rt.stats();
      const auto at_once = blocked.load();
      if (at_once > 2 * configured || seen.live_workers > 2 * configured) return true;
      const bool all = at_once == 2 * configured && seen.live_workers == 2 * configured;
      return all && seen.pressure.blocked_at_limit >= 3;
    });
    const auto workers = rt.stats().live_workers;
    const auto at_once = blocked.load();
    over = true;
    over.notify_all();
    outside.join();
    CHECK(workers == 2 * configured);
    CHECK(at_once == 2 * configured);
    CHECK(blocked.load() == 4 * configured);
  }
  CHECK(ramie::runtime(with_workers(1)).stats().workers.size() == 1);  // not elastic
}

// E5
TEST_CASE("pressure is a signed sum over all workers", "[conformance][elastic]") {
  threadless_runtime s(2);
  const auto look = [&] {
    (void)s.sched().pool.monitor().tick();
    return s.runtime().stats().pressure;
  };
  s.w(0).count.spawned.set(4);
  s.w(0).count.enqueued.set(1);
  s.w(1).count.polls.set(3);  // of what the other one had spawned
  test::parts::pushed_outside(s.sched().queues).store(2);
  auto p = look();
  CHECK(p.current == 4);
  CHECK(p.positive_samples == 1);
  CHECK(p.negative_samples == 0);
  s.w(1).count.polls.set(10);
  p = look();
  CHECK(p.current == -3);
  CHECK(p.positive_samples == 1);
  CHECK(p.negative_samples == 1);
  s.w(0).count.enqueued.set(4);
  p = look();
  CHECK(p.current == 0);
  CHECK(p.positive_samples == 1);
  CHECK(p.negative_samples == 1);
  CHECK(p.longest_negative_streak == 1);
}

TEST_CASE("what a join takes and gives back leaves the pressure as it was", "[conformance][elastic]") {
  ramie::runtime rt(with_workers(1));
  std::int64_t taken = 99;
  rt.run([&] {
    test::fiber_group c(rt);
    c.spawn([] {});
    worker& w = *this_worker();
    fiber* const f = test::parts::take_youngest(w);
    taken = w.sched.pressure();
    give_back(*f);
    c.join();
  });
  CHECK(taken == 0);
  CHECK(rt.stats().pressure.current == 0);
}

void look_at_negative_pressure(threadless_runtime& s, int times) {
  s.w().count.polls.set(1);
  for (int i = 0; i < times; ++i) (void)s.sched().pool.monitor().tick();
  s.w().count.polls.set(0);
  (void)s.sched().pool.monitor().tick();
}

// E6
TEST_CASE("pressure may be negative for 500 samples in a row", "[conformance][elastic]") {
  threadless_runtime s;
  look_at_negative_pressure(s, 500);
  look_at_negative_pressure(s, 300);
  const auto p = s.runtime().stats().pressure;
  CHECK(p.negative_samples == 800);
  CHECK(p.longest_negative_streak == 500);
}
TEST_CASE("builds with checks notice pressure that stays negative", "[conformance][elastic][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  test::dies_saying(
      [] {
        threadless_runtime s;
        look_at_negative_pressure(s, 501);
      },
      "pressure has been negative for 500 samples");
}

// E3, E7: one worker that holds its fiber and has one more queued. What else is so decides.
struct gate_of_monitor : threadless_runtime {
  explicit gate_of_monitor(unsigned workers = 1, bool elastic = true) : threadless_runtime(workers, elastic) {
    nobody_searches();
    w().life.state.store(worker_state::active);
    w().count.spawned.set(2);
    w().count.polls.set(1);
    w().life.polls_at_last_sample = 1;
    push(fibers[0]);
  }
  // {no work, not stuck, not positive, idle capacity, at the limit, passes, promoted} of one look.
  std::vector<std::uint64_t> look() {
    (void)sched().pool.monitor().tick();
    const auto p = runtime().stats().pressure;
    return {p.blocked_no_work,  p.blocked_not_stuck, p.blocked_nonpositive, p.blocked_idle_capacity,
            p.blocked_at_limit, p.gate_passes,       p.promoted_workers};
  }
};
using counts = std::vector<std::uint64_t>;

TEST_CASE("what stops the pool from growing is counted as that, and nothing else", "[conformance][elastic]") {
  SECTION("nothing is queued") {
    gate_of_monitor g;
    (void)g.w().queue.ring.pop_old();
    CHECK(g.look() == counts{1, 0, 0, 0, 0, 0, 0});
  }
  SECTION("nobody is stuck") {
    gate_of_monitor g;
    g.w().life.polls_at_last_sample = 0;
    CHECK(g.look() == counts{0, 1, 0, 0, 0, 0, 0});
  }
  SECTION("who is not active is not stuck") {
    gate_of_monitor g;
    g.w().life.state.store(worker_state::idle_spin);
    CHECK(g.look() == counts{0, 1, 0, 0, 0, 0, 0});
  }
  SECTION("no more was made runnable than was polled") {
    for (const std::uint64_t spawned : {1u, 0u}) {
      gate_of_monitor g;
      g.w().count.spawned.set(spawned);
      CHECK(g.look() == counts{0, 0, 1, 0, 0, 0, 0});
    }
  }
  SECTION("a sleeper can be woken") {
    gate_of_monitor g(2);
    g.w(1).life.state.store(worker_state::sleep);
    g.sched().pool.idle().announce_sleep(1, false);
    CHECK(g.look() == counts{0, 0, 0, 1, 0, 0, 0});
    CHECK(g.sched().pool.idle().load().searching() == 1);
    CHECK(g.w(1).parker.park_until(ramie::platform::time_point::max()));  // it has been
  }
  SECTION("somebody searches") {
    gate_of_monitor g;
    REQUIRE(g.sched().pool.idle().try_become_searcher(1));
    CHECK(g.look() == counts{0, 0, 0, 1, 0, 0, 0});
  }
  SECTION("somebody naps") {
    gate_of_monitor g(2);
    g.w(1).life.state.store(worker_state::idle_spin);
    CHECK(g.look() == counts{0, 0, 0, 1, 0, 0, 0});
  }
  SECTION("all that there may be are there") {
    gate_of_monitor g;
    g.w(1).life.state.store(worker_state::active);
    CHECK(g.look() == counts{0, 0, 0, 0, 1, 1, 0});
  }
  SECTION("the pool is not elastic") {
    gate_of_monitor g(1, false);
    CHECK(g.look() == counts{0, 0, 0, 0, 1, 0, 0});
  }
}

// E2, Q8
TEST_CASE("a stalled worker is marked once and its slot opened, until it polls again", "[conformance][elastic]") {
  gate_of_monitor g(1, false);
  (void)g.w().queue.newest.put(&g.fibers[1]);
  CHECK_FALSE(g.w().queue.newest.stealable());
  for (int look = 0; look < 2; ++look) (void)g.look();
  CHECK(test::stalled(g.sched()).load() == 1);
  CHECK(g.w().queue.newest.stealable());
  for (int poll = 0; poll < 2; ++poll) (void)g.sched().pool.clear_stalled(g.w());
  CHECK(test::stalled(g.sched()).load() == 0);
  CHECK_FALSE(g.w().queue.newest.stealable());
  (void)g.w().queue.newest.take();
}

// E8
TEST_CASE("a worker is surplus only beyond those that are stalled", "[conformance][elastic]") {
  threadless_runtime s(2, true);
  const auto surplus = [&](unsigned live, unsigned stalled) {
    test::live(s.sched()).store(live);
    test::stalled(s.sched()).store(stalled);
    const bool is = s.sched().pool.may_retire(s.w());
    CHECK(s.sched().pool.live() == live - is);
    return is;
  };
  CHECK_FALSE(surplus(1, 0));
  CHECK_FALSE(surplus(2, 0));
  CHECK(surplus(3, 0));
  CHECK_FALSE(surplus(3, 1));
  CHECK(surplus(4, 1));
  CHECK_FALSE(surplus(4, 2));
  test::stalled(s.sched()).store(0);
}

// I6, Q2
TEST_CASE("a worker that could not be started can be started later", "[conformance][workers]") {
  namespace faults = ramie::platform::faults;
  ramie::runtime rt(with_workers(1));
  faults::plan_for(ramie::platform::fault::thread, 1, faults::for_good);
  CHECK_THROWS_AS(rt.run([] {}), std::system_error);
  faults::plan_for(ramie::platform::fault::thread, 0, 0);
  const auto counts = scheduler_of(rt).pool.idle().load();
  CHECK(counts.parked() == 1);
  CHECK(counts.searching() == 0);
  if (counts.parked() == 1) CHECK(rt.run([] { return 7; }) == 7);
}

// E9
TEST_CASE("a draining worker moves all it has to the injection queue", "[conformance][elastic]") {
  threadless_runtime s;
  for (std::size_t i = 1; i < 12; ++i) s.w().queue.ring.push(as_entry(s.fibers[i]), s.w().queue.overflow);
  (void)s.w().queue.newest.put(&s.fibers[0]);
  s.sched().pool.drain(s.w());
  CHECK(s.w().life.state.load() == worker_state::draining);
  CHECK(s.w().queue.ring.empty());
  CHECK(s.w().queue.newest.empty());
  CHECK(s.sched().pool.retired() == 1);
  queued* out[12] = {};
  REQUIRE(test::injection(s.sched()).take(out, 12) == 12);
  int in_order = 0;
  for (std::size_t i = 0; i < 12; ++i) in_order += out[i] == as_entry(s.fibers[i]);
  CHECK(in_order == 12);
}

// IO20
TEST_CASE("a worker with operations under way does not retire", "[conformance][elastic][io]") {
  threadless_runtime s;
  REQUIRE(s.sched().io.prepare(s.w(), timekeeper::never) == 0);
  test::live(s.sched()).store(2);  // one more than there need be
  test::pending_read under_way(*s.w().io.backend());
  CHECK(!s.sched().pool.may_retire(s.w()));
  under_way.finish();
  CHECK(s.sched().pool.may_retire(s.w()));
  CHECK(s.sched().pool.live() == 1);
}

}  // namespace conformance_worker_states
