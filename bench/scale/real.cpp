// SPDX-License-Identifier: BSL-1.0
// The same workloads on this machine, by its clock: how far the simulator is off. Prints the median of some runs.
//
//   scale-real WORKLOAD WORKERS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <ramie/runtime.hpp>

#include "simulator.hpp"
#include "workloads.hpp"

namespace scale {

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
void spend(picoseconds time) noexcept {
  for (const auto end = now_ns() + time / 1'000; now_ns() < end;) {
  }
}

namespace {

// A part is short, and the first ones find nothing in the caches: many, and their median.
void run(const workload& w, unsigned workers) {
  constexpr std::int64_t enough = 200'000'000;
  std::vector<double> each;
  ramie::options o;
  o.workers = workers;
  o.elastic = workers > 1;
  ramie::runtime here(o);
  here.run([&] {
    w.run(workers, [&](long operations, const std::function<void()>& part) {
      for (const auto begin = now_ns(); now_ns() - begin < enough;) {
        const auto start = now_ns();
        part();
        each.push_back(static_cast<double>(now_ns() - start) / static_cast<double>(operations));
      }
    });
  });
  std::sort(each.begin(), each.end());
  std::printf(R"({"workload": "%s", "workers": %u, "each_ns": %.3f})"
              "\n",
              w.name, workers, each[each.size() / 2]);
}

}  // namespace

}  // namespace scale

int main(int argc, char** argv) {
  for (const auto& w : scale::all_workloads()) {
    if (argc != 3 || std::strcmp(argv[1], w.name) != 0) continue;
    scale::run(w, static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
    return 0;
  }
  std::fputs("usage: scale-real WORKLOAD WORKERS\n", stderr);
  return 2;
}
