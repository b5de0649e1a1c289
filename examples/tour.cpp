// SPDX-License-Identifier: BSL-1.0
// A short tour of what ramie does. It grows with the library; `--small` is the size for tests.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>

namespace {

using stopwatch = std::chrono::steady_clock;

double seconds_since(stopwatch::time_point start) {
  return std::chrono::duration<double>(stopwatch::now() - start).count();
}

double resident_megabytes() {
  long pages = 0;
  if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<double>(pages) * 4096 / 1e6;
}

void chapter(const char* title) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  std::printf("\n%s%s%s\n", terminal ? "\033[1;36m" : "", title, terminal ? "\033[0m" : "");
}

// A door is a channel that nothing is sent through: closing it lets everybody pass.
using door = ramie::channel<int>;

void wait_at(const door& d) {
  (void)d.recv();
}

void taking_turns(int rounds) {
  chapter("Taking turns");
  const auto turns = [rounds] {
    for (int i = 0; i < rounds; ++i) ramie::yield();
  };
  const auto start = stopwatch::now();
  ramie::join_all(turns, turns);
  std::printf("  two fibers, %d turns each: %.1f ns a turn\n", rounds, seconds_since(start) * 1e9 / rounds / 2);
}

void a_million(int count) {
  chapter("A fiber that never waits never needs a stack");
  const double before = resident_megabytes();
  auto start = stopwatch::now();
  ramie::nursery n;
  for (int i = 0; i < count; ++i) n.spawn([] {});
  const double spawned = seconds_since(start);
  const double bytes = (resident_megabytes() - before) * 1e6 / count;
  start = stopwatch::now();
  n.join();
  std::printf("  %d spawned in %.0f ms, %.0f bytes each; run and joined in %.0f ms\n", count, spawned * 1e3, bytes,
              seconds_since(start) * 1e3);
}

long fib(int n) {
  if (n < 2) return n;
  ramie::nursery scope;
  auto half = scope.spawn([n] { return fib(n - 1); });
  const long other = fib(n - 2);
  scope.join();
  return half.get() + other;
}

void fork_and_join(int n) {
  chapter("Fork and join: a nursery at every level");
  const auto start = stopwatch::now();
  const long result = fib(n);
  std::printf("  fib(%d) = %ld in %.0f ms\n", n, result, seconds_since(start) * 1e3);
}

void asleep(int count) {
  chapter("Many fibers asleep at once");
  const door entrance(0);
  std::atomic<int> inside{0};
  const double before = resident_megabytes();
  auto start = stopwatch::now();
  ramie::nursery n;
  for (int i = 0; i < count; ++i) {
    n.spawn([&] {
      inside.fetch_add(1, std::memory_order_relaxed);
      wait_at(entrance);
    });
  }
  while (inside.load() != count) ramie::yield();
  const double parked = seconds_since(start);
  const double bytes = (resident_megabytes() - before) * 1e6 / count;
  start = stopwatch::now();
  entrance.close();
  n.join();
  std::printf("  %d parked in %.0f ms, %.0f bytes each with a guard page, woken and joined in %.0f ms\n", count,
              parked * 1e3, bytes, seconds_since(start) * 1e3);
}

// Three stages, each a fiber; every stage counts what passes through it, and in which time.
struct stage {
  const char* name;
  long passed = 0;
  double busy = 0;
};

void report(const stage& s) {
  std::printf("    %-10s %9ld values %7.1f million a second\n", s.name, s.passed,
              static_cast<double>(s.passed) / s.busy / 1e6);
}

