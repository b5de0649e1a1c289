// SPDX-License-Identifier: BSL-1.0
// Where runnable fibers wait: the ring, the LIFO slot, the injection queue. One thread: nothing is contended.
#include "micro.hpp"

#include <memory>

#include "runtime/src/sched/deque.hpp"
#include "runtime/src/sched/injection_queue.hpp"
#include "runtime/src/sched/lifo_slot.hpp"
#include "runtime/src/task/frame.hpp"

namespace {

using namespace ramie::runtime_internal;
using micro::doNotOptimizeAway;

constexpr std::uint32_t many = 64;

// Fibers, and pointers to them as the queues like them.
struct crew {
  crew() {
    for (std::uint32_t i = 0; i < many; ++i) all[i] = &frames[i];
  }
  std::unique_ptr<fiber[]> frames{new fiber[many]};
  fiber* all[many];
};

struct swallow {
  void put(fiber* f) { doNotOptimizeAway(f); }
  void put(fiber* const* items, std::uint32_t) { doNotOptimizeAway(items[0]); }
};

void rings(micro::Bench& bench, crew& c) {
  swallow overflow;
  deque<fiber> ring, thief;
  bench.run("ring: push, pop_old", [&] {
    ring.push(c.all[0], overflow);
    doNotOptimizeAway(ring.pop_old());
  });
  bench.run("ring: push, pop_young", [&] {
    ring.push(c.all[0], overflow);
    doNotOptimizeAway(ring.pop_young());
  });
  std::uint32_t taken = 0;
  bench.run("ring: push, steal", [&] {
    ring.push(c.all[0], overflow);
    doNotOptimizeAway(ring.steal(thief, taken));
  });
  bench.batch(many).run("ring: push 64, steal until empty, each", [&] {
    ring.push_batch(c.all, many);
    while (ring.steal(thief, taken) != nullptr) {
      while (thief.pop_old() != nullptr) {
      }
    }
  });
  while (ring.size() < ring.capacity) ring.push(c.all[0], overflow);
  constexpr auto shed = overflow_batch + 1;  // what a push into a full ring gets rid of
  bench.batch(shed).run("ring: push, shedding half when full, each", [&] {
    for (std::uint32_t i = 0; i < shed; ++i) ring.push(c.all[0], overflow);
  });
  bench.batch(1);
}

void slots(micro::Bench& bench, crew& c) {
  lifo_slot<fiber> slot;
  bench.run("LIFO slot: put, take", [&] {
    doNotOptimizeAway(slot.put(c.all[0]));
    doNotOptimizeAway(slot.take());
  });
  (void)slot.put(c.all[0]);
  bench.run("LIFO slot: put, which drives out another", [&] { doNotOptimizeAway(slot.put(c.all[0])); });
  slot.open_to_thieves();
  bench.run("LIFO slot, open to thieves: put, steal", [&] {
    doNotOptimizeAway(slot.put(c.all[0]));
    doNotOptimizeAway(slot.steal());
  });
}

void injection(micro::Bench& bench, crew& c) {
  injection_queue<fiber> queue;
  queue.reserve(many);
  fiber* out[many];
  bench.run("injection queue: put, take", [&] {
    queue.put(c.all[0]);
    doNotOptimizeAway(queue.take(out, 1));
  });
  bench.run("injection queue: take, empty", [&] { doNotOptimizeAway(queue.take(out, 1)); });
  bench.batch(many).run("injection queue: put 64, take 64, each", [&] {
    queue.put(c.all, many);
    doNotOptimizeAway(queue.take(out, many));
  });
  bench.batch(1);
}

}  // namespace

void micro::queues(Bench& bench) {
  crew c;
  rings(bench, c);
  slots(bench, c);
  injection(bench, c);
}
