// SPDX-License-Identifier: BSL-1.0
// A short tour of what ramie's core does. It grows with the library; `--small` is the size for tests.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <ramie/cancel.hpp>
#include <ramie/runtime.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/this_fiber.hpp>

namespace {

using namespace ramie::detail;
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

// Many fibers that do the same, and a way to wait for them.
class troupe {
 public:
  using part = void (*)(void*);
  troupe(part p, void* stage) : part_(p), stage_(stage) {}

  void spawn(cancel_scope& scope) {
    live_.fetch_add(1, std::memory_order_relaxed);
    ramie::detail::spawn(ops, this, scope);
  }
  void join() {
    static const wait_reason why{"tour"};
    if (live_.fetch_sub(1, std::memory_order_acq_rel) != 1) ended_.wait(why, cancellable::no);
  }
  [[nodiscard]] int cancelled() const { return cancelled_.load(); }

 private:
  static fiber_end run(void* self) noexcept {
    auto& t = *static_cast<troupe*>(self);
    try {
      t.part_(t.stage_);
      return fiber_end::done;
    } catch (const ramie::cancelled&) {
      t.cancelled_.fetch_add(1, std::memory_order_relaxed);
      return fiber_end::cancelled;
    }
  }
  static void discard(void*, discard_cause) noexcept {}
  static void retire(void* self, bool) noexcept {
    auto& t = *static_cast<troupe*>(self);
    if (t.live_.fetch_sub(1, std::memory_order_acq_rel) == 1) t.ended_.open();
  }
  static constexpr fiber_ops ops{run, discard, retire};

  part part_;
  void* stage_;
  std::atomic<int> live_{1};
  std::atomic<int> cancelled_{0};
  gate ended_;
};

void million(int count) {
  chapter("A million fibers");
  const double before = resident_megabytes();
  std::atomic<long> sum{0};
  troupe all([](void* s) { static_cast<std::atomic<long>*>(s)->fetch_add(1, std::memory_order_relaxed); }, &sum);
  cancel_scope scope;
  auto start = stopwatch::now();
  for (int i = 0; i < count; ++i) all.spawn(scope);
  const double spawned = seconds_since(start);
  const double peak = resident_megabytes();
  all.join();
  std::printf("  spawned %d in %.0f ms, all finished after %.0f ms: %.0f ns a fiber, %.0f MB at most\n", count,
              spawned * 1e3, seconds_since(start) * 1e3, seconds_since(start) * 1e9 / count, peak - before);
  std::printf("  (a fiber that never waits is a function call: it never gets a stack of its own)\n");
}

void parked(int count) {
  chapter("Many fibers asleep at once");
  struct stage {
    gate door;
    std::atomic<int> inside{0};
  } s;
  troupe all(
      [](void* p) {
        static const wait_reason why{"tour door"};
        auto& here = *static_cast<stage*>(p);
        here.inside.fetch_add(1, std::memory_order_relaxed);
        here.door.wait(why);
      },
      &s);
  cancel_scope scope;
  const double before = resident_megabytes();
  auto start = stopwatch::now();
  for (int i = 0; i < count; ++i) all.spawn(scope);
  while (s.inside.load() != count) ramie::yield();
  const double asleep = seconds_since(start);
  const double bytes = (resident_megabytes() - before) * 1e6 / count;
  start = stopwatch::now();
  s.door.open();
  all.join();
  std::printf("  %d parked in %.0f ms, %.0f bytes each with a guard page, woken and finished in %.0f ms\n", count,
              asleep * 1e3, bytes, seconds_since(start) * 1e3);
}

void switching(int rounds) {
  chapter("Taking turns");
  struct stage {
    int rounds;
  } s{rounds};
  troupe two(
      [](void* p) {
        for (int i = static_cast<stage*>(p)->rounds; i > 0; --i) ramie::yield();
      },
      &s);
  cancel_scope scope;
  const auto start = stopwatch::now();
  two.spawn(scope);
  two.spawn(scope);
  two.join();
  std::printf("  two fibers, %d turns each: %.1f ns a turn\n", rounds, seconds_since(start) * 1e9 / rounds / 2);
}

void cancelling(int count) {
  chapter("Cancellation");
  struct stage {
    gate never;
    std::atomic<int> inside{0};
  } s;
  troupe all(
      [](void* p) {
        static const wait_reason why{"tour never"};
        auto& here = *static_cast<stage*>(p);
        here.inside.fetch_add(1);
        here.never.wait(why);
      },
      &s);
  cancel_scope scope;
  for (int i = 0; i < count; ++i) all.spawn(scope);
  while (s.inside.load() != count) ramie::yield();
  const auto start = stopwatch::now();
  scope.cancel({ramie::cancel_kind::requested, "the tour is over", ramie::source_location::current(), 0});
  all.join();
  std::printf("  %d fibers waited for ever; one cancel unwound %d of them in %.1f ms\n", count, all.cancelled(),
              seconds_since(start) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  const int scale = small ? 100 : 1;
  ramie::options one;
  one.workers = 1;
  one.elastic = false;  // else a second worker would start on the million while the first still spawns it
  ramie::run(one, [&] {
    switching(5'000'000 / scale);
    million(1'000'000 / scale);
  });
  ramie::run([&] {
    parked(200'000 / scale);
    cancelling(50'000 / scale);
  });
  std::printf("\nramie %s – tools/test shows that it holds.\n", ramie::version_string);
  return 0;
}
