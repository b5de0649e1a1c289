// SPDX-License-Identifier: BSL-1.0
// The workers of one runtime: which there are, which sleep, and how many. Lazy start, wakes, growth while some are
// stalled, retirement, the end.
//
// Slots 0 … 2·M-1, where M workers are configured (0 … M-1 if the pool is not elastic).
//
// Invariants
//   WP1  Workers that are live plus startable ones (a bit in the idle set, no thread) are at least M. Promotion adds
//        live ones; retirement takes them away again, but never below M workers that are not stalled.
//   WP2  A slot belongs to whoever has claimed its bit in the idle set, to whoever promotes it while it is dead (one at
//        a time), or to its own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/options.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/thread.hpp>

#include "idle_set.hpp"
#include "monitor.hpp"
#include "worker.hpp"

namespace ramie::runtime_internal {

class scheduler;

class worker_pool {
 public:
  // Throws usage_error for numbers that can't work. Starts no thread.
  worker_pool(scheduler& of, const options& wanted);
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;

  // Makes the workers, when all parts of the scheduler are there. `seed`: of their random choices. Throws
  // std::bad_alloc.
  void make_workers(std::uint64_t seed);
  // Stops and joins every thread. No fiber may be left.
  void stop() noexcept;

  [[nodiscard]] const std::vector<std::unique_ptr<worker>>& workers() const noexcept { return workers_; }
  [[nodiscard]] unsigned configured() const noexcept { return configured_; }
  [[nodiscard]] unsigned capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool elastic() const noexcept { return elastic_; }
  // Workers with a thread that are not draining; of those, not marked as stalled.
  [[nodiscard]] std::uint32_t live() const noexcept { return live_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t live_hint() const noexcept { return live_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t not_stalled() const noexcept {
    return live_hint() - stalled_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t retired() const noexcept { return retired_.load(std::memory_order_relaxed); }
  // Owner only: publishes the worker's state.
  static void set_state(worker& w, worker_state s) noexcept { w.life.state.store(s, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t polls_of_others(const worker& w) const noexcept;

  // Waking ----------------------------------------------------------------------------------------------

  // After an entry was published: wakes a sleeper and the monitor if they must be. `by`: the calling thread's worker,
  // or null.
  void signal(worker* by) noexcept {
    platform::light_fence();
    const auto seen = idle_.load();
    if (!seen.nothing_to_do()) [[unlikely]]
      signal_slow(by, seen);
  }
  // The first part of signal(), for a caller whose hot path must not contain a call. False: call signal().
  [[nodiscard]] bool needs_no_signal() const noexcept {
    platform::free_fence();  // where that is not enough, signal() has its own
    const auto seen = idle_.load();
    if (seen.surely_nothing_to_do()) [[likely]]
      return true;
    return platform::asymmetric() && seen.nothing_to_do();
  }
  // Something was published, or is under way, while user code runs here: the monitor must watch. Idempotent.
  void wake_monitor() noexcept {
    platform::light_fence();  // pairs with the monitor's heavy fence: monitor.hpp
    if (idle_.load().monitor_asleep() && idle_.clear_monitor_asleep()) monitor_.wake();
  }
  // From now on the monitor is to be woken by what happens.
  void let_monitor_be_woken() noexcept { idle_.set_monitor_asleep(); }
  // Claims a sleeper and wakes it, starting its thread if need be. False: there is none that can be woken.
  bool wake_one() noexcept;
  // Before the first fiber: there is a worker. Throws std::system_error.
  void start_first();

  // Growing and shrinking -------------------------------------------------------------------------------

  [[nodiscard]] bool promote_one() noexcept;  // an extra worker; false at the limit
  [[nodiscard]] bool may_retire(const worker& w) noexcept;  // true: the caller is surplus and must drain
  // DRAINING: the worker takes nothing new, and what is queued here goes to the injection queue. If there is no
  // timer sleeper (timekeeper.hpp), a worker is woken to become it.
  void drain(worker& w) noexcept;
  // The worker's attention is asked for. True: it must leave.
  [[nodiscard]] bool attend(worker& w) noexcept;
  // The monitor has seen no poll of the worker since its last sample.
  void mark_stalled(worker& w) noexcept;
  // The worker polls again, or ends: it is no longer stalled, if it was. Idempotent. Returns what it was marked with.
  std::uint32_t clear_stalled(worker& w) noexcept;
  // The worker's thread is about to end.
  void thread_ended(worker& w) noexcept;

  [[nodiscard]] idle_set& idle() noexcept { return idle_; }
  [[nodiscard]] class monitor& monitor() noexcept { return monitor_; }
  [[nodiscard]] const class monitor& monitor() const noexcept { return monitor_; }

 private:
  friend struct tests_of_parts;

  bool wake_claimed(std::uint32_t index) noexcept;
  bool start_thread(std::uint32_t index) noexcept;
  [[nodiscard]] bool worker_needed() const noexcept;
  void signal_slow(worker* by, idle_set::snapshot seen) noexcept;

  scheduler& sched_;
  const unsigned configured_;
  const unsigned capacity_;
  const bool elastic_;
  std::vector<std::unique_ptr<worker>> workers_;  // made once: on a line that nobody writes

  alignas(platform::cache_line) platform::atomic<std::uint32_t> live_{0};
  platform::atomic<std::uint32_t> stalled_{0};
  alignas(platform::cache_line) idle_set idle_;

  class monitor monitor_;
  platform::lock_family lock_users_;  // the workers, as users of channel locks
  platform::atomic<std::uint64_t> retired_{0};
  platform::mutex threads_mutex_;
  platform::mutex growth_mutex_;  // one promotion at a time
  platform::mutex first_worker_mutex_;
  bool stopping_ = false;  // under threads_mutex_
};

}  // namespace ramie::runtime_internal
