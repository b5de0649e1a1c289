// SPDX-License-Identifier: BSL-1.0
// nqueens [THREADS]: a nursery a board, a child for each row in which the next queen may stand.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

using yardstick::board;
using yardstick::queens;

int place(int column, board b) {
  if (column == queens) return 1;
  int found[queens];
  int children = 0;
  ramie::nursery n;
  for (int row = 0; row < queens; ++row) {
    if (!yardstick::may_stand(b, column, row)) continue;
    b[static_cast<std::size_t>(column)] = static_cast<char>(row);
    n.spawn([&out = found[children++], column, b] { out = place(column + 1, b); });
  }
  n.join();
  int sum = 0;
  for (int i = 0; i < children; ++i) sum += found[i];
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  ramie::options o;
  o.workers = static_cast<unsigned>(yardstick::argument(argc, argv, 1, yardstick::default_threads()));
  std::printf("threads: %u\n", o.workers);
  return ramie::run(o, [] {
    const auto run = [] { yardstick::require(place(0, board{}) == yardstick::queens_solutions, "nqueens"); };
    run();
    const auto start = yardstick::clock::now();
    run();
    const long us = yardstick::microseconds_since(start);
    std::printf("output: %d\n", yardstick::queens_solutions);
    yardstick::report(us);
    return 0;
  });
}
