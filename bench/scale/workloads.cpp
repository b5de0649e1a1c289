// SPDX-License-Identifier: BSL-1.0
#include "workloads.hpp"

#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/blocking.hpp>
#include <ramie/channel.hpp>
#include <ramie/mutex.hpp>
#include <ramie/nursery.hpp>
#include <ramie/parallel.hpp>
#include <ramie/semaphore.hpp>

#include <ramie/platform/thread.hpp>

#include "simulator.hpp"

namespace scale {

namespace {

// As many more levels as give each worker the same share.
int fib_size(unsigned workers) {
  return 20 + static_cast<int>(std::lround(1.44 * std::log2(workers)));
}
long spawns_of_fib(int n) {
  long before = 0, now = 0;
  for (int i = 2; i <= n; ++i) before = std::exchange(now, now + before + 1);
  return now;
}

long fork_fib(int n) {
  if (n < 2) return n;
  long half = 0;
  ramie::nursery scope;
  scope.spawn([&half, n] { half = fork_fib(n - 1); });
  const long other = fork_fib(n - 2);
  scope.join();
  return half + other;
}
void fib(unsigned workers, const measured& measure) {
  (void)fork_fib(fib_size(workers) - 2);
  measure(spawns_of_fib(fib_size(workers)), [&] { (void)fork_fib(fib_size(workers)); });
}

long invoke_fib(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  ramie::parallel_invoke([&] { a = invoke_fib(n - 1); }, [&] { b = invoke_fib(n - 2); });
  return a + b;
}
void fib_invoke(unsigned workers, const measured& measure) {
  (void)invoke_fib(fib_size(workers) - 2);
  measure(spawns_of_fib(fib_size(workers)), [&] { (void)invoke_fib(fib_size(workers)); });
}

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
void skynet(unsigned workers, const measured& measure) {
  const long leaves = workers <= 4 ? 10'000 : 100'000;
  (void)tree(0, leaves / 10);
  measure(leaves, [&] { (void)tree(0, leaves); });
}

// A fiber a worker, each with what is its own.
void on_each_worker(unsigned workers, const std::function<void()>& body) {
  ramie::nursery n;
  for (unsigned i = 0; i < workers; ++i) n.spawn([&] { body(); });
  n.join();
}

void batches(unsigned workers, const measured& measure) {
  constexpr long at_once = 100, rounds = 150;
  const auto run = [](long times) {
    for (long r = 0; r < times; ++r) {
      ramie::nursery n;
      for (long i = 0; i < at_once; ++i) n.spawn([] {});
      n.join();
    }
  };
  on_each_worker(workers, [&] { run(5); });
  measure(at_once * rounds * workers, [&] { on_each_worker(workers, [&] { run(rounds); }); });
}

// As many pairs as workers.
void pairs(unsigned workers, const measured& measure) {
  constexpr long rounds = 5'000;
  const auto run = [workers](long times) {
    ramie::nursery n;
    for (unsigned i = 0; i < workers; ++i) {
      ramie::channel<long> there(0), back(0);
      n.spawn([=]() mutable {
        for (long v : there) back.send(v);
      });
      n.spawn([=]() mutable {
        for (long k = 0; k < times; ++k) {
          there.send(k);
          (void)back.recv();
        }
        there.close();
      });
    }
    n.join();
  };
  run(100);
  measure(rounds * workers, [&] { run(rounds); });
}

void four_to_four(unsigned, const measured& measure) {
  const auto run = [](long each) {
    ramie::channel<long> c(128);
    ramie::nursery out;
    for (int r = 0; r < 4; ++r) {
      out.spawn([c]() mutable {
        long sum = 0;
        for (long v : c) sum += v;
      });
    }
    ramie::nursery in;
    for (int k = 0; k < 4; ++k) {
      in.spawn([c, each]() mutable {
        for (long i = 0; i < each; ++i) c.send(i);
      });
    }
    in.join();
    c.close();
    out.join();
  };
  run(500);
  measure(4 * 5'000, [&] { run(5'000); });
}

