// SPDX-License-Identifier: BSL-1.0
// matmul N [THREADS] with oneTBB: quarters of the result, two products each, one after the other.
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "../yardstick.hpp"

namespace {

void multiply(const int* a, const int* b, int* c, int n, int stride) {
  if (n <= yardstick::smallest_matrix) return yardstick::multiply_small(a, b, c, n, stride);
  const int k = n / 2, down = k * stride;
  const auto quarters = [=](const int* left, const int* top) {
    tbb::task_group children;
    children.run([=] { multiply(left, top, c, k, stride); });
    children.run([=] { multiply(left, top + k, c + k, k, stride); });
    children.run([=] { multiply(left + down, top, c + down, k, stride); });
    children.run_and_wait([=] { multiply(left + down, top + k, c + down + k, k, stride); });
  };
  quarters(a, b);
  quarters(a + k, b + down);
}

}  // namespace

int main(int argc, char** argv) {
  const auto n = static_cast<int>(yardstick::argument(argc, argv, 1, 2048));
  tbb::task_arena arena(static_cast<int>(yardstick::argument(argc, argv, 2, yardstick::default_threads())));
  std::printf("threads: %d\n", arena.max_concurrency());
  arena.execute([n] {
    yardstick::measure_matmul(n, [](const int* a, const int* b, int* c, int size) { multiply(a, b, c, size, size); });
  });
  return 0;
}
