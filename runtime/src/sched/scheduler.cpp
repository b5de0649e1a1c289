// SPDX-License-Identifier: BSL-1.0
#include "scheduler.hpp"

#include <string>

#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/fence.hpp>

#include "../testing/chaos.hpp"
#include "runner.hpp"

namespace ramie::runtime_internal {

namespace {

unsigned checked_threads(const options& wanted) {
  if (wanted.max_blocking_threads == 0) {
    throw usage_error(
        "ramie: runtime::runtime: options.max_blocking_threads is 0. Use at least 1, which blocking() needs.");
  }
  return wanted.max_blocking_threads;
}

constexpr std::uint64_t usual_seed = 0x9e3779b97f4a7c15;

}  // namespace

std::uint8_t checked_stack_class(std::size_t bytes, const char* what) {
  if (bytes < platform::min_stack_size || bytes > platform::max_stack_size) {
    throw usage_error(std::string("ramie: ") + what + " is " + std::to_string(bytes) + " bytes. Use from " +
                      std::to_string(platform::min_stack_size) + " to " + std::to_string(platform::max_stack_size) +
                      ".");
  }
  return platform::stack_class_for(bytes);
}

scheduler::scheduler(const options& wanted, scheduling_policy* by)
    : default_class(checked_stack_class(wanted.stack_size, "runtime::runtime: options.stack_size")),
      root_class(checked_stack_class(wanted.root_stack_size, "runtime::runtime: options.root_stack_size")),
      reports_stalls(platform::debug_checks || wanted.report_stalls),
      root_scope(*this),
      from_user(wanted.stacks, default_class),
      stacks(&runner::loop_entry, platform::guard_kind::automatic, platform::usual_hot_limit, from_user.get()),
      frames(this, [](scheduler& s, std::size_t all) { s.queues.reserve(all); }),
      pool(*this, wanted),
      chaos(by == nullptr && wanted.chaos ? make_chaos(*wanted.chaos, pool.capacity()) : nullptr),
      policy(by != nullptr ? by : chaos.get()),
      queues(pool),
      dispatch(*this),
      deadlines(wanted.clock != nullptr ? wanted.clock->clock_.get() : nullptr, pool.capacity()),
      all_blocked(*this, by != nullptr || deadlines.advances_itself()),
      blocking(checked_threads(wanted), wanted.blocking_idle_time, {pool.idle(), platform::usable_cpus()}),
      io(*this, wanted.io) {
  platform::choose_fences();
  pool.make_workers(policy != nullptr ? policy->seed() : usual_seed);
  if (wanted.elastic || wanted.report_stalls) pool.let_monitor_be_woken();
}

scheduler::~scheduler() {
  blocking.stop();  // waits for calls that were left behind
  queues.wait_for_pushers();
  pool.monitor().stop();
  deadlines.stop();
  pool.stop();
  if (!queues.injection_empty()) {
    platform::fatal("fibers are still queued while their runtime ends: corruption of the runtime.");
  }
  const auto left = frames.count();
  if (left.made != left.pooled) {
    platform::fatal("%zu fiber frames did not come back before their runtime ended: corruption of the runtime.",
                    left.made - left.pooled);
  }
}

std::int64_t scheduler::pressure() const noexcept {
  auto sum = static_cast<std::int64_t>(queues.pushed_from_outside());
  for (const auto& w : pool.workers()) {
    const auto queued = w->count.spawned.get() + w->count.enqueued.get();
    sum += static_cast<std::int64_t>(queued) - static_cast<std::int64_t>(w->count.polls.get());
  }
  return sum;
}

runtime_stats scheduler::stats() const {
  runtime_stats all;
  for (const auto& w : pool.workers()) {
    all.workers.push_back(w->count.read());
    all.total += all.workers.back();
  }
  if (policy != nullptr) policy->add_to(all.chaos);
  all.configured_workers = pool.configured();
  all.live_workers = pool.live();
  all.retreated_workers = dispatch.retreated();
  all.enqueued_outside = queues.pushed_from_outside();
  all.injection_over_mark = queues.times_over_mark();
  const auto stack_census = stacks.count();
  all.stacks_in_use = stack_census.taken;
  all.stack_slots = stack_census.slots;
  all.frames_made = frames.count().made;
  pool.monitor().read(all.pressure);
  all.pressure.current = pressure();
  all.pressure.retired_workers = pool.retired();
  all.blocking = blocking.read();
  return all;
}

}  // namespace ramie::runtime_internal
