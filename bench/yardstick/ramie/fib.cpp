// SPDX-License-Identifier: BSL-1.0
// fib N [THREADS]: both calls at once, at every level.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

std::size_t fib(std::size_t n) {
  if (n < 2) return n;
  std::size_t x = 0, y = 0;
  ramie::parallel_invoke([&] { x = fib(n - 1); }, [&] { y = fib(n - 2); });
  return x + y;
}

}  // namespace

int main(int argc, char** argv) {
  const auto n = yardstick::argument(argc, argv, 1, 39);
  ramie::options o;
  o.workers = static_cast<unsigned>(yardstick::argument(argc, argv, 2, yardstick::default_threads()));
  std::printf("threads: %u\n", o.workers);
  return ramie::run(o, [n] {
    (void)fib(30);
    const auto start = yardstick::clock::now();
    const std::size_t result = fib(n);
    const long us = yardstick::microseconds_since(start);
    std::printf("output: %zu\n", result);
    yardstick::report(us);
    return 0;
  });
}
