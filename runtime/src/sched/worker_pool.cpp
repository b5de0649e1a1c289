// SPDX-License-Identifier: BSL-1.0
// Starting, waking, retiring and stopping workers: worker_pool.hpp.
#include "worker_pool.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include <ramie/error.hpp>
#include <ramie/platform/cpu.hpp>

#include "runner.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

unsigned checked_workers(const options& wanted) {
  if (wanted.workers == 0) {
    throw usage_error(
        "ramie: runtime::runtime: options.workers is 0. Use at least 1, or leave it alone for one per processor.");
  }
  if (wanted.workers > max_configured_workers) {
    throw usage_error("ramie: runtime::runtime: options.workers is " + std::to_string(wanted.workers) +
                      ". Use at most " + std::to_string(max_configured_workers) + ".");
  }
  return wanted.workers;
}

}  // namespace

worker_pool::worker_pool(scheduler& of, const options& wanted)
    : sched_(of),
      configured_(checked_workers(wanted)),
      capacity_(wanted.elastic ? configured_ * elastic_factor : configured_),
      elastic_(wanted.elastic),
      idle_((platform::choose_fences(), capacity_)),
      monitor_(of) {}

void worker_pool::make_workers(std::uint64_t seed) {
  workers_.reserve(capacity_);
  for (unsigned i = 0; i < capacity_; ++i) {
    workers_.push_back(std::make_unique<worker>(sched_, *this, lock_users_, i, platform::seed_of_worker(seed, i)));
    worker& w = *workers_.back();
    if (w.policy == nullptr) continue;
    w.life.attention.store(worker::under_policy, std::memory_order_relaxed);
    dispatcher::keep_pace(w);
    w.budget.set(w.policy->budget(w));
  }
  for (unsigned i = 0; i < configured_; ++i) {
    workers_[i]->life.state.store(worker_state::unstarted, std::memory_order_relaxed);
    idle_.add_worker();
    idle_.announce_sleep(i, false);
  }
}

void worker_pool::stop() noexcept {
  {
    std::lock_guard hold(threads_mutex_);
    stopping_ = true;
  }
  for (auto& w : workers_) {
    w->life.attention.fetch_or(worker::stop, std::memory_order_release);
    w->unpark();
  }
  for (auto& w : workers_) {
    if (w->life.thread.joinable()) w->life.thread.join();
  }
}

std::uint64_t worker_pool::polls_of_others(const worker& w) const noexcept {
  std::uint64_t sum = 0;
  for (const auto& other : workers_) sum += other.get() == &w ? 0 : other->count.polls.get();
  return sum;
}

void worker_pool::signal_slow(worker* by, idle_set::snapshot seen) noexcept {
  const bool woke_one = seen.should_wake() && wake_one();
  // A worker woken from outside arms the monitor itself if it leaves anything queued (dispatcher::found_work).
  const bool needs_watching = by != nullptr || !woke_one;
  if (needs_watching && seen.monitor_asleep() && idle_.clear_monitor_asleep()) monitor_.wake();
}

// While we hold a claim that we have to give back we count as searching, and others rely on that: so we check the
// queues for them, and then claim only a worker that we can surely wake. (Claiming one that can't be started a second
// time would keep the next producer from waking a worker, and no searcher would find its entry: model idle, mutant
// second_failure_unseen.)
bool worker_pool::wake_one() noexcept {
  for (bool may_start = true;; may_start = false) {
    bool gave_one_back = false;
    const auto fits = [&](std::uint32_t i) {
      return may_start || workers_[i]->life.state.load(std::memory_order_acquire) != worker_state::unstarted;
    };
    for (auto index = idle_.claim_parked(0, fits); index; index = idle_.claim_parked(*index + 1, fits)) {
      if (wake_claimed(*index)) return true;
      gave_one_back = true;
    }
    if (!gave_one_back) return false;
    platform::heavy_fence();
    if (!worker_needed()) return false;
  }
}

// A worker that fell asleep while a claim was held did not find all workers parked, and so did not check whether all
// fibers are blocked (quiescence.hpp).
bool worker_pool::worker_needed() const noexcept {
  return sched_.queues.work_visible() || sched_.all_blocked.has_waiters();
}

// The worker was claimed from the idle set. False: its thread can't be started, and the claim is given back.
bool worker_pool::wake_claimed(std::uint32_t index) noexcept {
  worker& w = *workers_[index];
  if (w.life.state.load(std::memory_order_acquire) != worker_state::unstarted) {
    w.unpark();
    return true;
  }
  if (start_thread(index)) return true;
  idle_.return_claim(index);
  return false;
}

