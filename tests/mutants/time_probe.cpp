// SPDX-License-Identifier: BSL-1.0
// What a flaw of the timekeeper, or of its wheel, must not get past. Ends with 0 if all is well; hangs count as noticed.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include <ramie/ramie.hpp>

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

ramie::options workers(unsigned n) {
  ramie::options o;
  o.workers = n;
  o.elastic = false;
  return o;
}

// Near and far, more than one batch of them.
bool sleepers() {
  std::atomic<int> early{0}, woken{0};
  ramie::run(workers(2), [&] {
    ramie::nursery n;
    for (int i = 0; i < 300; ++i) {
      n.spawn([&, i] {
        const auto time = std::chrono::microseconds(i % 3 == 0 ? 1'300 * (i % 100) : 10 * i);
        const auto start = clock::now();
        ramie::sleep_for(time);
        early.fetch_add(clock::now() < start + time);
        woken.fetch_add(1);
      });
    }
    n.join();
  });
  return early == 0 && woken == 300;
}

bool hogged() {
  std::atomic<bool> over{false};
  ramie::run(workers(2), [&] {
    ramie::nursery n;
    n.spawn([&] {
      ramie::sleep_for(30ms);
      over.store(true);
    });
    ramie::yield();
    n.spawn([&] {
      while (!over.load()) std::this_thread::yield();
    });
    n.join();
  });
  return over.load();
}

bool timeouts() {
  bool cut_short = false;
  ramie::run(workers(1), [&] { cut_short = !ramie::with_timeout(5ms, [] { ramie::sleep_for(1h); }); });
  return cut_short;
}

}  // namespace

int main() {
  if (!sleepers()) return std::puts("somebody woke early, or not at all"), 1;
  for (int i = 0; i < 20; ++i) {
    if (!hogged()) return std::puts("a deadline was not kept"), 1;
  }
  if (!timeouts()) return std::puts("a scope outlived its time"), 1;
  return 0;
}
