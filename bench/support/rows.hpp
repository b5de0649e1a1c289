// SPDX-License-Identifier: BSL-1.0
// Rows of a table that are measured in rounds, one after the other, so that noise hits all alike; with the
// floors of this machine, by which must and aim are scaled: they are told for a switch of 4.7 ns and an RMW of
// 6.0 ns.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using stopwatch = std::chrono::steady_clock;

inline double ns_each(long operations, stopwatch::time_point start) {
  return std::chrono::duration<double, std::nano>(stopwatch::now() - start).count() / static_cast<double>(operations);
}

inline double raw_switch() {
  namespace context = boost::context::detail;
  constexpr long rounds = 2'000'000;
  static char stack[64 * 1024];
  context::transfer_t there{context::make_fcontext(stack + sizeof stack, sizeof stack,
                                                   [](context::transfer_t t) {
                                                     for (;;) t = context::jump_fcontext(t.fctx, nullptr);
                                                   }),
                            nullptr};
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) there = context::jump_fcontext(there.fctx, nullptr);
  return ns_each(2 * rounds, start);
}

inline double raw_rmw() {
  constexpr long rounds = 5'000'000;
  std::atomic<long> word{0};
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) word.fetch_add(1);
  return ns_each(rounds, start);
}

using workload = std::function<double()>;

struct row {
  const char* name;
  double must, aim;            // at the reference floors; 0: none
  int switches, rmws;          // of the path: how the floors of this run scale must and aim
  std::vector<workload> runs;  // ours, then the peers', in the table's order; empty: that peer has none
  std::vector<std::vector<double>> found{};
};

inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Measures and prints. `names` are the columns of `runs`.
inline void run_table(std::vector<row> rows, const std::vector<const char*>& names, int rounds) {
  rows.insert(rows.begin(),
              {row{"raw fcontext switch", 0, 0, 1, 0, {raw_switch}}, row{"uncontended RMW", 0, 0, 0, 1, {raw_rmw}}});
  for (auto& r : rows) r.found.resize(names.size());
  for (int n = 0; n < rounds; ++n) {
    for (auto& r : rows) {
      for (std::size_t i = 0; i < r.runs.size(); ++i) {
        if (r.runs[i]) r.found[i].push_back(r.runs[i]());
      }
    }
    std::fprintf(stderr, "\rround %d of %d", n + 1, rounds);
  }
  std::fprintf(stderr, "\r%*s\r", 30, "");
  const double raw = median(rows[0].found[0]), rmw = median(rows[1].found[0]);
  std::printf("%-34s", "ns, median");
  for (const char* const name : names) std::printf(" %11s", name);
  std::printf(" %8s %8s %8s %8s\n", "best", "x switch", "must", "aim");
  for (const auto& r : rows) {
    std::printf("%-34s", r.name);
    for (const auto& column : r.found) {
      if (column.empty()) {
        std::printf(" %11s", "");
      } else {
        std::printf(" %11.1f", median(column));
      }
    }
    const auto& ours = r.found[0];
    std::printf(" %8.1f %8.1f", *std::min_element(ours.begin(), ours.end()), median(ours) / raw);
    const double scale = (r.switches * raw + r.rmws * rmw) / (r.switches * 4.7 + r.rmws * 6.0);
    if (r.must > 0) std::printf(" %8.1f %8.1f", r.must * scale, r.aim * scale);
    std::printf("\n");
  }
  std::printf("must and aim are scaled by what this run's floors make of the switches and RMWs of each path\n");
}

}  // namespace bench
