// SPDX-License-Identifier: BSL-1.0
// Every counter of what chaos did, against something else that happened as often.
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include "runtime/src/sched/runner.hpp"
#include "runtime/src/sched/scheduler.hpp"
#include <support/scheduler_access.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_stats_chaos {

using namespace ramie::runtime_internal;

ramie::options with_only(bool ramie::chaos_mode::*kind, unsigned workers, bool elastic = false, std::uint64_t seed = 3) {
  ramie::options o;
  o.workers = workers;
  o.elastic = elastic;
  o.chaos = ramie::chaos_mode{seed, false, false, false, false, false, false};
  (*o.chaos).*kind = true;
  return o;
}

// Who yields is queued again.
TEST_CASE("each time that a fiber is made to yield is counted", "[conformance][stats][chaos]") {
  SECTION("between operations") {
    ramie::runtime rt(with_only(&ramie::chaos_mode::yields, 1));
    rt.run([] {
      ramie::channel<int> c(1);
      for (int i = 0; i < 200; ++i) {
        c.send(i);
        (void)c.recv();
      }
    });
    const auto seen = rt.stats();
    CHECK(seen.chaos.yields > 0);
    CHECK(seen.chaos.yields == seen.total.enqueued);
  }
  SECTION("before waits") {
    ramie::runtime rt(with_only(&ramie::chaos_mode::yields, 1));
    rt.run([] {
      gate open;
      open.open();
      for (int i = 0; i < 200; ++i) test::wait_at(open);  // which ends at once
    });
    const auto seen = rt.stats();
    CHECK(seen.chaos.yields > 0);
    CHECK(seen.chaos.yields == seen.total.enqueued);
  }
  SECTION("after spawns and wakes") {
    ramie::runtime rt(with_only(&ramie::chaos_mode::wake_yields, 1));
    rt.run([] {
      ramie::nursery n;
      for (int i = 0; i < 100; ++i) n.spawn([] {});
    });
    const auto seen = rt.stats();
    CHECK(seen.total.spawned == 100);
    CHECK(seen.chaos.wake_yields > 0);
    CHECK(seen.chaos.wake_yields == seen.total.enqueued - seen.total.spawned - seen.total.parks);
  }
}

// A fiber that comes back to another worker than it left. It knows itself how often that was.
TEST_CASE("each time that a fiber goes on elsewhere is counted", "[conformance][stats][chaos]") {
  ramie::runtime rt(with_only(&ramie::chaos_mode::migrations, 2));
  std::atomic<std::uint64_t> moved{0};
  std::atomic<int> left{4};
  ramie::runtime_stats seen;
  rt.run([&] {
    const auto wander = [&](auto goes_on) {
      std::uint32_t last = this_worker()->index;
      while (goes_on()) {
        ramie::yield();
        const auto now = this_worker()->index;
        moved.fetch_add(now != last);
        last = now;
      }
    };
    test::fiber_group c(rt);
    for (int i = 0; i < 4; ++i) {
      c.spawn([&] {
        wander([&] { return moved.load() < 100; });
        left.fetch_sub(1);
      });
    }
    wander([&] { return left.load() != 0; });
    seen = rt.stats();  // before the join, which may come back elsewhere, too
    c.join();
  });
  CHECK(seen.total.migrations == moved.load());
  CHECK(seen.workers[0].migrations + seen.workers[1].migrations == seen.total.migrations);
}

// By hand: workers without threads, and fibers that never run.
struct still_chaos {
  explicit still_chaos(const ramie::options& o) : rt(o), fibers(200) {
    while (sched().pool.idle().claim_parked()) {
    }
    sched().queues.reserve(fibers.size());
    for (fiber& f : fibers) f.word.init_to_runnable(0);
    for (auto& w : sched().pool.workers()) w->life.state.store(worker_state::active);
  }
  ~still_chaos() {
    for (queued* entry = nullptr; test::injection(sched()).take(&entry, 1) != 0;) {
    }
  }
  [[nodiscard]] scheduler& sched() { return scheduler_of(rt); }
  [[nodiscard]] worker& w(std::size_t index = 0) { return *sched().pool.workers()[index]; }

  ramie::runtime rt;
  std::vector<fiber> fibers;
};

TEST_CASE("each fiber that is held back is counted", "[conformance][stats][chaos]") {
  still_chaos s(with_only(&ramie::chaos_mode::delays, 1));
  std::uint64_t held_back = 0;
  for (fiber& f : s.fibers) {
    run_queues::push_woken(s.w(), f);
    held_back += f.held_back.get() != 0;
  }
  CHECK(held_back > 0);
  CHECK(s.rt.stats().chaos.held_back == held_back);
}

// While there is something in the injection queue nobody needs to steal.
TEST_CASE("each theft without need is counted", "[conformance][stats][chaos]") {
  still_chaos s(with_only(&ramie::chaos_mode::steals, 2));
  test::injection(s.sched()).put(as_entry(s.fibers[0]));
  test::injection(s.sched()).put(as_entry(s.fibers[1]));
  for (std::size_t i = 2; i < 100; ++i) s.w(1).queue.ring.push(as_entry(s.fibers[i]), s.w(1).queue.overflow);
  for (int i = 0; i < 500; ++i) {
    fiber* const f = s.sched().dispatch.next(s.w());
    if (test::injection(s.sched()).size() < 2) {
      test::injection(s.sched()).put(as_entry(*f));
    } else {
      s.w(1).queue.ring.push(as_entry(*f), s.w(1).queue.overflow);
    }
  }
  const auto seen = s.rt.stats();
  CHECK(seen.chaos.steals > 0);
  CHECK(seen.chaos.steals == seen.total.steals);
}

TEST_CASE("a worker that is retired for no reason is counted", "[conformance][stats][chaos]") {
  still_chaos s(with_only(&ramie::chaos_mode::scaling, 2, true));
  test::live(s.sched()).store(4);
  test::injection(s.sched()).put(as_entry(s.fibers[0]));
  fiber* f = &s.fibers[0];
  for (int i = 0; i < 100'000 && f != nullptr; ++i) {
    f = s.sched().dispatch.next(s.w());
    if (f != nullptr) test::injection(s.sched()).put(as_entry(*f));
  }
  CHECK(f == nullptr);
  CHECK(s.w().life.state.load() == worker_state::draining);
  CHECK(s.rt.stats().chaos.retired_workers == 1);
  CHECK(s.rt.stats().chaos.promoted_workers == 0);  // there is no slot left
  CHECK(s.rt.stats().pressure.retired_workers == 1);
  CHECK(s.rt.stats().live_workers == 3);
}

// Whoever is there was the first, or was added, and has not retired.
TEST_CASE("each worker that is added for no reason is counted", "[conformance][stats][chaos]") {
  bool added = false;
  for (std::uint64_t seed = 1; seed <= 50 && !added; ++seed) {
    ramie::runtime rt(with_only(&ramie::chaos_mode::scaling, 1, true, seed));
    rt.run([] {
      for (int i = 0; i < 500; ++i) ramie::yield();
    });
    const auto balanced = [&] {
      const auto seen = rt.stats();
      return 1 + seen.chaos.promoted_workers + seen.pressure.promoted_workers ==
             seen.live_workers + seen.pressure.retired_workers;
    };
    test::until(balanced);  // one may be leaving, or come and not be counted yet
    added = rt.stats().chaos.promoted_workers != 0;
  }
  CHECK(added);
}

}  // namespace conformance_stats_chaos
