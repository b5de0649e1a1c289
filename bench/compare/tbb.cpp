// SPDX-License-Identifier: BSL-1.0
// oneTBB's side of bench/compare: fork-join only, its tasks can't wait for each other's messages. task_group, as its
// guide writes recursive fork-join; one half is computed by the caller itself.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <compare/program.hpp>

namespace {

namespace tbb = oneapi::tbb;
using namespace compare;

template <class F>
result on(unsigned workers, F f) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute(f);
}

void batch(long at_once) {
  tbb::task_group g;
  for (long i = 0; i < at_once; ++i) g.run([] {});
  g.wait();
}

result spawn_join(unsigned workers, const sizes& s) {
  const long at_once = s["at_once"], tasks = s["tasks"];
  return on(workers, [=]() -> result {
    batch(at_once);
    const auto start = stopwatch::now();
    for (long done = 0; done < tasks; done += at_once) batch(at_once);
    return {ns_each(tasks, start), "ns"};
  });
}

result spawn_all(unsigned workers, const sizes& s) {
  const long tasks = s["tasks"];
  return on(workers, [=]() -> result {
    const auto start = stopwatch::now();
    batch(tasks);
    return {ns_each(tasks, start), "ns", {{"peak_mb", peak_mb()}}};
  });
}

long fork_fib(int n) {
  if (n < 2) return n;
  long half = 0;
  tbb::task_group g;
  g.run([&half, n] { half = fork_fib(n - 1); });
  const long other = fork_fib(n - 2);
  g.wait();
  return half + other;
}

result fib(unsigned workers, const sizes& s) {
  const int n = static_cast<int>(s["n"]);
  return on(workers, [=]() -> result {
    return timed_fib(n, [](int k) { return fork_fib(k); });
  });
}

long tree(long first, long size) {
  if (size == 1) return first;
  long sums[10];
  tbb::task_group g;
  for (int i = 0; i < 10; ++i) {
    g.run([&sums, first, size, i] { sums[i] = tree(first + i * (size / 10), size / 10); });
  }
  g.wait();
  long sum = 0;
  for (const long v : sums) sum += v;
  return sum;
}

result skynet_join(unsigned workers, const sizes& s) {
  const long leaves = s["leaves"];
  return on(workers, [=]() -> result {
    return timed_skynet(leaves, [](long size) { return tree(0, size); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {
      {"spawn-join", 2, spawn_join},
      {"spawn-all", 1, spawn_all},
      {"fib", 2, fib},
      {"skynet-join", 2, skynet_join},
  };
  return run_program(argc, argv, all);
}
