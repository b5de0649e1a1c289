// SPDX-License-Identifier: BSL-1.0
// The scheduler of one runtime: it owns the parts and wires them, and does nothing else.
//
//   queues      run_queues.hpp    where runnable fibers wait: LIFO slots, rings, the injection queue
//   dispatch    dispatcher.hpp    what a worker runs next; searching, naps, sleep
//   pool        worker_pool.hpp   which workers there are; waking, growth, retirement; the monitor
//   run         runner.hpp        how fibers run: the loop, switches, starts, ends; static functions of a worker
//   io          ../io/driver.hpp  operations under way, and who takes their completions
//   cancels     ../cancel/domain.hpp   what cancellations share: their epoch, the locks of sweeps and links
//   deadlines   ../time/timekeeper.hpp
//   blocking    ../blocking/pool.hpp
//   all_blocked ../testing/quiescence.hpp  noticing that every fiber is blocked
//   frames, stacks                pools of what a fiber needs
//
// A part calls functions of other parts and never touches their fields. The parts of a worker: worker.hpp.
#pragma once

#include <cstdint>
#include <memory>

#include <ramie/options.hpp>
#include <ramie/platform/stack_pool.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/stats.hpp>

#include "../blocking/pool.hpp"
#include "../cancel/domain.hpp"
#include "../io/driver.hpp"
#include "../stacks/supplied_stacks.hpp"
#include "../testing/quiescence.hpp"
#include "../time/timekeeper.hpp"
#include "dispatcher.hpp"
#include "registry.hpp"
#include "run_queues.hpp"
#include "worker_pool.hpp"

namespace ramie::runtime_internal {

// The class of a stack of `bytes`; `what` names the setting. Throws usage_error when out of range.
[[nodiscard]] std::uint8_t checked_stack_class(std::size_t bytes, const char* what);

class scheduler {
 public:
  // Throws usage_error for options that can't work. Starts no thread. `by`: who decides what runs next, under explore.
  explicit scheduler(const options& wanted, scheduling_policy* by = nullptr);
  // All fibers must have ended. Stops and joins every thread.
  ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  [[nodiscard]] runtime_stats stats() const;
  // Fibers made runnable less fibers polled.
  [[nodiscard]] std::int64_t pressure() const noexcept;

  // Set up once.
  const std::uint8_t default_class;
  const std::uint8_t root_class;
  const bool reports_stalls;

  cancel_domain cancels;
  cancel_scope root_scope;

  supplied_stacks from_user;
  platform::stack_pool stacks;
  frame_pool frames;
  worker_pool pool;
  const std::unique_ptr<scheduling_policy> chaos;  // or null
  scheduling_policy* const policy;                 // chaos, or the one that was handed in, or null
  run_queues queues;
  dispatcher dispatch;
  timekeeper deadlines;
  quiescence all_blocked;
  blocking_pool blocking;
  io_driver io;

 private:
  const registration listed_{*this};
};

}  // namespace ramie::runtime_internal
