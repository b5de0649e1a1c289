// SPDX-License-Identifier: BSL-1.0
// skynet [THREADS] with oneTBB: a task_group a node, nine children run, the tenth by the one that waits.
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "../yardstick.hpp"

namespace {

std::size_t skynet(std::size_t number, std::size_t leaves) {
  if (leaves == 1) return number;
  const std::size_t below = leaves / 10;
  std::size_t sums[10];
  tbb::task_group children;
  for (std::size_t i = 0; i < 9; ++i) {
    children.run([&sums, number, below, i] { sums[i] = skynet(number + i * below, below); });
  }
  children.run_and_wait([&sums, number, below] { sums[9] = skynet(number + 9 * below, below); });
  std::size_t sum = 0;
  for (const std::size_t each : sums) sum += each;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  tbb::task_arena arena(static_cast<int>(yardstick::argument(argc, argv, 1, yardstick::default_threads())));
  std::printf("threads: %d\n", arena.max_concurrency());
  arena.execute([] {
    const auto run = [] { yardstick::require(skynet(0, yardstick::skynet_leaves) == yardstick::skynet_sum, "skynet"); };
    run();
    const auto start = yardstick::clock::now();
    run();
    yardstick::report(yardstick::microseconds_since(start));
  });
  return 0;
}
