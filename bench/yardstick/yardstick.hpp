// SPDX-License-Identifier: BSL-1.0
// What the yardstick's programs share: their arguments, the problems without any runtime, and the YAML that the driver of
// runtime-benchmarks reads. Each program runs its problem once to warm up, then measures one run.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace yardstick {

// The number in argument `index`, or `otherwise` if there is none. A number that is none, or 0, ends the program.
inline std::size_t argument(int argc, char** argv, int index, std::size_t otherwise) {
  if (index >= argc) return otherwise;
  char* end = nullptr;
  const auto number = std::strtoull(argv[index], &end, 10);
  if (*end != '\0' || number == 0) {
    std::fprintf(stderr, "%s: '%s' is not a positive number\n", argv[0], argv[index]);
    std::exit(2);
  }
  return number;
}
inline std::size_t default_threads() {
  return std::max(1u, std::thread::hardware_concurrency() / 2);
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::exit(1);
}

using clock = std::chrono::steady_clock;

inline long microseconds_since(clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - start).count();
}

// The entry of the one measured run: `what` and `size` name the problem; `each`: what there were `count` of.
inline void report(long us, const char* what = "iteration_count", std::size_t size = 1, const char* each = nullptr,
                   std::size_t count = 0) {
  std::printf("runs:\n  - %s: %zu\n    duration: %ld us\n", what, size, us);
  if (each != nullptr) {
    std::printf("    %s: %zu\n    %s/sec: %.0f\n", each, count, each, static_cast<double>(count) * 1e6 / static_cast<double>(us));
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("    max_rss: %ld KiB\n", used.ru_maxrss);
}

// skynet: ten children a level, eight levels; a leaf is its number.
inline constexpr std::size_t skynet_leaves = 100'000'000;
inline constexpr std::size_t skynet_sum = skynet_leaves / 2 * (skynet_leaves - 1);

// nqueens: a board is the row of the queen in each column so far.
inline constexpr int queens = 14;
inline constexpr int queens_solutions = 365'596;
using board = std::array<char, queens>;

inline bool may_stand(const board& b, int column, char row) {
  for (int x = 0; x < column; ++x) {
    const char other = b[static_cast<std::size_t>(x)];
    if (row == other || row == other - (column - x) || row == other + (column - x)) return false;
  }
  return true;
}

// matmul: c += a * b for n by n parts of matrices with rows of `stride`.
inline constexpr int smallest_matrix = 32;

inline void multiply_small(const int* a, const int* b, int* c, int n, int stride) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      for (int j = 0; j < n; ++j) c[i * stride + j] += a[i * stride + k] * b[k * stride + j];
    }
  }
}

// What a matmul program does besides multiplying: two matrices of ones, whose product is n everywhere.
template <class Multiply>
void measure_matmul(int n, Multiply multiply) {
  const auto cells = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  const auto run = [&] {
    const auto start = clock::now();
    const std::vector<int> a(cells, 1), b(cells, 1);
    std::vector<int> c(cells, 0);
    multiply(a.data(), b.data(), c.data(), n);
    const long us = microseconds_since(start);
    require(std::all_of(c.begin(), c.end(), [n](int cell) { return cell == n; }), "matmul");
    return us;
  };
  run();
  report(run(), "matrix_size", static_cast<std::size_t>(n));
}

}  // namespace yardstick
