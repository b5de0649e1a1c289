// SPDX-License-Identifier: BSL-1.0
// A worker's own counters: written by their owner with plain stores, read by anybody.
#pragma once

#include <cstddef>
#include <iterator>

#include <ramie/platform/atomic.hpp>
#include <ramie/stats.hpp>

namespace ramie::runtime_internal {

// Every member of worker_counts, to read and to add them all alike.
template <class Count>
inline constexpr Count worker_counts<Count>::*every_worker_count[] = {
    &worker_counts<Count>::spawned,
    &worker_counts<Count>::started,
    &worker_counts<Count>::finished_in_place,
    &worker_counts<Count>::adopted,
    &worker_counts<Count>::discarded,
    &worker_counts<Count>::switches,
    &worker_counts<Count>::hand_offs,
    &worker_counts<Count>::polls,
    &worker_counts<Count>::parks,
    &worker_counts<Count>::enqueued,
    &worker_counts<Count>::lifo_hits,
    &worker_counts<Count>::batch_fetches,
    &worker_counts<Count>::overflows,
    &worker_counts<Count>::steals,
    &worker_counts<Count>::stolen,
    &worker_counts<Count>::migrations,
    &worker_counts<Count>::times_parked,
    &worker_counts<Count>::spins,
    &worker_counts<Count>::naps,
    &worker_counts<Count>::retreats,
    &worker_counts<Count>::withdrawals,
    &worker_counts<Count>::cancel_redelivered,
};

// Each event is counted once: `switches` are without hand-offs here, and `enqueued` is without spawns.
struct counters : worker_counts<platform::owned<std::uint64_t>> {
  using count = platform::owned<std::uint64_t>;

  [[nodiscard]] worker_stats read() const noexcept {
    worker_stats all;
    for (std::size_t i = 0; i < std::size(every_worker_count<count>); ++i) {
      all.*every_worker_count<std::uint64_t>[i] = (this->*every_worker_count<count>[i]).get();
    }
    all.switches += all.hand_offs;
    all.enqueued += all.spawned;
    return all;
  }
};
static_assert(sizeof(counters) == std::size(every_worker_count<counters::count>) * sizeof(counters::count),
              "every_worker_count lacks a member of worker_counts");

}  // namespace ramie::runtime_internal
