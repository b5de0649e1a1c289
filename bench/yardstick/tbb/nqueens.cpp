// SPDX-License-Identifier: BSL-1.0
// nqueens [THREADS] with oneTBB: a task_group a board, a child for each row in which the next queen may stand.
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "../yardstick.hpp"

namespace {

using yardstick::board;
using yardstick::queens;

int place(int column, board b) {
  if (column == queens) return 1;
  int found[queens];
  int children = 0;
  tbb::task_group group;
  for (char row = 0; row < queens; ++row) {
    if (!yardstick::may_stand(b, column, row)) continue;
    b[static_cast<std::size_t>(column)] = row;
    group.run([&out = found[children++], column, b] { out = place(column + 1, b); });
  }
  group.wait();
  int sum = 0;
  for (int i = 0; i < children; ++i) sum += found[i];
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  tbb::task_arena arena(static_cast<int>(yardstick::argument(argc, argv, 1, yardstick::default_threads())));
  std::printf("threads: %d\n", arena.max_concurrency());
  arena.execute([] {
    const auto run = [] { yardstick::require(place(0, board{}) == yardstick::queens_solutions, "nqueens"); };
    run();
    const auto start = yardstick::clock::now();
    run();
    const long us = yardstick::microseconds_since(start);
    std::printf("output: %d\n", yardstick::queens_solutions);
    yardstick::report(us);
  });
  return 0;
}
