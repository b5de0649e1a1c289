// SPDX-License-Identifier: BSL-1.0
// Runs a small concurrent program, the real code over the model's atomics, one thread at a time, over many schedules.
//
// The program's threads are coroutines; before each atomic operation the explorer may switch, and a load may return an
// older value where its memory order allows it (memory.hpp). One execution is a row of choices, made by a strategy:
//
//   exhaustive  every row with at most `preemptions` switches away from a thread that could go on and at most `stale`
//               old values; the next execution changes the last choice that has an alternative left
//   random      every choice by a seeded generator
//   pct         the thread with the highest random priority runs; at a few random moments it becomes the lowest
//
// A failure comes with what replays it: the choices that were not the first option, or the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace explore {

// From inside a thread: it can't go on until the condition holds. The explorer looks, not the thread, so
// waiting costs no interleavings. What the condition reads has happened before what follows.
void until(std::function<bool()> holds) noexcept;
// The same, but no longer than until that microsecond of the model's clock. A step takes one; and when nobody can go on,
// time passes: those who spin look again, and the clock is set to the earliest time that anybody waits for.
void until(std::function<bool()> holds, std::int64_t microsecond) noexcept;
// From inside a thread: ends the execution as a failure if the claim is false.
void require(bool claim, const char* what) noexcept;
[[noreturn]] void fail(const char* what) noexcept;

// From inside a thread: another one, which may run from now on. Returns its number.
[[nodiscard]] std::size_t start_thread(std::function<void()> body);
// From inside a thread: waits for its end.
void join_thread(std::size_t number) noexcept;

// A pointer in thread-local storage that each thread of the model has for itself. Before any run.
void carry(void** slot);

class scenario {
 public:
  virtual ~scenario() = default;
  [[nodiscard]] virtual std::vector<std::function<void()>> threads() = 0;
  // After all threads have ended.
  virtual void check() = 0;
};
using scenario_maker = std::function<std::unique_ptr<scenario>()>;

enum class strategy : std::uint8_t { exhaustive, random, pct };

struct limits {
  strategy how = strategy::exhaustive;
  unsigned preemptions = 3;  // exhaustive; for pct: moments of change
  unsigned stale = 0;        // exhaustive: old values read; otherwise zero or not
  bool membarrier = true;    // whether light fences are none
  std::uint64_t seed = 1;    // random, pct: of the first execution; the next one has the next seed
  std::uint64_t executions = 200'000'000;
  std::string replay;  // not empty: this one execution
};

struct report {
  std::uint64_t executions = 0;
  bool exhausted = false;
  bool met_fences = false;  // light or heavy: whether `membarrier` made a difference
  std::string failure;  // empty: none
  std::string replay;   // of the failure
};

[[nodiscard]] report run(const scenario_maker& make, const limits& within);

}  // namespace explore
