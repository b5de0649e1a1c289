// SPDX-License-Identifier: BSL-1.0
// Every number the scheduler's behaviour depends on, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ramie::runtime_internal {

using namespace std::chrono_literals;

// Local queue and its overflow.
#if defined(RAMIE_SMALL_SIZES)
// Small enough to explore every wrap.
inline constexpr std::uint32_t ring_capacity = 4;
inline constexpr std::size_t injection_soft_capacity = 3;
inline constexpr std::uint32_t idle_spin_rounds = 2;
inline constexpr std::size_t prefetched_stack_bytes = 0;
inline constexpr std::size_t prefetched_resume_bytes = 0;
#else
inline constexpr std::uint32_t ring_capacity = 256;
inline constexpr std::size_t injection_soft_capacity = 65'536;
inline constexpr std::uint32_t idle_spin_rounds = 64;  // of a search, when there are few workers
inline constexpr std::size_t prefetched_stack_bytes = 768;   // what a fiber that waits for a channel has there
inline constexpr std::size_t prefetched_resume_bytes = 128;  // what it reads first when it goes on
#endif
inline constexpr std::uint32_t idle_spin_looks = 512;   // at other workers, in a search
inline constexpr std::uint32_t fewest_idle_rounds = 2;
inline constexpr std::uint32_t overflow_batch = ring_capacity / 2;

// Injection queue: how many entries one visit takes.
inline constexpr std::uint32_t min_injection_batch = 4;
inline constexpr std::uint32_t max_injection_batch = 64;

// Cooperation.
inline constexpr std::uint32_t budget_per_tick = 128;
inline constexpr std::uint32_t max_lifo_polls = 3;    // in a row, while others wait (decision 8)
inline constexpr std::uint32_t max_fresh_polls = 32;  // in a row, of fibers that start before older ones
inline constexpr std::chrono::nanoseconds max_join_backoff = 64ms;  // see join.hpp

// Time.
inline constexpr std::chrono::nanoseconds exact_below = 4ms;           // nearer deadlines are kept to the nanosecond
inline constexpr std::chrono::nanoseconds keeper_grace = 10ms;         // for the workers, which should fire them first
inline constexpr std::chrono::nanoseconds timer_check_interval = 250us;  // of workers that run fibers

// Adaptive visits to the injection queue.
inline constexpr std::chrono::nanoseconds target_injection_latency = 1ms;
inline constexpr std::chrono::nanoseconds initial_task_estimate = 50us;
inline constexpr double ewma_alpha = 0.1;
inline constexpr std::uint32_t min_injection_interval = 8;
inline constexpr std::uint32_t max_injection_interval = 255;

// Thefts that do not pay: the stolen fibers ran for less time than moving them to another processor takes. After enough
// of them to be sure a worker naps before it searches again: twice as long each time.
#if defined(RAMIE_SMALL_SIZES)
inline constexpr std::uint32_t stolen_before_judging = ~0u;  // never
#else
inline constexpr std::uint32_t stolen_before_judging = 4;
#endif
inline constexpr std::chrono::nanoseconds worthwhile_theft = 1us;
inline constexpr std::chrono::nanoseconds shortest_nap = 64us;
inline constexpr std::chrono::nanoseconds longest_nap = 1ms;

// Spinning for the end of a blocking call, and for the next call: about as long as the sleep would cost that it saves,
// on a machine whose idle processors halt (decision 22).
#if defined(RAMIE_MODEL)
inline constexpr std::chrono::nanoseconds longest_spin = 4us;  // so many steps
inline constexpr int looks_per_clock_read = 1;
inline constexpr std::uint32_t most_spins_left_out = 1;
#else
inline constexpr std::chrono::nanoseconds longest_spin = 50us;
inline constexpr int looks_per_clock_read = 16;
inline constexpr std::uint32_t most_spins_left_out = 64;
#endif

// A machine without a processor for each worker: when a worker counts as crowded, and how long it leaves the work to
// the others. Figures of a 250 Hz kernel, which lets a thread wait for 4 ms.
inline constexpr std::chrono::nanoseconds crowding_window = 4ms;           // of running
inline constexpr std::chrono::nanoseconds longest_crowding_window = 50ms;  // who needs longer for that has little to do
inline constexpr std::chrono::nanoseconds usual_wait = 100us;              // for a processor, each time
inline constexpr int crowding_share = 8;                                   // an eighth, lost
inline constexpr std::uint32_t turns_per_crowding_measurement = 8;
inline constexpr unsigned windows_before_recall = 8;  // of the last one
inline constexpr std::chrono::nanoseconds shortest_suspension = 100ms;
inline constexpr std::chrono::nanoseconds longest_suspension = 1s;
inline constexpr std::chrono::nanoseconds soon_after_suspension = 250ms;
inline constexpr std::chrono::nanoseconds time_between_suspensions = 10ms;
inline constexpr std::chrono::nanoseconds suspension_check_interval = 4ms;
inline constexpr unsigned quiet_checks_before_return = 4;

// A worker whose fibers use the same channels as another worker's: when it leaves them to that one, and for how long.
inline constexpr std::chrono::nanoseconds entanglement_window = 200us;
inline constexpr int entanglement_percent = 30;  // of a window, waited for locks
inline constexpr std::uint32_t windows_before_withdrawal = 2;  // in a row
inline constexpr std::chrono::nanoseconds shortest_withdrawal = 4ms;
inline constexpr std::chrono::nanoseconds longest_withdrawal = 64ms;
inline constexpr std::chrono::nanoseconds soon_after_withdrawal = 16ms;
inline constexpr std::chrono::nanoseconds time_between_withdrawals = 1ms;

// Workers. The pool may grow to twice the configured number while workers are stalled.
inline constexpr unsigned max_configured_workers = 512;
inline constexpr unsigned elastic_factor = 2;
inline constexpr std::chrono::nanoseconds io_help_interval = 1ms;   // while it helps a worker that is held up
#if defined(RAMIE_SMALL_SIZES)
inline constexpr std::chrono::nanoseconds monitor_interval = 4us;    // so many steps
inline constexpr unsigned quiet_ticks_before_monitor_sleeps = 1;
#else
inline constexpr std::chrono::nanoseconds monitor_interval = 10ms;  // how long a stalled worker may go unnoticed
inline constexpr unsigned quiet_ticks_before_monitor_sleeps = 10;
#endif
inline constexpr unsigned samples_before_stall_report = 10;        // 100 ms: less is no blocking call worth a word
inline constexpr unsigned sustained_negative_pressure = 500;       // monitor ticks
inline constexpr std::chrono::nanoseconds handover_timeout = 300us;  // for another worker to take a fiber over

// Memory.
inline constexpr std::size_t frame_bytes = 128;
inline constexpr std::size_t frames_per_slab = 512;
inline constexpr std::uint32_t frame_batch = 128;
inline constexpr std::uint32_t stack_cache_limit = 32;
inline constexpr std::uint32_t stack_batch = 16;
inline constexpr std::size_t stack_trim_batch = 64;

}  // namespace ramie::runtime_internal
