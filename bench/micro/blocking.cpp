// SPDX-License-Identifier: BSL-1.0
// Blocking calls of several lengths, one after the other, by a fiber that is alone with its worker; and what they cost in
// processor time, of the worker and of the pool's thread together.
#include "micro.hpp"

#include <ctime>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <ramie/ramie.hpp>

#include "one_worker.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

void compute_for(microseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (length > 0us && std::chrono::steady_clock::now() < end) {
  }
}

double processor_us() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

template <class Call>
void calls(micro::Bench& bench, const std::string& name, Call call) {
  const double before = processor_us();
  long made = 0;
  bench.run(name, [&] {
    ++made;
    call();
  });
  std::printf("    %.1f µs of processor time a call\n", (processor_us() - before) / static_cast<double>(made));
}

}  // namespace

void micro::blocking(Bench& bench) {
  ramie::run(one_worker(), [&] {
    for (const auto length : {0us, 10us, 30us, 60us}) {
      calls(bench, "computes for " + std::to_string(length.count()) + " µs",
            [=] { ramie::blocking([=] { compute_for(length); }); });
    }
    calls(bench, "sleeps for 100 µs", [] { ramie::blocking([] { std::this_thread::sleep_for(100us); }); });
    calls(bench, "empty, after a sleep of 200 µs", [] {
      ramie::sleep_for(200us);
      ramie::blocking([] {});
    });
  });
}
