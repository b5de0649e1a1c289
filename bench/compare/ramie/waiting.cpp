// SPDX-License-Identifier: BSL-1.0
// Fibers that wait: how much each takes, how fast one is back, what it costs to have them.
#include <atomic>

#include <compare/ramie/ramie.hpp>

namespace compare {

using ramie::channel;

namespace {
// Spawns fibers that wait for `never`, and returns when all of them do (or are about to).
void park(ramie::nursery& n, const channel<int>& never, long fibers, std::atomic<long>& inside) {
  for (long i = 0; i < fibers; ++i) {
    n.spawn([&inside, never] {
      inside.fetch_add(1, std::memory_order_relaxed);
      (void)never.recv();
    });
    if (i % 1'000 == 999) ramie::yield();
  }
  while (inside.load() != fibers) ramie::yield();
}
}  // namespace

result parked(unsigned workers, const sizes& s) {
  const long fibers = s["fibers"];
  return ramie::run(with_small_stacks(workers), [=]() -> result {
    ramie::nursery n;
    channel<int> never(0);
    std::atomic<long> inside{0};
    const double before = resident_bytes();
    auto start = stopwatch::now();
    park(n, never, fibers, inside);
    const double spawn_park = ns_each(fibers, start);
    const double bytes = (resident_bytes() - before) / static_cast<double>(fibers);
    start = stopwatch::now();
    never.close();
    n.join();
    return {spawn_park, "ns", {{"bytes", bytes}, {"wake", ns_each(fibers, start)}}};
  });
}

result wake(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  std::vector<long> late;
  channel<long> calls(1);
  std::thread caller([&] {
    for (long i = 0; i < rounds; ++i) {
      let_all_sleep();
      calls.send(now_ns());
    }
    calls.close();
  });
  ramie::run(with(workers), [&] {
    for (long called : calls) late.push_back(now_ns() - called);
  });
  caller.join();
  require(static_cast<long>(late.size()) == rounds, "wakes");
  return percentiles(std::move(late));
}

result idle(unsigned workers, const sizes& s) {
  const long fibers = s["fibers"], ms = s["ms"];
  channel<int> never(0), settled(1);
  result found{};
  std::thread observer([&] {
    (void)settled.recv();
    found = idle_cost(ms);
    never.close();
  });
  ramie::run(with_small_stacks(workers), [&] {
    ramie::nursery n;
    std::atomic<long> inside{0};
    park(n, never, fibers, inside);
    settled.send(1);
    n.join();
  });
  observer.join();
  return found;
}

}  // namespace compare
