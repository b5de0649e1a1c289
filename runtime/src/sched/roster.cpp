// SPDX-License-Identifier: BSL-1.0
// Which workers there are: lazy start, growth while some are stalled, retirement, the end.
//
// Slots 0 … 2·M-1. Invariant: workers that are live plus startable ones (a bit in the idle set, no thread)
// are at least M; promotion adds live ones, retirement takes them away again but never below M.
#include <cerrno>
#include <string>
#include <system_error>

#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>

#include "../testing/director.hpp"
#include "scheduler.hpp"

namespace ramie::detail {

namespace {

unsigned checked_workers(const options& wanted) {
  if (wanted.workers == 0) {
    throw usage_error("ramie: options.workers is 0. Use at least 1, or leave it alone for one per processor.");
  }
  if (wanted.workers > max_configured_workers) {
    throw usage_error("ramie: options.workers is " + std::to_string(wanted.workers) + ". At most " +
                      std::to_string(max_configured_workers) + " are supported.");
  }
  return wanted.workers;
}

unsigned checked_threads(const options& wanted) {
  if (wanted.max_blocking_threads == 0) {
    throw usage_error("ramie: options.max_blocking_threads is 0. blocking() needs at least 1.");
  }
  return wanted.max_blocking_threads;
}

}  // namespace

std::uint8_t checked_stack_class(std::size_t bytes, const char* what) {
  if (bytes < platform::min_stack_size || bytes > platform::max_stack_size) {
    throw usage_error(std::string("ramie: ") + what + " is " + std::to_string(bytes) + " bytes. It must be from " +
                      std::to_string(platform::min_stack_size) + " to " + std::to_string(platform::max_stack_size) +
                      ".");
  }
  return platform::stack_class_for(bytes);
}

scheduler::scheduler(const options& wanted, director* by)
    : configured(checked_workers(wanted)),
      capacity(wanted.elastic ? configured * elastic_factor : configured),
      default_class(checked_stack_class(wanted.stack_size, "options.stack_size")),
      root_class(checked_stack_class(wanted.root_stack_size, "options.root_stack_size")),
      elastic(wanted.elastic),
      reports_stalls(platform::debug_checks || wanted.report_stalls),
      chaotic(by != nullptr || wanted.chaos.has_value()),
      directed(by),
      unruly(wanted.chaos.value_or(chaos_mode{})),
      seed(by != nullptr  ? by->seed()
           : wanted.chaos ? wanted.chaos->seed
                          : 0x9e3779b97f4a7c15ull),
      idle(capacity),
      from_user(wanted.stacks, default_class),
      stacks(&scheduler::loop_entry, platform::guard_kind::automatic, platform::usual_hot_limit, from_user.get()),
      root_scope(*this),
      watcher(*this),
      deadlines(wanted.clock != nullptr ? &wanted.clock->internals() : nullptr, capacity),
      still(*this, by != nullptr || deadlines.advances_itself()),
      blocking(checked_threads(wanted), wanted.blocking_idle_time),
      io(wanted.io) {
  platform::choose_fences();
  workers.reserve(capacity);
  for (unsigned i = 0; i < capacity; ++i) {
    const auto own_seed = (seed + i + 1) * 0xd1342543de82ef95ull;
    workers.push_back(std::make_unique<worker>(*this, cancel_epoch, lock_users, i, own_seed));
    if (!chaotic) continue;
    workers.back()->attention.store(worker::chaos, std::memory_order_relaxed);
    workers.back()->budget.set(budget_in_chaos(*workers.back()));
  }
  for (unsigned i = 0; i < configured; ++i) {
    workers[i]->state.store(worker_state::unstarted, std::memory_order_relaxed);
    idle.add_worker();
    idle.announce_sleep(i, false);
  }
  if (elastic || wanted.report_stalls) idle.set_monitor_asleep();
}

scheduler::~scheduler() {
  blocking.stop();  // waits for calls that were left behind
  // A plain thread may still be signalling for a fiber that has long ended.
  while (outside_in_flight.load(std::memory_order_acquire) != 0) platform::yield_thread();
  watcher.stop();
  deadlines.stop();
  {
    std::lock_guard hold(roster_mutex_);
    stopping_ = true;
  }
  for (auto& w : workers) {
    w->attention.fetch_or(worker::stop, std::memory_order_release);
    w->unpark();
  }
  for (auto& w : workers) {
    if (w->thread.joinable()) w->thread.join();
  }
  if (!injection.empty())
    platform::fatal("fibers are still queued while their runtime ends: corruption of the runtime.");
  const auto left = frames.count();
  if (left.made != left.pooled) {
    platform::fatal("%zu fiber frames did not come back before their runtime ended: corruption of the runtime.",
                    left.made - left.pooled);
  }
}

// While we hold a claim that we have to give back we count as searching, and others rely on that: so we look on their
// behalf, and then claim only whom we can surely wake. (Claiming one that can't be started a second time would keep the
// next producer from waking anybody, with nobody left to look for it: model idle, mutant second_failure_unseen.)
bool scheduler::wake_somebody() noexcept {
  for (bool may_start = true;; may_start = false) {
    bool gave_one_back = false;
    const auto fits = [&](std::uint32_t i) {
      return may_start || workers[i]->state.load(std::memory_order_acquire) != worker_state::unstarted;
    };
    for (auto index = idle.claim_parked(0, fits); index; index = idle.claim_parked(*index + 1, fits)) {
      if (rouse(*index)) return true;
      gave_one_back = true;
    }
    if (!gave_one_back) return false;
    platform::heavy_fence();
    if (!work_visible() && !still.anybody_cares()) return false;  // who fell asleep meanwhile did not find all still
  }
}

bool scheduler::rouse(std::uint32_t index) noexcept {
  worker& w = *workers[index];
  if (w.state.load(std::memory_order_acquire) != worker_state::unstarted) {
    w.unpark();
    return true;
  }
  if (start_thread(index)) return true;
  idle.return_claim(index);
  return false;
}

// The caller owns the slot: it has claimed the bit of an unstarted one, or promotes a dead one.
bool scheduler::start_thread(std::uint32_t index) noexcept {
  std::lock_guard hold(roster_mutex_);
  if (stopping_) return false;
  worker& w = *workers[index];
  const auto before = w.state.load(std::memory_order_relaxed);
  try {
    if (w.thread.joinable()) w.thread.join();  // a retired predecessor, at its very end
    w.searching.set(true);
    w.state.store(worker_state::idle_spin, std::memory_order_relaxed);
    w.thread = platform::start_thread([](void* of) { thread_main(*static_cast<worker*>(of)); }, &w);
    live.fetch_add(1, std::memory_order_seq_cst);
    return true;
  } catch (...) {                                      // no thread, or no memory to make one
    w.state.store(before, std::memory_order_release);  // still the caller's: a dead slot is anybody's
    return false;
  }
}

int scheduler::prepare_io(worker& w, platform::time_point until) noexcept {
  try {
    if (!w.io.is_open()) open_port(w);
    if (until != timekeeper::never) deadlines.prepare();  // after it has begun there is no way back
    return 0;
  } catch (const std::system_error& e) {
    return e.code().value() == EAGAIN ? -ENOMEM : -e.code().value();  // no thread: nothing that comes by waiting
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

void scheduler::open_port(worker& w) {
  w.io.open(io);
  if (!elastic && !io_watched.exchange(true, std::memory_order_relaxed)) idle.set_monitor_asleep();
}

void scheduler::ensure_a_worker() {
  if (live.load(std::memory_order_acquire) != 0) return;
  std::lock_guard one_by_one(first_worker_mutex_);
  if (live.load(std::memory_order_acquire) != 0) return;
  const auto index = idle.claim_parked();  // nobody else claims before there is a first worker
  if (!index || !rouse(*index)) {
    throw std::system_error(EAGAIN, std::generic_category(),
                            "ramie: the first worker thread could not be started; raise the limit of threads");
  }
}

bool scheduler::promote_one() noexcept {
  std::lock_guard one_at_a_time(growth_mutex_);
  for (std::uint32_t i = 0; i < capacity; ++i) {
    if (workers[i]->state.load(std::memory_order_acquire) != worker_state::dead) continue;
    idle.add_searcher();
    if (start_thread(i)) return true;
    (void)idle.leave_search();
    idle.remove_worker();
    platform::heavy_fence();
    if (work_visible() || still.anybody_cares()) (void)wake_somebody();  // for those who relied on the search
    return false;
  }
  return false;
}

// Not one with operations under way: the kernel would take them along.
bool scheduler::may_retire(const worker& w) noexcept {
  if (w.io.busy()) return false;
  auto now = live.load(std::memory_order_relaxed);
  while (now > configured && now - stalled.load(std::memory_order_relaxed) > configured) {
    if (live.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// The worker polls again: it is no longer stalled, if it was. Returns what it was marked with.
std::uint32_t scheduler::forgive(worker& w) noexcept {
  const auto seen = w.attention.fetch_and(~worker::stalled, std::memory_order_acq_rel);
  if ((seen & worker::stalled) != 0) {
    stalled.fetch_sub(1, std::memory_order_acq_rel);
    w.newest.close();
  }
  return seen;
}

bool scheduler::attend(worker& w) noexcept {
  const auto seen = forgive(w);
  if ((seen & worker::stop) != 0) {
    live.fetch_sub(1, std::memory_order_acq_rel);
    if (w.searching.get()) (void)idle.leave_search();
    w.searching.set(false);
    return true;
  }
  if ((seen & worker::stalled) == 0 || !may_retire(w)) return chaotic && rescale_in_chaos(w);
  drain(w);
  return true;
}

bool scheduler::hand_over(worker& w) noexcept {
  bool moved = false;
  if (fiber* const f = w.newest.take()) {
    platform::annotate::take_over(f);  // from a fiber of this very worker, like those of the ring
    injection.put(f);
    moved = true;
  }
  fiber* batch[max_global_batch];
  for (std::uint32_t n = 1; n != 0;) {
    n = 0;
    while (n < max_global_batch) {
      fiber* const f = w.ring.pop_old();
      if (f == nullptr) break;
      platform::annotate::take_over(f);
      batch[n++] = f;
    }
    injection.put(batch, n);
    moved = moved || n != 0;
  }
  return moved;
}

// DRAINING: nothing new is taken; what is here goes to the injection queue, for the others. So does the time: whoever
// sleeps has counted on this worker, which was awake, for deadlines that were added since (timekeeper.hpp).
void scheduler::drain(worker& w) noexcept {
  w.state.store(worker_state::draining, std::memory_order_relaxed);
  retired_workers.fetch_add(1, std::memory_order_relaxed);
  const bool moved = hand_over(w);
  if (w.searching.get()) {
    w.searching.set(false);
    if (idle.leave_search().searching() == 0) platform::heavy_fence();
  }
  if (moved || work_visible() || deadlines.nobody_on_duty()) signal(&w);
}

std::int64_t scheduler::pressure() const noexcept {
  auto sum = static_cast<std::int64_t>(enqueued_outside.load(std::memory_order_relaxed));
  for (const auto& w : workers) {
    const auto queued = w->count.spawned.get() + w->count.enqueued.get();
    sum += static_cast<std::int64_t>(queued) - static_cast<std::int64_t>(w->count.polls.get());
  }
  return sum;
}

runtime_stats scheduler::stats() const {
  runtime_stats all;
  for (const auto& w : workers) {
    all.workers.push_back(w->count.read());
    all.total += all.workers.back();
    w->mischief.add_to(all.chaos);
  }
  all.configured_workers = configured;
  all.live_workers = live.load(std::memory_order_acquire);
  all.retreated_workers = leaves.out();
  all.enqueued_outside = enqueued_outside.load(std::memory_order_relaxed);
  all.injection_over_mark = injection.times_over_mark();
  const auto stack_census = stacks.count();
  all.stacks_in_use = stack_census.taken;
  all.stack_slots = stack_census.slots;
  all.frames_made = frames.count().made;
  watcher.read(all.pressure);
  all.pressure.current = pressure();
  all.pressure.retired_workers = retired_workers.load(std::memory_order_relaxed);
  all.blocking = blocking.read();
  return all;
}

}  // namespace ramie::detail
