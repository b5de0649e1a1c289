// SPDX-License-Identifier: BSL-1.0
// fib N [THREADS] with oneTBB: a task_group a call, one child run, the other one called.
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "../yardstick.hpp"

namespace {

std::size_t fib(std::size_t n) {
  if (n < 2) return n;
  std::size_t x = 0, y = 0;
  tbb::task_group child;
  child.run([&x, n] { x = fib(n - 1); });
  child.run_and_wait([&y, n] { y = fib(n - 2); });
  return x + y;
}

}  // namespace

int main(int argc, char** argv) {
  const auto n = yardstick::argument(argc, argv, 1, 39);
  tbb::task_arena arena(static_cast<int>(yardstick::argument(argc, argv, 2, yardstick::default_threads())));
  std::printf("threads: %d\n", arena.max_concurrency());
  arena.execute([n] {
    (void)fib(30);
    const auto start = yardstick::clock::now();
    const std::size_t result = fib(n);
    const long us = yardstick::microseconds_since(start);
    std::printf("output: %zu\n", result);
    yardstick::report(us);
  });
  return 0;
}
