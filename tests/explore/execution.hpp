// SPDX-License-Identifier: BSL-1.0
// One execution, as the explorer and its memory model share it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <explore/explorer.hpp>

#include <ramie/platform/context.hpp>

#include "strategies.hpp"

namespace explore {

// For every location the oldest store that may still be read. The first entries are not locations but the threads'
// own clocks, for plain variables. Signed, because processors compare eight of those at once.
struct view {
  static constexpr std::size_t threads = 8;
  static constexpr std::size_t size = 128;
  alignas(16) std::array<std::int16_t, size> oldest{};

  void learn(const view& other) noexcept {
    for (std::size_t i = 0; i < size; ++i) oldest[i] = oldest[i] < other.oldest[i] ? other.oldest[i] : oldest[i];
  }
};

struct thread_views {
  view now, acquirable, released;
};

// Times are microseconds of the model.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

struct actor {
  std::function<void()> body;
  ramie::platform::context at = nullptr;
  std::unique_ptr<char[]> stack;
  bool ended = false;
  std::uint64_t heard = 0;  // news when it last looked at anything
  std::uint64_t waits_since = 0;
  std::function<bool()> condition;
  std::uint64_t asked_at = 0;   // news when the condition did not hold
  std::int64_t wakes_at = never;  // it waits no longer than until then
  bool read_old_value = false;  // since its last pause
  bool reads_newest = false;    // until its next pause
  std::vector<void*> carried;
  thread_views sees;

  static constexpr int max_frames = 24;
  void* where[max_frames] = {};  // it waits, in a replay
  int frames = 0;
};

struct execution {
  std::vector<std::unique_ptr<actor>> threads;
  std::size_t used = 0;     // threads of this scenario
  std::size_t current = 0;  // used: nobody
  bool running = false;     // inside a thread: steps count
  std::uint64_t news = 0;
  int steps = 0;
  std::int64_t skipped = 0;  // of the time, while everybody waited
  std::string failure;
  ramie::platform::context home = nullptr;

  std::uint32_t number = 0;  // of the execution
  bool weak = false;
  bool membarrier = true;
  bool met_fences = false;  // light or heavy, in any execution of the run
  bool explains = false;
  bool learns = false;  // a condition is evaluated on behalf of `current`, which must see what it sees
  std::unique_ptr<decisions> choices;

  [[nodiscard]] actor& self() noexcept { return *threads[current]; }
  // A microsecond a step, and what was skipped: the same in every run.
  [[nodiscard]] std::int64_t time() const noexcept { return steps + skipped; }
};

inline constexpr std::uint64_t no_news = ~std::uint64_t{0};
extern execution now;

// memory.cpp
void forget_memory() noexcept;
void inherit_views(std::size_t child) noexcept;  // it has seen what `current` has seen
void learn_from(std::size_t ended) noexcept;

}  // namespace explore
