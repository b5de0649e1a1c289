// SPDX-License-Identifier: BSL-1.0
// Fibers that yield, and fibers that are spawned and joined.
#include <compare/ramie/ramie.hpp>

namespace compare {

result yields(unsigned workers, const sizes& s) {
  const long fibers = s["fibers"], turns = s["turns"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::nursery n;
    const auto start = stopwatch::now();
    for (long i = 0; i < fibers; ++i) {
      n.spawn([turns] {
        for (long k = 0; k < turns; ++k) ramie::yield();
      });
    }
    n.join();
    return {ns_each(fibers * turns, start), "ns"};
  });
}

namespace {
void batch(long at_once) {
  ramie::nursery n;
  for (long i = 0; i < at_once; ++i) n.spawn([] {});
  n.join();
}
}  // namespace

result spawn_join(unsigned workers, const sizes& s) {
  const long at_once = s["at_once"], tasks = s["tasks"];
  return ramie::run(with(workers), [=]() -> result {
    batch(at_once);
    const auto start = stopwatch::now();
    for (long done = 0; done < tasks; done += at_once) batch(at_once);
    return {ns_each(tasks, start), "ns"};
  });
}

result spawn_all(unsigned workers, const sizes& s) {
  const long tasks = s["tasks"];
  return ramie::run(with(workers), [=]() -> result {
    const auto start = stopwatch::now();
    batch(tasks);
    return {ns_each(tasks, start), "ns", {{"peak_mb", peak_mb()}}};
  });
}

namespace {
long fork_fib(int n) {
  if (n < 2) return n;
  long half = 0;
  ramie::nursery scope;
  scope.spawn([&half, n] { half = fork_fib(n - 1); });
  const long other = fork_fib(n - 2);
  scope.join();
  return half + other;
}
}  // namespace

result fib(unsigned workers, const sizes& s) {
  const int n = static_cast<int>(s["n"]);
  return ramie::run(with(workers), [=]() -> result {
    return timed_fib(n, [](int k) { return fork_fib(k); });
  });
}

namespace {
long tree(long first, long size) {
  if (size == 1) return first;
  long sums[10];
  ramie::nursery n;
  for (int i = 0; i < 10; ++i) {
    n.spawn([&sums, first, size, i] { sums[i] = tree(first + i * (size / 10), size / 10); });
  }
  n.join();
  long sum = 0;
  for (const long v : sums) sum += v;
  return sum;
}
}  // namespace

result skynet_join(unsigned workers, const sizes& s) {
  const long leaves = s["leaves"];
  return ramie::run(with(workers), [=]() -> result {
    return timed_skynet(leaves, [](long size) { return tree(0, size); });
  });
}

}  // namespace compare
