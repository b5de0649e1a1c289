// SPDX-License-Identifier: BSL-1.0
// The leaves, one by one, with nanobench: what a transition, a push and a pop cost.
#define ANKERL_NANOBENCH_IMPLEMENT
#include <nanobench.h>

#include <sched/deque.hpp>
#include <sched/lifo_slot.hpp>
#include <task/frame_pool.hpp>
#include <task/state.hpp>

namespace {

using namespace ramie::detail;

struct no_overflow {
  void put(fiber*) {}
  void put(fiber* const*, std::uint32_t) {}
};

void word(ankerl::nanobench::Bench& bench, const char* name, bool shared) {
  fiber_word w;
  w.initialise(0);
  if (shared) w.retain();
  w.init_to_runnable();
  std::uint16_t ticket = 0;
  bench.run(name, [&] {
    w.runnable_to_running();
    w.running_to_parking(++ticket);
    ankerl::nanobench::doNotOptimizeAway(w.commit_park());
    ankerl::nanobench::doNotOptimizeAway(w.claim(ticket));
    ankerl::nanobench::doNotOptimizeAway(w.complete());
  });
}

}  // namespace

int main() {
  ankerl::nanobench::Bench bench;
  bench.minEpochIterations(200'000).title("leaves");
  word(bench, "run, park, claim, complete (sole reference)", false);
  word(bench, "run, park, claim, complete (shared)", true);
  fiber f;
  no_overflow none;
  deque<fiber> ring;
  bench.run("ring: push, pop_old", [&] {
    ring.push(&f, none);
    ankerl::nanobench::doNotOptimizeAway(ring.pop_old());
  });
  bench.run("ring: push, pop_young", [&] {
    ring.push(&f, none);
    ankerl::nanobench::doNotOptimizeAway(ring.pop_young());
  });
  lifo_slot<fiber> slot;
  bench.run("LIFO slot: put, take", [&] {
    ankerl::nanobench::doNotOptimizeAway(slot.put(&f));
    ankerl::nanobench::doNotOptimizeAway(slot.take());
  });
  frame_pool pool;
  frame_cache cache;
  bench.run("frame cache: take, give", [&] { cache.give(cache.take(pool), pool); });
  cache.give_all(pool);
}
