// SPDX-License-Identifier: BSL-1.0
// What the core benchmarks share: a fiber from a callable, a stopwatch, medians.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace bench {

inline double ns_per(std::int64_t operations, std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / static_cast<double>(operations);
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace bench
