// SPDX-License-Identifier: BSL-1.0
// How a runtime is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <ramie/stack_source.hpp>

namespace ramie::inline v0 {

class manual_clock;

// The default number of workers: one per processor this process may run on. Any thread. Not a cancellation point.
[[nodiscard]] unsigned default_workers() noexcept;

// A way of running that makes scheduling hostile on purpose, for tests. Every choice is drawn from the seed; with more
// than one worker the threads' timing matters, too. What it did is counted: runtime_stats::chaos. docs/testing.md.
struct chaos_mode {
  std::uint64_t seed = 1;
  bool migrations = true;   // a fiber that would go on on the worker it left is passed on to another one
  bool yields = true;       // fibers yield before waits and between channel operations
  bool wake_yields = true;  // and after spawns and wakes: don't hold a std::mutex over those then
  bool steals = true;       // workers take from each other although they have something else to do
  bool delays = true;       // woken fibers are held back while others run
  bool scaling = true;      // workers are added and retired although none is stalled; only if options.elastic
};

// How a runtime does input and output.
enum class io_choice : std::uint8_t {
  automatic,  // what RAMIE_IO_BACKEND says, else the first of these that the machine grants
  io_uring,
  epoll,
  poll,
};

// Checked by the runtime's constructor, which copies them.
struct options {
  // Worker threads, 1 to 512. While workers are stalled in blocking calls the runtime may run up to twice
  // as many. They start when they are first needed.
  unsigned workers = default_workers();

  // Bytes of stack promised to a fiber, 16 KiB to 1 GiB, rounded up to a power of two. Pages are
  // touched on demand; the runtime's own few hundred bytes per stack are included for sizes under 64 KiB.
  std::size_t stack_size = 64 * 1024;

  // The same for the fiber that run() starts: as much as a thread has.
  std::size_t root_stack_size = 8 * 1024 * 1024;

  // A user's allocator for the stacks; empty: the runtime's own.
  stack_source stacks = {};

  // Whether stalled workers are replaced (see workers).
  bool elastic = true;

  // Threads for blocking(), at least 1: started when none is idle. Calls beyond that are queued. A thread that has
  // been idle for blocking_idle_time, by the machine's clock, ends.
  unsigned max_blocking_threads = 512;
  std::chrono::nanoseconds blocking_idle_time = std::chrono::seconds(10);

  // Whether a fiber that holds its worker for 100 ms while others are queued is reported (set_report_handler), once
  // each time: it blocks, or computes for too long. Builds with checks do so anyway, if elastic.
  bool report_stalls = false;

  // A mechanism that is named here and that the machine refuses is a std::system_error at the first operation. What the
  // automatic choice has to pass over is reported (set_report_handler).
  io_choice io = io_choice::automatic;

  // Hostile scheduling, for tests.
  std::optional<chaos_mode> chaos;

  // Where deadlines take the time from; null: the machine's steady clock. Must outlive the runtime.
  manual_clock* clock = nullptr;
};

}  // namespace ramie::inline v0
