// SPDX-License-Identifier: BSL-1.0
// A worker's own counters: written by their owner with plain stores, read by anybody.
#pragma once

#include <ramie/platform/atomic.hpp>
#include <ramie/stats.hpp>

namespace ramie::detail {

// `enqueued` is without spawns, which are counted once.
struct counters {
  using count = platform::owned<std::uint64_t>;
  count spawned, started, finished_in_place, adopted, discarded, loop_switches, hand_offs, polls, parks, enqueued,
      lifo_hits, batch_fetches, overflows, steals, stolen, migrations, times_parked, naps, retreats,
      cancel_redelivered;

  [[nodiscard]] worker_stats read() const noexcept {
    return {spawned.get(),
            started.get(),
            finished_in_place.get(),
            adopted.get(),
            discarded.get(),
            hand_offs.get() + loop_switches.get(),
            hand_offs.get(),
            polls.get(),
            parks.get(),
            spawned.get() + enqueued.get(),
            lifo_hits.get(),
            batch_fetches.get(),
            overflows.get(),
            steals.get(),
            stolen.get(),
            migrations.get(),
            times_parked.get(),
            naps.get(),
            retreats.get(),
            cancel_redelivered.get()};
  }
};

// What chaos did on a worker.
struct chaos_counters {
  counters::count yields, wake_yields, steals, held_back, promoted, retired;

  void add_to(chaos_stats& sum) const noexcept {
    sum.yields += yields.get();
    sum.wake_yields += wake_yields.get();
    sum.steals += steals.get();
    sum.held_back += held_back.get();
    sum.promoted_workers += promoted.get();
    sum.retired_workers += retired.get();
  }
};

}  // namespace ramie::detail
