// SPDX-License-Identifier: BSL-1.0
// Simulates one workload on so many workers and prints what it found, as a line of JSON; tools/bench scale makes tables
// of it.
//
//   scale --list
//   scale WORKLOAD WORKERS [SEED]
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <ramie/runtime.hpp>

#include <ramie/runtime/current.hpp>

#include "simulator.hpp"
#include "workloads.hpp"

namespace ramie::runtime_internal {
class proxy_fiber;
extern constinit thread_local const void* helper_of;
extern constinit thread_local proxy_fiber* thread_proxy;
}  // namespace ramie::runtime_internal

namespace {

using namespace scale;

// Addresses decide which data share a line: the same in every run, if the system lets us.
void fix_addresses(char** argv) {
  const int before = ::personality(0xffffffff);
  if (before == -1 || (before & ADDR_NO_RANDOMIZE) != 0) return;
  if (::personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) != -1) ::execv("/proc/self/exe", argv);
}

struct found {
  long operations = 0;
  std::int64_t ns = 0;
  totals counted;
  std::vector<place_count> places;
};

// The transfers of the worst, an operation: [[key, transfers], …], or of lines
// [[key, transfers, [[code, transfers], …]], …].
using sums = std::map<std::uintptr_t, std::uint64_t>;
std::vector<std::pair<std::uintptr_t, std::uint64_t>> worst(const sums& all, std::size_t most) {
  std::vector<std::pair<std::uintptr_t, std::uint64_t>> found(all.begin(), all.end());
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (found.size() > most) found.resize(most);
  return found;
}
void print_sums(const sums& all, std::size_t most, long operations) {
  const char* comma = "";
  for (const auto& [key, transfers] : worst(all, most)) {
    std::printf("%s[%llu, %.5f]", std::exchange(comma, ", "), static_cast<unsigned long long>(key),
                static_cast<double>(transfers) / static_cast<double>(operations));
  }
}

void print_places(const found& f) {
  sums by_code, by_line;
  for (const auto& p : f.places) {
    by_code[p.code] += p.transfers;
    by_line[p.line] += p.transfers;
  }
  std::printf(R"("places": [)");
  print_sums(by_code, 60, f.operations);
  std::printf(R"(], "lines": [)");
  const char* comma = "";
  for (const auto& [line, transfers] : worst(by_line, 40)) {
    sums here;
    for (const auto& p : f.places) {
      if (p.line == line) here[p.code] += p.transfers;
    }
    std::printf("%s[%llu, %.5f, [", std::exchange(comma, ", "), static_cast<unsigned long long>(line),
                static_cast<double>(transfers) / static_cast<double>(f.operations));
    print_sums(here, 6, f.operations);
    std::printf("]]");
  }
  std::puts("]}");
}

void print(const workload& w, unsigned workers, const found& f) {
  const auto each = [&](auto count) { return static_cast<double>(count) / static_cast<double>(f.operations); };
  std::printf(
      R"({"workload": "%s", "workers": %u, "operations": %ld, "ns": %lld, "transfers": %.4f, "by_atomics": %.4f, )"
      R"("accesses": %.2f, "rmws": %.4f, "wakes": %.5f, "barriers": %.5f, )",
      w.name, workers, f.operations, static_cast<long long>(f.ns), each(f.counted.transfers),
      each(f.counted.atomic_transfers), each(f.counted.accesses), each(f.counted.rmws), each(f.counted.wakes),
      each(f.counted.barriers));
  print_places(f);
}

void run(const workload& w, unsigned workers, std::uint64_t seed) {
  found f;
  simulate({}, seed, [&] {
    ramie::options o;
    o.workers = workers;
    o.elastic = workers > 1;
    ramie::runtime here(o);
    here.run([&] {
      w.run(workers, [&f](long operations, const std::function<void()>& part) {
        begin_counting();
        const auto start = now_ns();
        part();
        f.ns = now_ns() - start;
        f.counted = end_counting();
        f.operations = operations;
        f.places = transfer_places();
      });
    });
  });
  print(w, workers, f);
}

}  // namespace

int main(int argc, char** argv) {
  fix_addresses(argv);
  carry(reinterpret_cast<void**>(&ramie_this_worker_local));
  carry(reinterpret_cast<void**>(&ramie::runtime_internal::thread_proxy));
  carry(const_cast<void**>(&ramie::runtime_internal::helper_of));
  for (const workload& w : all_workloads()) {
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
      std::printf("%s\t%s\t%s\n", w.name, w.what, w.operation);
    } else if ((argc == 3 || argc == 4) && std::strcmp(argv[1], w.name) == 0) {
      run(w, static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)), 
          argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 1);
      return 0;
    }
  }
  if (argc == 2) return 0;
  std::fputs("usage: scale --list | scale WORKLOAD WORKERS [SEED]\n", stderr);
  return 2;
}
