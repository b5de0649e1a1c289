// SPDX-License-Identifier: BSL-1.0
// skynet [THREADS]: a loop over ten children at every node.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

std::size_t skynet(std::size_t number, std::size_t leaves) {
  if (leaves == 1) return number;
  const std::size_t below = leaves / 10;
  std::size_t sums[10];
  ramie::parallel_for(10, [&](std::size_t i) { sums[i] = skynet(number + i * below, below); });
  std::size_t sum = 0;
  for (const std::size_t each : sums) sum += each;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  ramie::options o;
  o.workers = static_cast<unsigned>(yardstick::argument(argc, argv, 1, yardstick::default_threads()));
  std::printf("threads: %u\n", o.workers);
  return ramie::run(o, [] {
    const auto run = [] { yardstick::require(skynet(0, yardstick::skynet_leaves) == yardstick::skynet_sum, "skynet"); };
    run();
    const auto start = yardstick::clock::now();
    run();
    yardstick::report(yardstick::microseconds_since(start));
    return 0;
  });
}
