// SPDX-License-Identifier: BSL-1.0
// Notices workers that make no progress while work is queued, and replaces them for the time being.
//
// A thread of its own that ticks only while some worker is active and something is queued; otherwise it
// sleeps without a timeout, marked in the idle set's counts, so that a thread that leaves work queued while
// user code runs sees the mark with a load it does anyway, and wakes it:
//
//       producer                               monitor
//       1. publish the entry                   1. set monitor_asleep
//       2. light fence                         2. heavy fence
//       3. load counts: monitor_asleep?        3. is anything queued and any worker active?
//          clear it and wake the monitor          then clear the mark and go on ticking
//
// It also ticks while an active worker has operations under way. If that worker does not poll them, the monitor takes
// their completions (io/port.hpp), and then at shorter intervals.
//
// If stalls are reported, it also names the fiber that has held its worker for ten samples, once for each stall, and
// does not fall asleep before it has. That fiber may end at any moment: extras.cpp, describe_if_at.
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/stats.hpp>

#include "helper_thread.hpp"

namespace ramie::runtime_internal {

class scheduler;
class worker;

class monitor {
 public:
  explicit monitor(scheduler& of) noexcept : sched_(of) {}
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  // The mark was seen: start the thread if there is none, else wake it. Any thread.
  void wake() noexcept;
  void stop() noexcept { thread_.stop(); }
  void read(pressure_stats& into) const noexcept;
  // One sample; false: there was nothing to watch. The monitor's own thread only, or a test's where there is none.
  [[nodiscard]] bool tick() noexcept;

 private:
  struct sample {
    bool queued = false;
    bool active = false;
    bool active_with_io = false;
    [[nodiscard]] bool worth_watching() const noexcept { return (active && queued) || active_with_io; }
  };
  [[nodiscard]] sample take_sample() const noexcept;
  void wait_for_tick() noexcept;
  [[nodiscard]] bool poll_for_stalled() noexcept;  // true: a worker needed it
  void run() noexcept;
  void count_sample(std::int64_t pressure) noexcept;
  void decide(bool anybody_stuck, bool anything_queued, std::int64_t pressure) noexcept;
  [[nodiscard]] bool mark_stalled_workers() noexcept;
  [[nodiscard]] bool watch_stall(worker& w) noexcept;
  [[nodiscard]] bool sleep_until_needed() noexcept;  // false: stop

  scheduler& sched_;
  helper_thread thread_;      // started by the first wake
  bool helps_ = false;        // a worker did not come to its operations
  bool owes_report_ = false;  // a stall has begun that will have to be reported if it lasts

  using count = platform::owned<std::uint64_t>;
  count positive_, negative_, streak_, longest_streak_, passes_, promoted_, no_work_, nonpositive_, idle_capacity_,
      not_stuck_, at_limit_;
};

}  // namespace ramie::runtime_internal