void one_mutex(unsigned workers, const measured& measure) {
  const auto run = [fibers = 2 * workers](long each) {
    ramie::mutex m;
    long counter = 0;
    ramie::nursery n;
    for (unsigned i = 0; i < fibers; ++i) {
      n.spawn([&m, &counter, each] {
        for (long k = 0; k < each; ++k) {
          std::lock_guard hold(m);
          ++counter;
        }
      });
    }
    n.join();
  };
  run(20);
  measure(2L * workers * 500, [&] { run(500); });
}

// Plain threads that hand something in: one for four workers.
constexpr picoseconds work_of_request = 2'000'000;
unsigned threads_for(unsigned workers) {
  return (workers + 3) / 4;
}
void from_threads(unsigned threads, const std::function<void(unsigned)>& body) {
  std::vector<ramie::platform::thread> all;
  for (unsigned i = 0; i < threads; ++i) all.emplace_back([i, &body] { body(i); });
  for (auto& t : all) t.join();
}

// Each thread sends to a fiber of its own, which spawns one for each request.
void requests(unsigned workers, const measured& measure) {
  constexpr long each = 1'000;
  const auto run = [threads = threads_for(workers)](long times) {
    std::vector<ramie::channel<long>> lines;
    ramie::nursery n;
    for (unsigned i = 0; i < threads; ++i) {
      lines.emplace_back(128);
      n.spawn([line = lines.back()]() mutable {
        ramie::nursery handlers;
        for ([[maybe_unused]] long request : line) handlers.spawn([] { spend(work_of_request); });
        handlers.join();
      });
    }
    // Its worker would wait for the threads.
    n.spawn([&] {
      ramie::blocking([&] {
        from_threads(threads, [&](unsigned i) {
          for (long k = 0; k < times; ++k) lines[i].send(k);
          lines[i].close();
        });
      });
    });
    n.join();
  };
  run(200);
  measure(each * threads_for(workers), [&] { run(each); });
}

// Each thread wakes fibers that wait for it.
void wakes(unsigned workers, const measured& measure) {
  constexpr long fibers = 16, each = 100;
  const auto run = [threads = threads_for(workers)](long times) {
    std::vector<std::unique_ptr<ramie::semaphore>> doors;
    ramie::nursery n;
    for (unsigned i = 0; i < threads; ++i) {
      doors.push_back(std::make_unique<ramie::semaphore>(0));
      for (long f = 0; f < fibers; ++f) {
        n.spawn([&door = *doors.back(), times] {
          for (long k = 0; k < times; ++k) {
            door.acquire();
            spend(work_of_request);
          }
        });
      }
    }
    n.spawn([&] {
      ramie::blocking([&] {
        from_threads(threads, [&](unsigned i) {
          for (long k = 0; k < times * fibers; ++k) {
            doors[i]->release();
            spend(work_of_request / 4);
          }
        });
      });
    });
    n.join();
  };
  run(10);
  measure(fibers * each * threads_for(workers), [&] { run(each); });
}

constexpr workload table[] = {
    {"fib", "fork-join fib, a nursery a level", "task", fib},
    {"fib-invoke", "fib by parallel_invoke", "call", fib_invoke},
    {"skynet", "skynet, results by join", "leaf", skynet},
    {"batches", "a fiber a worker: batches of 100 tasks", "task", batches},
    {"pairs", "a pair a worker: rendezvous ping-pong", "round trip", pairs},
    {"4-4", "one channel of 128, 4 to 4", "message", four_to_four},
    {"mutex", "one mutex, 2 fibers a worker", "lock", one_mutex},
    {"requests", "plain threads send, a fiber of 2 us for each", "request", requests},
    {"wakes", "plain threads wake fibers that run for 2 us", "wake", wakes},
};

}  // namespace

std::span<const workload> all_workloads() {
  return table;
}

}  // namespace scale
