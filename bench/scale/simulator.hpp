// SPDX-License-Identifier: BSL-1.0
// Runs a program of the library on virtual processors that this machine need not have, and says what it would cost.
//
// The library is compiled with the atomics of the explorer (tests/explore), but nothing is explored: there is one
// execution. Every thread is a coroutine, a virtual processor with a clock of its own. Before each atomic
// operation the processor whose clock is the earliest goes on, so the operations happen in the order of simulated time,
// and a run is the same every time. What advances a clock:
//
//   loads and stores   by the cache line: cache_lines.hpp. Atomic ones by model_atomic; plain ones because everything is
//                      compiled with -fsanitize=thread, whose calls (instrumented.cpp) are ours
//   RMWs, fences, system calls, reading the clock, starting a thread   by a constant each: costs.hpp
//   computation        by spend(); otherwise by the loads and stores it makes
//
// What is left out: docs/performance.md, "More processors than we have".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costs.hpp"

namespace scale {

// What happened on all processors since measuring began.
struct totals {
  std::uint64_t transfers = 0;
  std::uint64_t atomic_transfers = 0;  // of these, by atomic operations
  std::uint64_t accesses = 0;
  std::uint64_t rmws = 0;
  std::uint64_t wakes = 0;
  std::uint64_t barriers = 0;
};
struct place_count {
  std::uintptr_t line;  // of memory: its address / 64
  std::uintptr_t code;  // where the access is, from the beginning of the program's image
  std::uint64_t transfers;
};

// Runs `body` as the first thread and returns when all threads have ended. Ends the process if nobody can go on.
// Threads begin up to a microsecond late, by the seed: another one is another run.
void simulate(const cost_table& costs, std::uint64_t seed, std::function<void()> body);

// From inside.
[[nodiscard]] std::int64_t now_ns() noexcept;
void spend(picoseconds time) noexcept;
// Begins to count, from nothing; what has been counted.
void begin_counting() noexcept;
[[nodiscard]] totals end_counting() noexcept;
// Where transfers were counted, by line and code.
[[nodiscard]] std::vector<place_count> transfer_places();

// Of thread-local storage, which every virtual processor has for itself. Before simulate().
void carry(void** slot);

// Plain accesses: instrumented.cpp.
void access_plain(std::uintptr_t address, bool writes, std::uintptr_t code) noexcept;
void access_range(std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code) noexcept;
// Memory of the calling processor; null: the simulation does not run. memory.cpp.
[[nodiscard]] unsigned current_processor() noexcept;

}  // namespace scale
