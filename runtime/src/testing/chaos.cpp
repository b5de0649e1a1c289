// SPDX-License-Identifier: BSL-1.0
#include "chaos.hpp"

#include <cstddef>
#include <iterator>
#include <vector>

#include <ramie/platform/random.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/constants.hpp>

#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

// One in so many.
constexpr std::uint32_t yield_odds = 4;
constexpr std::uint32_t wake_yield_odds = 8;
constexpr std::uint32_t ring_odds = 2;  // queued in the worker's own ring, where it can be stolen
constexpr std::uint32_t steal_odds = 4;
constexpr std::uint32_t delay_odds = 8;
constexpr std::uint32_t scaling_odds = 256;

constexpr std::uint32_t longest_delay = 16;   // polls
constexpr std::uint32_t longest_budget = 16;  // operations

// Every member of chaos_counts, to add them all alike.
template <class Count>
constexpr Count chaos_counts<Count>::*every_chaos_count[] = {
    &chaos_counts<Count>::yields,    &chaos_counts<Count>::wake_yields,      &chaos_counts<Count>::steals,
    &chaos_counts<Count>::held_back, &chaos_counts<Count>::promoted_workers, &chaos_counts<Count>::retired_workers,
};
static_assert(sizeof(chaos_stats) == std::size(every_chaos_count<std::uint64_t>) * sizeof(std::uint64_t),
              "every_chaos_count lacks a member of chaos_counts");

// What it needs for each worker. Owner only; the counters may be read by anybody.
struct alignas(platform::cache_line) worker_chaos {
  explicit worker_chaos(std::uint64_t seed) noexcept : rng(seed) {}
  platform::xorshift rng;
  chaos_counts<counters::count> count;
};

class chaos_policy final : public scheduling_policy {
 public:
  chaos_policy(const chaos_mode& wanted, unsigned worker_slots) : wanted_(wanted) {
    own_.reserve(worker_slots);
    for (unsigned i = 0; i < worker_slots; ++i) {
      const auto own_seed = platform::seed_of_worker(wanted.seed, i);
      own_.push_back(std::make_unique<worker_chaos>(own_seed ^ 0x2545f4914f6cdd1dull));
    }
  }

  void enqueue(worker& w, fiber& f, bool woken) noexcept override;
  void enqueue_task(worker& w, fiber_record& task) noexcept override;
  fiber* next(worker& w) noexcept override;
  fiber* next_for_join(worker& w) noexcept override;
  bool decides_joins() const noexcept override { return false; }
  bool preempts(worker& w, point where) noexcept override;
  std::uint32_t budget(worker& w) noexcept override {
    return wanted_.yields ? 1 + of(w).rng.below(longest_budget) : budget_per_tick;
  }
  void yielded(fiber&) noexcept override {}
  bool retires(worker& w) noexcept override;
  bool standstill(scheduler&) noexcept override { return false; }
  std::uint64_t seed() const noexcept override { return wanted_.seed; }
  void check_failed(const std::string&) noexcept override {}
  void add_to(chaos_stats& sum) const noexcept override;

 private:
  [[nodiscard]] worker_chaos& of(const worker& w) noexcept { return *own_[w.index]; }
  [[nodiscard]] bool happens(worker& w, std::uint32_t odds) noexcept { return of(w).rng.below(odds) == 0; }
  [[nodiscard]] fiber* pick(worker& w) noexcept;
  [[nodiscard]] static fiber* steal(worker& w) noexcept;

  const chaos_mode wanted_;
  std::vector<std::unique_ptr<worker_chaos>> own_;
};

void chaos_policy::enqueue(worker& w, fiber& f, bool woken) noexcept {
  if (woken && wanted_.delays && happens(w, delay_odds)) {
    f.held_back.set(static_cast<std::uint8_t>(1 + of(w).rng.below(longest_delay)));
    of(w).count.held_back.add(1);
  }
  if (wanted_.steals && f.held_back.get() == 0 && happens(w, ring_odds)) {
    run_queues::push_ring(w, f);
  } else {
    w.sched.queues.inject(as_entry(f));
    w.pool.signal(&w);
  }
}

void chaos_policy::enqueue_task(worker& w, fiber_record& task) noexcept {
  if (wanted_.steals && happens(w, ring_odds)) {
    w.queue.ring.push(as_entry(task), w.queue.overflow);
  } else {
    w.sched.queues.inject(as_entry(task));
  }
  w.pool.signal(&w);
}