void pipeline(long count) {
  chapter("A pipeline: source, filter, sum, with channels between them");
  const ramie::channel<long> numbers(128), odd(128);
  stage source{"source"}, filter{"filter"}, sum{"sum"};
  long total = 0;
  const auto timed = [](stage& s, auto work) {
    const auto start = stopwatch::now();
    work();
    s.busy = seconds_since(start);
  };
  ramie::nursery n;
  n.spawn({.name = source.name}, [&] {
    timed(source, [&] {
      for (; source.passed < count; ++source.passed) numbers.send(source.passed);
      numbers.close();
    });
  });
  n.spawn({.name = filter.name}, [&] {
    timed(filter, [&] {
      for (const long v : numbers) {
        ++filter.passed;
        if (v % 2 == 1) odd.send(v);
      }
      odd.close();
    });
  });
  n.spawn({.name = sum.name}, [&] {
    timed(sum, [&] {
      for (const long v : odd) {
        ++sum.passed;
        total += v;
      }
    });
  });
  n.join();
  std::printf("  the odd numbers below %ld add up to %ld\n", count, total);
  for (const stage* const s : {&source, &filter, &sum}) report(*s);
}

void choosing(int count) {
  chapter("Select: whoever is ready, each with the same chance");
  const ramie::channel<int> left(0), right(0), stop(0);
  int from_left = 0, from_right = 0;
  bool over = false;
  ramie::nursery n;
  for (const auto& c : {left, right}) {
    n.spawn([=] {
      for (int i = 0; i < count; ++i) c.send(i);
    });
  }
  n.spawn([&] {
    while (!over) {
      ramie::select(ramie::on_recv(left, [&](std::optional<int>) { ++from_left; }),
                    ramie::on_recv(right, [&](std::optional<int>) { ++from_right; }),
                    ramie::on_timeout(std::chrono::seconds(10), [&] { over = true; }));
      over = over || from_left + from_right == 2 * count;
    }
  });
  const auto start = stopwatch::now();
  n.join();
  std::printf("  %d from the left, %d from the right, %.0f ns a choice\n", from_left, from_right,
              seconds_since(start) * 1e9 / (2 * count));
}

void failing() {
  chapter("One fails, all unwind, nobody is left behind");
  const door never(0);
  std::atomic<int> waiting{0}, unwound{0};
  struct witness {
    std::atomic<int>& count;
    ~witness() { count.fetch_add(1); }
  };
  try {
    ramie::with_nursery([&](ramie::nursery& n) {
      for (int i = 0; i < 1'000; ++i) {
        n.spawn([&] {
          const witness w{unwound};
          waiting.fetch_add(1);
          wait_at(never);
        });
      }
      while (waiting.load() != 1'000) ramie::yield();
      n.spawn({.name = "the unlucky one"}, [] { throw std::runtime_error("no more ink"); });
      wait_at(never);  // the owner's own code is part of the scope
    });
  } catch (const std::runtime_error& e) {
    std::printf("  caught \"%s\"; %d waiting siblings had been unwound by then\n", e.what(), unwound.load());
  }
}

void in_time() {
  chapter("Deadlines");
  const door never(0);
  const auto start = stopwatch::now();
  const bool done = ramie::with_timeout(std::chrono::milliseconds(20), [&] { wait_at(never); });
  std::printf("  a wait for what never comes, bounded to 20 ms: %s after %.0f ms\n", done ? "done" : "timed out",
              seconds_since(start) * 1e3);
  const std::string winner = ramie::race(
      [&]() -> std::string {
        wait_at(never);
        return "the hare";
      },
      []() -> std::string {
        for (int i = 0; i < 10; ++i) ramie::yield();
        return "the tortoise";
      });
  std::printf("  the race went to %s\n", winner.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  const int scale = small ? 100 : 1;
  ramie::options one;
  one.workers = 1;
  one.elastic = false;  // else a second worker would start on the million while the first still spawns it
  ramie::run(one, [&] {
    taking_turns(5'000'000 / scale);
    a_million(1'000'000 / scale);
  });
  ramie::run([&] {
    fork_and_join(small ? 20 : 32);
    asleep(200'000 / scale);
    pipeline(4'000'000 / scale);
    choosing(100'000 / scale);
    failing();
    in_time();
  });
  std::printf("\nramie %s – tools/test shows that it holds.\n", ramie::version_string);
  return 0;
}