// The caller owns the slot: WP2.
bool worker_pool::start_thread(std::uint32_t index) noexcept {
  std::lock_guard hold(threads_mutex_);
  if (stopping_) return false;
  worker& w = *workers_[index];
  const auto before = w.life.state.load(std::memory_order_relaxed);
  try {
    if (w.life.thread.joinable()) w.life.thread.join();  // a retired predecessor, at its very end
    dispatcher::will_start(w);
    set_state(w, worker_state::idle_spin);
    w.life.thread = platform::start_thread([](void* of) { runner::thread_main(*static_cast<worker*>(of)); }, &w);
    live_.fetch_add(1, std::memory_order_seq_cst);
    return true;
  } catch (...) {                                           // no thread, or no memory to make one
    w.life.state.store(before, std::memory_order_release);  // still the caller's: a dead slot is anybody's
    return false;
  }
}

void worker_pool::start_first() {
  if (live() != 0) return;
  std::lock_guard one_by_one(first_worker_mutex_);
  if (live() != 0) return;
  const auto index = idle_.claim_parked();  // nobody else claims before there is a first worker
  if (!index || !wake_claimed(*index)) {
    throw std::system_error(EAGAIN, std::system_category(),
                            "ramie: runtime::run: no thread for the first worker. Raise the limit of threads");
  }
}

bool worker_pool::promote_one() noexcept {
  std::lock_guard one_at_a_time(growth_mutex_);
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    if (workers_[i]->life.state.load(std::memory_order_acquire) != worker_state::dead) continue;
    idle_.add_searcher();
    if (start_thread(i)) return true;
    (void)idle_.leave_search();
    idle_.remove_worker();
    platform::heavy_fence();
    if (worker_needed()) (void)wake_one();  // for those who relied on the search
    return false;
  }
  return false;
}

// Not one with operations under way: the kernel would take them along.
bool worker_pool::may_retire(const worker& w) noexcept {
  if (w.io.busy() || !sched_.queues.try_reserve_to_move(w)) return false;
  auto now = live_.load(std::memory_order_relaxed);
  while (now > configured_ && now - stalled_.load(std::memory_order_relaxed) > configured_) {
    if (live_.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void worker_pool::mark_stalled(worker& w) noexcept {
  if ((w.life.attention.fetch_or(worker::stalled, std::memory_order_acq_rel) & worker::stalled) != 0) return;
  stalled_.fetch_add(1, std::memory_order_acq_rel);
  run_queues::open_to_thieves(w);
}

std::uint32_t worker_pool::clear_stalled(worker& w) noexcept {
  const auto seen = w.life.attention.fetch_and(~worker::stalled, std::memory_order_acq_rel);
  if ((seen & worker::stalled) != 0) {
    stalled_.fetch_sub(1, std::memory_order_acq_rel);
    run_queues::close_to_thieves(w);
  }
  return seen;
}

bool worker_pool::attend(worker& w) noexcept {
  const auto seen = clear_stalled(w);
  if ((seen & worker::stop) != 0) {
    live_.fetch_sub(1, std::memory_order_acq_rel);
    (void)dispatcher::leave_search(w);
    return true;
  }
  if ((seen & worker::stalled) == 0 || !may_retire(w)) return w.policy != nullptr && w.policy->retires(w);
  drain(w);
  return true;
}

// The sleeping workers relied on this one, which was awake, for deadlines that were added since (timekeeper.hpp): so
// another worker must become the timer sleeper.
void worker_pool::drain(worker& w) noexcept {
  set_state(w, worker_state::draining);
  retired_.fetch_add(1, std::memory_order_relaxed);
  const bool moved = sched_.queues.move_to_injection(w);
  if (dispatcher::leave_search(w)) platform::heavy_fence();
  if (moved || sched_.queues.work_visible() || sched_.deadlines.needs_timer_sleeper()) signal(&w);
}

void worker_pool::thread_ended(worker& w) noexcept {
  (void)clear_stalled(w);  // marked on the way out
  w.life.attention.fetch_and(~worker::entangled, std::memory_order_relaxed);
  set_this_worker(nullptr);
  idle_.remove_worker();
  if (sched_.all_blocked.has_waiters()) (void)sched_.all_blocked.check();
  w.life.state.store(worker_state::dead, std::memory_order_release);
}

}  // namespace ramie::runtime_internal
