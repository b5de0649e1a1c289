// SPDX-License-Identifier: BSL-1.0
// What tests set by hand inside a scheduler that runs nothing.
#pragma once

#include <ramie/runtime/access.hpp>

#include "runtime/src/sched/scheduler.hpp"

namespace ramie::runtime_internal {

struct tests_of_parts {
  static auto& live(worker_pool& p) noexcept { return p.live_; }
  static auto& stalled(worker_pool& p) noexcept { return p.stalled_; }
  static bool wake_claimed(worker_pool& p, std::uint32_t index) noexcept { return p.wake_claimed(index); }
  static auto& injection(run_queues& q) noexcept { return q.injection_; }
  static auto& pushed_outside(run_queues& q) noexcept { return q.pushed_outside_; }
  static auto& suspensions(dispatcher& d) noexcept { return d.suspensions_; }
  static fiber* take_youngest(worker& w) noexcept { return dispatcher::take_youngest(w); }
  static bool spin_for_call(dispatcher& d, worker& w) noexcept { return d.spin_for_call(w); }
  static bool should_nap(worker& w) noexcept { return dispatcher::should_nap(w); }
  static bool prepare_to_search(dispatcher& d, worker& w) noexcept { return d.prepare_to_search(w); }
  static bool somebody_pushes(const run_queues& q) noexcept { return q.pushing_outside_.load() != 0; }
};

}  // namespace ramie::runtime_internal

namespace test {

using parts = ramie::runtime_internal::tests_of_parts;

inline auto& live(ramie::runtime_internal::scheduler& s) noexcept { return parts::live(s.pool); }
inline auto& stalled(ramie::runtime_internal::scheduler& s) noexcept { return parts::stalled(s.pool); }
inline auto& injection(ramie::runtime_internal::scheduler& s) noexcept { return parts::injection(s.queues); }

}  // namespace test
