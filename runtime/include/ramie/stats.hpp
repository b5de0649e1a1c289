// SPDX-License-Identifier: BSL-1.0
// What a runtime has done so far. Counters are kept per worker without synchronisation and summed when
// asked for; a snapshot taken while fibers run is approximate, one taken when nothing runs is exact.
#pragma once

#include <cstdint>
#include <vector>

#include <ramie/version.hpp>

namespace ramie::inline v0 {

struct worker_stats {
  std::uint64_t spawned = 0;             // fibers made by code running on this worker
  std::uint64_t started = 0;             // fibers that began here
  std::uint64_t finished_in_place = 0;   // of those that ended: never left the stack they were called on
  std::uint64_t adopted = 0;             // fibers that kept the worker's stack when they first left it
  std::uint64_t discarded = 0;           // fibers that ended without running
  std::uint64_t switches = 0;            // context switches
  std::uint64_t hand_offs = 0;           // of those: from fiber straight to fiber
  std::uint64_t polls = 0;               // fibers given the processor
  std::uint64_t parks = 0;               // waits that left their stack
  std::uint64_t enqueued = 0;            // fibers made runnable here
  std::uint64_t lifo_hits = 0;           // polls served by the LIFO slot
  std::uint64_t batch_fetches = 0;       // visits to the injection queue that found something
  std::uint64_t overflows = 0;           // times a full ring shed its older half
  std::uint64_t steals = 0;              // successful steals
  std::uint64_t stolen = 0;              // fibers taken by them
  std::uint64_t migrations = 0;          // resumed on another worker than last (counted in chaos mode)
  std::uint64_t times_parked = 0;        // times this worker slept
  std::uint64_t naps = 0;                // times it rested because what it stole was not worth it
  std::uint64_t retreats = 0;            // times it left all to the others because the machine had no processor for it
  std::uint64_t cancel_redelivered = 0;  // `cancelled` delivered to a fiber that had swallowed it

  worker_stats& operator+=(const worker_stats& other) noexcept;
};

// Why the monitor of the elastic pool did or did not add a worker; one entry per look.
struct pressure_stats {
  std::int64_t current = 0;  // runnable fibers queued, approximately
  std::uint64_t positive_samples = 0;
  std::uint64_t negative_samples = 0;
  std::uint64_t longest_negative_streak = 0;
  std::uint64_t gate_passes = 0;            // looks at which growing was right
  std::uint64_t promoted_workers = 0;       // workers started because others were stalled
  std::uint64_t retired_workers = 0;        // workers that drained and ended
  std::uint64_t blocked_no_work = 0;        // nothing queued
  std::uint64_t blocked_nonpositive = 0;    // pressure not positive
  std::uint64_t blocked_idle_capacity = 0;  // a sleeping worker was woken instead
  std::uint64_t blocked_not_stuck = 0;      // every active worker makes progress
  std::uint64_t blocked_at_limit = 0;       // twice the configured workers run already
};

// What options.chaos did; migrations are in worker_stats.
struct chaos_stats {
  std::uint64_t yields = 0;            // fibers made to give way, before waits and between channel operations
  std::uint64_t wake_yields = 0;       // the same, after spawns and wakes
  std::uint64_t steals = 0;            // thefts by workers that had something else to do
  std::uint64_t held_back = 0;         // woken fibers that had to let others go first
  std::uint64_t promoted_workers = 0;  // workers started for no reason
  std::uint64_t retired_workers = 0;   // the same, ended
};

// The threads of blocking().
struct blocking_stats {
  unsigned threads = 0;    // there are now
  unsigned idle = 0;       // of those, without a call
  unsigned pending = 0;    // calls that wait for a thread
  unsigned peak = 0;       // most threads at once
  std::uint64_t jobs = 0;  // calls that were begun
};

struct runtime_stats {
  worker_stats total;
  std::vector<worker_stats> workers;  // by worker slot, retired ones included
  unsigned configured_workers = 0;
  unsigned live_workers = 0;
  unsigned retreated_workers = 0;  // of those: leave the work to the others now, for want of a processor
  std::uint64_t enqueued_outside = 0;  // fibers made runnable by plain threads
  std::uint64_t injection_over_mark = 0;
  std::uint64_t stacks_in_use = 0;
  std::uint64_t stack_slots = 0;
  std::uint64_t frames_made = 0;
  pressure_stats pressure;
  chaos_stats chaos;
  blocking_stats blocking;
};

}  // namespace ramie::inline v0
