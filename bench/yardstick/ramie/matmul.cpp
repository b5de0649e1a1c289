// SPDX-License-Identifier: BSL-1.0
// matmul N [THREADS]: quarters of the result, two products each, one after the other; four calls at once.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

void multiply(const int* a, const int* b, int* c, int n, int stride) {
  if (n <= yardstick::smallest_matrix) return yardstick::multiply_small(a, b, c, n, stride);
  const int k = n / 2, down = k * stride;
  const auto quarters = [=](const int* left, const int* top) {
    // A caller begins with the last one and goes on upwards: so it goes through memory forwards, as prefetchers like it.
    ramie::parallel_invoke([=] { multiply(left + down, top + k, c + down + k, k, stride); },
                           [=] { multiply(left + down, top, c + down, k, stride); },
                           [=] { multiply(left, top + k, c + k, k, stride); },
                           [=] { multiply(left, top, c, k, stride); });
  };
  quarters(a, b);
  quarters(a + k, b + down);
}

}  // namespace

int main(int argc, char** argv) {
  const auto n = static_cast<int>(yardstick::argument(argc, argv, 1, 2048));
  ramie::options o;
  o.workers = static_cast<unsigned>(yardstick::argument(argc, argv, 2, yardstick::default_threads()));
  std::printf("threads: %u\n", o.workers);
  return ramie::run(o, [n] {
    yardstick::measure_matmul(n, [](const int* a, const int* b, int* c, int size) { multiply(a, b, c, size, size); });
    return 0;
  });
}
