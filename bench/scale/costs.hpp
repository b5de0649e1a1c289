// SPDX-License-Identifier: BSL-1.0
// What things cost, in picoseconds: the floors of the machine that docs/performance.md was written on, and
// `access`, which stands for the instructions around a load or store, too: fitted to the time of fib on one worker.
#pragma once

#include <cstdint>

#include "cache_lines.hpp"

namespace scale {

struct cost_table {
  picoseconds access = 75;              // of a line that the processor has
  picoseconds rmw = 2'400;              // or a full fence: more than a load
  picoseconds transfer = 60'000;        // half of a line's way there and back
  picoseconds pause = 15'000;           // one pause instruction
  picoseconds clock = 22'000;           // to read it
  picoseconds system_call = 300'000;    // one that does not block or wake anybody
  picoseconds wake_call = 2'000'000;    // for the one who wakes
  picoseconds wake_latency = 8'000'000; // until the one who is woken runs
  picoseconds barrier = 900'000;        // membarrier, with nobody to interrupt
  picoseconds barrier_each = 100'000;   // for each processor that is interrupted
  picoseconds interrupt = 500'000;      // for the one who is interrupted
  picoseconds thread = 30'000'000;      // to start one
};

}  // namespace scale
