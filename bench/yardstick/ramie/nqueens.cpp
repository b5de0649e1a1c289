// SPDX-License-Identifier: BSL-1.0
// nqueens [THREADS]: at every board, a loop over the rows in which the next queen may stand.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

using yardstick::board;
using yardstick::queens;

int place(int column, const board& b) {
  if (column == queens) return 1;
  int found[queens];
  char rows[queens];
  std::size_t children = 0;
  for (char row = 0; row < queens; ++row) {
    if (yardstick::may_stand(b, column, row)) rows[children++] = row;
  }
  if (children == 0) return 0;
  ramie::parallel_for(children, [&, column](std::size_t i) {
    board next = b;
    next[static_cast<std::size_t>(column)] = rows[i];
    found[i] = place(column + 1, next);
  });
  int sum = 0;
  for (std::size_t i = 0; i < children; ++i) sum += found[i];
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
