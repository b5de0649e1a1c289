// SPDX-License-Identifier: BSL-1.0
// What the C++ programs of bench/compare share: one command line, one line of JSON.
//
//   PROGRAM --list                                what it can do, as "workload workers" lines
//   PROGRAM WORKLOAD WORKERS KEY=NUMBER …         runs that once and prints what it found
//
// Workloads that serve ("echo", "http") print their port instead, and serve until their standard input is closed.
//
// Sizes have no defaults here: they come from workloads.json through tools/bench, so that no program differs.
#pragma once

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace compare {

using stopwatch = std::chrono::steady_clock;

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(3);
}

// Results are checked: a runtime that computes something else is not fast, but wrong.
inline void require(bool good, const char* what) {
  if (!good) fail(std::string("wrong result: ") + what);
}

class sizes {
 public:
  explicit sizes(std::span<char*> arguments) {
    for (const char* const a : arguments) {
      const char* const equals = std::strchr(a, '=');
      char* end = nullptr;
      const long number = equals != nullptr ? std::strtol(equals + 1, &end, 10) : 0;
      if (equals == nullptr || end == equals + 1 || *end != '\0') fail(std::string("not KEY=NUMBER: ") + a);
      values_[std::string(a, equals)] = number;
    }
  }
  [[nodiscard]] long operator[](const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) fail(std::string("missing size: ") + key);
    return found->second;
  }

 private:
  std::map<std::string, long> values_;
};

struct result {
  double value;
  const char* unit;
  std::vector<std::pair<const char*, double>> extra{};
};

struct workload {
  const char* name;
  unsigned max_workers;
  result (*run)(unsigned workers, const sizes&);
};

inline double ns_each(long operations, stopwatch::time_point start) {
  return std::chrono::duration<double, std::nano>(stopwatch::now() - start).count() / static_cast<double>(operations);
}

inline long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(stopwatch::now().time_since_epoch()).count();
}

inline double resident_bytes() {
  long pages = 0;
  if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Not getrusage's: that one remembers the process that forked us.
inline double peak_mb() {
  long kilobytes = 0;
  char line[256];
  if (FILE* const f = std::fopen("/proc/self/status", "r")) {
    while (std::fgets(line, sizeof line, f) != nullptr && std::sscanf(line, "VmHWM: %ld", &kilobytes) != 1) {
    }
    std::fclose(f);
  }
  return static_cast<double>(kilobytes) / 1024;
}

inline double cpu_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Latencies in ns as a result in µs.
inline result percentiles(std::vector<long> ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double p) {
    return static_cast<double>(ns[static_cast<std::size_t>(p * static_cast<double>(ns.size() - 1))]) / 1e3;
  };
  return {at(0.5), "us", {{"p99", at(0.99)}, {"max", at(1)}}};
}

// Half a millisecond is longer than any of the runtimes looks around before it sleeps; the rest is for the kernel.
inline void let_all_sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// CPU time that a second of waiting costs. By a plain thread, after a moment to settle.
inline result idle_cost(long ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return {cpu_ms() - before, "ms"};
}

inline long spawns_of_fib(int n) {
  long before = 0, now = 0;
  for (int i = 2; i <= n; ++i) before = std::exchange(now, now + before + 1);
  return now;
}

inline long serial_fib(int n) {
  long a = 0, b = 1;
  for (int i = 0; i < n; ++i) a = std::exchange(b, a + b);
  return a;
}

// How the same workload is timed on all runtimes. A smaller one comes first, so that what is made once is there.
// fork(n): the n-th Fibonacci number.
template <class Fork>
result timed_fib(int n, Fork fork) {
  require(fork(15) == serial_fib(15), "fib");
  const auto start = stopwatch::now();
  const long found = fork(n);
  const double ns = ns_each(spawns_of_fib(n), start);
  require(found == serial_fib(n), "fib");
  return {ns, "ns"};
}
// sum_of(size): the numbers below size, which is a power of ten.
template <class Sum>
result timed_skynet(long leaves, Sum sum_of) {
  require(sum_of(1'000) == 499'500, "skynet");
  const auto start = stopwatch::now();
  const long sum = sum_of(leaves);
  const double ns = ns_each(leaves, start);
  require(sum == leaves * (leaves - 1) / 2, "skynet");
  return {ns, "ns"};
}
// once(i): there and back.
inline constexpr long warm_up_trips = 1'000;
template <class Trip>
double round_trip_ns(long rounds, Trip once) {
  for (long i = 0; i < warm_up_trips; ++i) once(i);
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) once(i);
  return ns_each(rounds, start);
}

inline int nth_prime(long n) {
  std::vector<int> primes;
  for (int i = 2; static_cast<long>(primes.size()) < n; ++i) {
    if (std::none_of(primes.begin(), primes.end(), [i](int p) { return i % p == 0; })) primes.push_back(i);
  }
  return primes.back();
}

inline int run_program(int argc, char** argv, std::span<const workload> all) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& w : all) {
      for (unsigned n = 1; n <= w.max_workers; ++n) std::printf("%s %u\n", w.name, n);
    }
    return 0;
  }
  if (argc < 3) fail("usage: PROGRAM --list | PROGRAM WORKLOAD WORKERS KEY=NUMBER …");
  const auto workers = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  for (const auto& w : all) {
    if (std::strcmp(argv[1], w.name) != 0) continue;
    if (workers == 0 || workers > w.max_workers) fail("not with so many workers");
    const result r = w.run(workers, sizes(std::span(argv + 3, argv + argc)));
    std::printf(R"({"workload": "%s", "workers": %u, "value": %.4f, "unit": "%s", "extra": {)", w.name, workers,
                r.value, r.unit);
    const char* comma = "";
    for (const auto& [key, number] : r.extra) std::printf("%s\"%s\": %.4f", std::exchange(comma, ", "), key, number);
    std::printf("}}\n");
    return 0;
  }
  fail(std::string("no such workload: ") + argv[1]);
}

}  // namespace compare
