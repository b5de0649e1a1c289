// SPDX-License-Identifier: BSL-1.0
// What nurseries cost, beside the floors of this machine, Boost.Fiber and oneTBB where they are installed, all in
// one interleaved run.
//
//   nursery [rounds]            medians over rounds (default 7)
//   nursery --million           one million spawned, then joined: time and peak memory, in this process alone
//   nursery --only WORK COUNT   one workload, for a profiler: batch, single, fib
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/rows.hpp>

#if defined(HAVE_BOOST_FIBER)
#include <support/boost_fiber.hpp>
#endif
#if defined(HAVE_TBB)
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#endif

namespace {

using bench::ns_each;
using bench::stopwatch;

ramie::options with(unsigned workers) {
  ramie::options o;
  o.workers = workers;
  o.elastic = false;
  return o;
}

// Spawn `at_once` empty children, join them, again and again.
double batches(unsigned workers, int at_once, long total) {
  return ramie::run(with(workers), [&] {
    const auto start = stopwatch::now();
    for (long done = 0; done < total; done += at_once) {
      ramie::nursery n;
      for (int i = 0; i < at_once; ++i) n.spawn([] {});
      n.join();
    }
    return ns_each(total, start);
  });
}

// A nursery at every level; one half is spawned, the other computed by the owner itself.
long fib(int n) {
  if (n < 2) return n;
  long half = 0;
  ramie::nursery scope;
  scope.spawn([&half, n] { half = fib(n - 1); });
  const long other = fib(n - 2);
  scope.join();
  return half + other;
}

long calls_of(int n) {  // spawns that fib(n) makes
  long before = 0, now = 0;
  for (int i = 2; i <= n; ++i) before = std::exchange(now, now + before + 1);
  return now;
}

double fork_join(unsigned workers, int n) {
  return ramie::run(with(workers), [&] {
    const auto start = stopwatch::now();
    volatile long result = fib(n);
    (void)result;
    return ns_each(calls_of(n), start);
  });
}

// The tree of skynet: ten children at each level, a million leaves, sums by join.
long skynet(long first, long size) {
  if (size == 1) return first;
  long sums[10];
  ramie::nursery n;
  for (int i = 0; i < 10; ++i) {
    n.spawn([&sums, first, size, i] { sums[i] = skynet(first + i * (size / 10), size / 10); });
  }
  n.join();
  long sum = 0;
  for (const long s : sums) sum += s;
  return sum;
}

double skynet_ms(unsigned workers) {
  return ramie::run(with(workers), [&] {
    const auto start = stopwatch::now();
    if (skynet(0, 1'000'000) != 499'999'500'000) std::abort();
    return ns_each(1, start) / 1e6;
  });
}

#if defined(HAVE_TBB)
namespace tbb = oneapi::tbb;

double in_tbb(int threads, const std::function<void()>& work, long operations) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  const auto start = stopwatch::now();
  arena.execute(work);
  return ns_each(operations, start);
}

double tbb_batches(int threads, int at_once, long total) {
  return in_tbb(
      threads,
      [&] {
        for (long done = 0; done < total; done += at_once) {
          tbb::task_group g;
          for (int i = 0; i < at_once; ++i) g.run([] {});
          g.wait();
        }
      },
      total);
}

long tbb_fib(int n) {
  if (n < 2) return n;
  long half = 0;
  tbb::task_group g;
  g.run([&half, n] { half = tbb_fib(n - 1); });
  const long other = tbb_fib(n - 2);
  g.wait();
  return half + other;
}

double tbb_fork_join(int threads, int n) {
  return in_tbb(
      threads,
      [n] {
        volatile long result = tbb_fib(n);
        (void)result;
      },
      calls_of(n));
}
#endif

int million() {
  constexpr long count = 1'000'000;
  const double each = ramie::run(with(1), [&] {
    const auto start = stopwatch::now();
    ramie::nursery n;
    for (long i = 0; i < count; ++i) n.spawn([] {});
    n.join();
    return ns_each(count, start);
  });
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf("1,000,000 spawned, then joined: %.1f ns a task, peak %.0f MB\n", each,
              static_cast<double>(used.ru_maxrss) / 1024);
  return 0;
}

int only(const char* work, long count) {
  if (std::strcmp(work, "batch") == 0) std::printf("%.1f\n", batches(1, 1'000, count));
  if (std::strcmp(work, "single") == 0) std::printf("%.1f\n", batches(1, 1, count));
  if (std::strcmp(work, "fib") == 0) std::printf("%.1f\n", fork_join(1, static_cast<int>(count)));
  if (std::strcmp(work, "fib2") == 0) std::printf("%.1f\n", fork_join(2, static_cast<int>(count)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--million") == 0) return million();
  if (argc > 3 && std::strcmp(argv[1], "--only") == 0) return only(argv[2], std::atol(argv[3]));
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  constexpr long total = 1'000'000;
  bench::workload boost_1000, boost_1, tbb_1000, tbb_1000_2, tbb_fib_1, tbb_fib_2;
#if defined(HAVE_BOOST_FIBER)
  boost_1000 = [] { return bench::boost_spawn(1'000, total / 5); };
  boost_1 = [] { return bench::boost_spawn(1, total / 5); };
#endif
#if defined(HAVE_TBB)
  tbb_1000 = [] { return tbb_batches(1, 1'000, total); };
  tbb_1000_2 = [] { return tbb_batches(2, 1'000, total); };
  tbb_fib_1 = [] { return tbb_fork_join(1, 27); };
  tbb_fib_2 = [] { return tbb_fork_join(2, 27); };
#endif
  std::vector<bench::row> rows;
  rows.push_back(
      {"spawn + join, batches of 1000", 50, 38, 0, 1, {[] { return batches(1, 1'000, total); }, boost_1000, tbb_1000}});
  rows.push_back({"  the same, two workers", 80, 60, 0, 1, {[] { return batches(2, 1'000, total); }, {}, tbb_1000_2}});
  rows.push_back({"spawn + join, one at a time", 60, 45, 0, 1, {[] { return batches(1, 1, total); }, boost_1, {}}});
  rows.push_back({"fib(30), nursery at every level", 55, 38, 0, 1, {[] { return fork_join(1, 30); }, {}, tbb_fib_1}});
  rows.push_back(
      {"  the same, two workers", 55 / 1.7, 38 / 1.9, 0, 1, {[] { return fork_join(2, 30); }, {}, tbb_fib_2}});
  rows.push_back({"skynet by join, 1M leaves, ms", 70, 50, 0, 1, {[] { return skynet_ms(1); }, {}, {}}});
  rows.push_back({"  the same, two workers", 45, 30, 0, 1, {[] { return skynet_ms(2); }, {}, {}}});
  bench::run_table(std::move(rows), {"ramie", "Boost.Fiber", "oneTBB"}, rounds);
}
