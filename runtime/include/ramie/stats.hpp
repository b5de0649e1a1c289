// SPDX-License-Identifier: BSL-1.0
// What a runtime has done so far. Counters are kept per worker without synchronisation and summed when
// asked for; a snapshot taken while fibers run is approximate, one taken when nothing runs is exact.
#pragma once

#include <cstdint>
#include <vector>

#include <ramie/version.hpp>

namespace ramie::runtime_internal {

// What is counted for each worker. Here, so that worker_stats and the runtime's own counters share one list.
template <class Count>
struct worker_counts {
  Count spawned{};             // fibers made by code running on this worker
  Count started{};             // fibers that began here
  Count finished_in_place{};   // of those that ended: never left the stack they were called on
  Count adopted{};             // fibers that kept the worker's stack when they first left it
  Count discarded{};           // fibers that ended without running
  Count switches{};            // context switches
  Count hand_offs{};           // of those: from fiber straight to fiber
  Count polls{};               // fibers given the processor
  Count parks{};               // waits that left their stack
  Count enqueued{};            // fibers made runnable here
  Count lifo_hits{};           // polls served by the LIFO slot
  Count batch_fetches{};       // visits to the injection queue that found something
  Count overflows{};           // times a full ring shed its older half
  Count steals{};              // successful steals
  Count stolen{};              // fibers taken by them
  Count migrations{};          // resumed on another worker than last (counted in chaos mode)
  Count times_parked{};        // times this worker slept
  Count spins{};               // times it spun for the end of a blocking call before it would sleep
  Count naps{};                // times it rested because what it stole was not worth it
  Count retreats{};            // times it left all to the others because the machine had no processor for it
  Count withdrawals{};         // times it left all to the others because its fibers use the same channels as theirs
  Count cancel_redelivered{};  // `cancelled` delivered to a fiber that had swallowed it
};

// What options.chaos did on each worker, likewise; migrations are in worker_counts.
template <class Count>
struct chaos_counts {
  Count yields{};            // fibers made to yield, before waits and between channel operations
  Count wake_yields{};       // the same, after spawns and wakes
  Count steals{};            // thefts by workers that had something else to do
  Count held_back{};         // woken fibers that had to let others go first
  Count promoted_workers{};  // workers started for no reason
  Count retired_workers{};   // the same, ended
};

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Of one worker, or of all together: the counts above.
struct worker_stats : runtime_internal::worker_counts<std::uint64_t> {
  // Adds them up, each count.
  worker_stats& operator+=(const worker_stats& other) noexcept;
};

// Why the monitor of the elastic pool did or did not add a worker; one entry per sample.
struct pressure_stats {
  std::int64_t current = 0;  // runnable fibers queued, approximately
  std::uint64_t positive_samples = 0;       // samples at which it was above 0
  std::uint64_t negative_samples = 0;       // below 0, which an approximate count may be for a moment
  std::uint64_t longest_negative_streak = 0;  // so many samples in a row
  std::uint64_t gate_passes = 0;            // samples at which growing was right
  std::uint64_t promoted_workers = 0;       // workers started because others were stalled
  std::uint64_t retired_workers = 0;        // workers that drained and ended
  std::uint64_t blocked_no_work = 0;        // nothing queued
  std::uint64_t blocked_nonpositive = 0;    // pressure not positive
  std::uint64_t blocked_idle_capacity = 0;  // a worker was woken instead, or one searches, naps or has retreated
  std::uint64_t blocked_not_stuck = 0;      // every active worker makes progress
  std::uint64_t blocked_at_limit = 0;       // twice the configured workers run already
};

// What options.chaos did, on all workers together: the counts above.
struct chaos_stats : runtime_internal::chaos_counts<std::uint64_t> {};

// The threads of blocking().
struct blocking_stats {
  unsigned threads = 0;     // there are now
  unsigned idle = 0;        // of those, without a call
  unsigned pending = 0;     // calls that wait for a thread
  unsigned peak = 0;        // most threads at once
  std::uint64_t jobs = 0;   // calls that were begun
  std::uint64_t spins = 0;  // times a thread spun for its next call; counted when that has ended, or the thread leaves
};

// What runtime::stats() returns.
struct runtime_stats {
  worker_stats total;
  std::vector<worker_stats> workers;  // by worker slot, retired ones included
  unsigned configured_workers = 0;  // options.workers
  unsigned live_workers = 0;        // threads that run now
  unsigned retreated_workers = 0;  // of those: leave the work to the others now, for want of a processor
  std::uint64_t enqueued_outside = 0;  // fibers made runnable by plain threads
  std::uint64_t injection_over_mark = 0;  // times the injection queue grew beyond what it should hold
  std::uint64_t stacks_in_use = 0;        // by fibers that have started, by workers, and in the workers' caches
  std::uint64_t stack_slots = 0;          // stacks that have been mapped, in use or not
  std::uint64_t frames_made = 0;          // fibers' frames that memory was taken for; they are used again
  pressure_stats pressure;
  chaos_stats chaos;
  blocking_stats blocking;
};

}  // namespace ramie::inline v0