bool chaos_policy::preempts(worker& w, point where) noexcept {
  switch (where) {
    case point::wait:
      if (!wanted_.yields || !happens(w, yield_odds)) return false;
      of(w).count.yields.add(1);
      return true;
    case point::after_wake:
      if (!wanted_.wake_yields || !happens(w, wake_yield_odds)) return false;
      of(w).count.wake_yields.add(1);
      return true;
    case point::budget_used:  // here it is the budget that is random
      if (wanted_.yields) of(w).count.yields.add(1);
      return true;
  }
  return false;
}

fiber* chaos_policy::next_for_join(worker& w) noexcept {
  fiber* const f = w.sched.queues.take_one_injected(w);
  if (f == nullptr) return nullptr;
  f->held_back.set(0);
  f->last_worker.set(static_cast<std::uint16_t>(w.index + 1));
  w.count.polls.add(1);
  return f;
}

// A thief under this policy need not be searching: nobody relies on it to look after the rest, which was in no ring for
// a moment.
fiber* chaos_policy::steal(worker& w) noexcept {
  fiber* const f = w.sched.queues.steal(w);
  if (f != nullptr && !run_queues::ring_empty(w)) w.pool.signal(&w);
  return f;
}

// Something to run, from anywhere. It looks at the injection queue once: if somebody outside came in between, the number of
// draws would depend on how fast the machine is.
fiber* chaos_policy::pick(worker& w) noexcept {
  run_queues& queues = w.sched.queues;
  const bool none_injected = queues.injection_empty();
  const bool forced = wanted_.steals && run_queues::ring_empty(w) && !none_injected && happens(w, steal_odds);
  if (forced) {
    if (fiber* const f = steal(w)) {
      of(w).count.steals.add(1);
      return f;
    }
  }
  if (none_injected && run_queues::ring_empty(w)) return steal(w);
  fiber* f = happens(w, 2) ? run_queues::pop_oldest(w) : nullptr;
  if (f == nullptr) f = queues.take_one_injected(w);
  if (f == nullptr) f = run_queues::pop_oldest(w);
  return f != nullptr ? f : steal(w);
}

// A fiber that is delayed, and one that comes back to the worker it left, goes round again, as long as somebody else
// may take its place. Not for ever: the others may all be busy, waiting for this very fiber.
fiber* chaos_policy::next(worker& w) noexcept {
  const auto& clock = platform::steady_clock::instance();
  const auto give_up = clock.now() + handover_timeout;
  const auto me = static_cast<std::uint16_t>(w.index + 1);
  run_queues& queues = w.sched.queues;
  for (;;) {
    fiber* const f = pick(w);
    if (f == nullptr) return nullptr;
    platform::annotate::take_over(f);  // from a fiber of this very worker, perhaps
    const bool too_early = f->held_back.get() != 0 && (!queues.injection_empty() || !run_queues::ring_empty(w));
    const bool moved = f->last_worker.get() != me;
    const bool stays = !moved && wanted_.migrations && w.pool.live_hint() > 1 && clock.now() < give_up;
    if (too_early) {
      f->held_back.add(static_cast<std::uint8_t>(-1));
    } else if (!stays) {
      if (moved && f->last_worker.get() != 0) w.count.migrations.add(1);
      f->last_worker.set(me);
      f->held_back.set(0);
      w.count.polls.add(1);
      return f;
    }
    queues.inject(as_entry(*f));
    w.pool.signal(&w);
    if (!too_early) platform::yield_thread();
  }
}

bool chaos_policy::retires(worker& w) noexcept {
  if (!w.pool.elastic() || !wanted_.scaling) return false;
  const auto drawn = of(w).rng.below(scaling_odds);
  if (drawn == 0 && w.pool.promote_one()) of(w).count.promoted_workers.add(1);
  if (drawn != 1 || !w.pool.may_retire(w)) return false;
  of(w).count.retired_workers.add(1);
  w.pool.drain(w);
  return true;
}

void chaos_policy::add_to(chaos_stats& sum) const noexcept {
  for (const auto& each : own_) {
    for (std::size_t i = 0; i < std::size(every_chaos_count<counters::count>); ++i) {
      sum.*every_chaos_count<std::uint64_t>[i] += (each->count.*every_chaos_count<counters::count>[i]).get();
    }
  }
}

}  // namespace

std::unique_ptr<scheduling_policy> make_chaos(const chaos_mode& wanted, unsigned worker_slots) {
  return std::make_unique<chaos_policy>(wanted, worker_slots);
}

}  // namespace ramie::runtime_internal
