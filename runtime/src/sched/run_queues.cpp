// SPDX-License-Identifier: BSL-1.0
#include "run_queues.hpp"

#include <algorithm>

#include <ramie/platform/thread.hpp>

#include "runner.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

// What a worker may have in its ring, take from the injection queue at once, and shed from a full ring.
constexpr std::size_t most_tasks_of_worker = deque<queued>::capacity + max_injection_batch + overflow_batch + 1;

}  // namespace

run_queues::run_queues(const worker_pool& of) noexcept : pool_(of), injection_(of.capacity() * most_tasks_of_worker) {}

void ring_overflow::put(queued* entry) noexcept {
  from.sched.queues.inject(entry);
}

void ring_overflow::put(queued* const* items, std::uint32_t count) noexcept {
  from.count.overflows.add(1);
  happened.set(true);
  for (std::uint32_t i = 0; i < count; ++i) platform::annotate::take_over(address_of(items[i]));
  from.sched.queues.inject(items, count);
}

void run_queues::push_under_policy(worker& w, fiber& f, bool woken, bool may_preempt) noexcept {
  w.policy->enqueue(w, f, woken);
  if (may_preempt) (void)runner::preemption_point_after_wake(w);
}

fiber* run_queues::give_frame(worker& w, fiber_record& task) noexcept {
  return runner::give_frame(w, task);
}

fiber* run_queues::started_or_next_oldest(worker& w, queued* entry) noexcept {
  for (; entry != nullptr; entry = w.queue.ring.pop_old()) {
    if (fiber* const f = fiber_of(w, entry)) return f;
  }
  return nullptr;
}

fiber* run_queues::started_or_next_youngest(worker& w, queued* entry) noexcept {
  for (; entry != nullptr; entry = w.queue.ring.pop_young()) {
    if (fiber* const f = fiber_of(w, entry)) return f;
  }
  return nullptr;
}

// A full ring sheds tasks as well as fibers, and in the injection queue there is always room for the fibers alone.
bool run_queues::push_task(worker& w, fiber_record& task) noexcept {
  if (w.policy == nullptr && w.queue.ring.try_push(as_entry(task))) {
    w.pool.signal(&w);
    return true;
  }
  if (!w.sched.queues.injection_.try_reserve_for_tasks(overflow_batch + 1)) return false;
  if (w.policy != nullptr) {
    w.policy->enqueue_task(w, task);
    (void)runner::preemption_point_after_wake(w);
  } else {
    w.queue.ring.push(as_entry(task), w.queue.overflow);
    w.pool.signal(&w);
  }
  return true;
}

void run_queues::push_full(worker& w, fiber& f) noexcept {
  if (w.queue.ring.try_push(as_entry(f))) return;
  if (w.sched.queues.injection_.try_reserve_for_tasks(overflow_batch + 1)) {
    w.queue.ring.push(as_entry(f), w.queue.overflow);
  } else {
    w.queue.overflow.put(as_entry(f));
  }
}

// Those that the ring has moved to the injection queue were queued here, too: else one that spawns many and yields in
// between would spawn all of them before most have had a turn.
void run_queues::push_behind_overflow(worker& w, fiber& f) noexcept {
  w.queue.overflow.happened.set(false);
  if (w.policy != nullptr) return push_back(w, f);
  platform::annotate::take_over(&f);
  w.sched.queues.inject(as_entry(f));
  w.pool.signal(&w);
}

void run_queues::push_yielded_locally(worker& w, fiber& f) noexcept {
  if (w.policy == nullptr && local_empty(w)) return push_woken(w, f);
  w.count.enqueued.add(1);
  push_back(w, f);
}

void run_queues::push_from_outside(worker_pool& pool, fiber& f) noexcept {
  check_runnable(f);
  pushed_outside_.fetch_add(1, std::memory_order_relaxed);
  pushing_outside_.fetch_add(1, std::memory_order_relaxed);
  injection_.put(as_entry(f));
  platform::full_fence();  // pairs with the last searcher's, which interrupts nobody: idle_set I3
  pool.signal(nullptr);
  pushing_outside_.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in wait_for_pushers
}

void run_queues::wait_for_pushers() const noexcept {
  while (pushing_outside_.load(std::memory_order_acquire) != 0) platform::yield_thread();
}

fiber* run_queues::take_one_injected(worker& w) noexcept {
  for (queued* entry = nullptr; injection_.take(&entry, 1) != 0;) {
    if (fiber* const f = fiber_of(w, entry)) return f;
  }
  return nullptr;
}

// Only one while the ring has something: a batch would push the ring's own over its edge, back into this queue.
fiber* run_queues::take_injected(worker& w) noexcept {
  const auto waiting = injection_.size();
  if (waiting == 0) return nullptr;
  queued* batch[max_injection_batch];
  const bool only_one = w.policy != nullptr || !w.queue.ring.empty();
  const auto share = only_one ? 1 : fair_batch(waiting, pool_.live_hint());
  const auto count = injection_.take(batch, std::min(share, w.queue.ring.free_slots() + 1));
  if (count == 0) return nullptr;
  w.queue.ring.push_batch(batch + 1, count - 1);
  if (count > 1) w.pool.signal(&w);  // for a moment they were in no queue: somebody may have missed them
  fiber* f = fiber_of(w, batch[0]);
  if (f == nullptr) f = pop_oldest(w);  // it is gone for want of memory
  if (f == nullptr) return nullptr;
  w.count.batch_fetches.add(1);
  w.count.polls.add(1);
  return f;
}

fiber* run_queues::steal(worker& w) noexcept {
  const auto& workers = pool_.workers();
  const auto slots = static_cast<std::uint32_t>(workers.size());
  const auto first = dispatcher::random_below(w, slots);
  for (std::uint32_t i = 0; i < slots; ++i) {
    worker& victim = *workers[(first + i) % slots];
    if (&victim == &w || !has_thread(victim.state())) continue;
    std::uint32_t taken = 0;
    queued* const entry = victim.queue.ring.steal(w.queue.ring, taken);
    fiber* f = nullptr;
    if (entry != nullptr) {
      f = fiber_of(w, entry);
    } else if ((f = victim.queue.newest.steal()) != nullptr) {
      taken = 1;
    }
    if (taken == 0) continue;
    w.count.steals.add(1);
    w.count.stolen.add(taken);
    return f != nullptr ? f : pop_oldest(w);  // null: it is gone for want of memory
  }
  return nullptr;
}

bool run_queues::move_to_injection(worker& w) noexcept {
  bool moved = false;
  if (!try_reserve_to_move(w)) return false;
  if (fiber* const f = w.queue.newest.take()) {
    platform::annotate::take_over(f);  // from a fiber of this very worker, like those of the ring
    injection_.put(as_entry(*f));
    moved = true;
  }
  queued* batch[max_injection_batch];
  for (std::uint32_t n = 1; n != 0;) {
    n = 0;
    while (n < max_injection_batch) {
      queued* const entry = w.queue.ring.pop_old();
      if (entry == nullptr) break;
      platform::annotate::take_over(address_of(entry));
      batch[n++] = entry;
    }
    injection_.put(batch, n);
    moved = moved || n != 0;
  }
  return moved;
}

bool run_queues::work_visible() const noexcept {
  if (!injection_.empty()) return true;
  const auto& workers = pool_.workers();
  return std::any_of(workers.begin(), workers.end(), [](const auto& other) {
    if (!has_thread(other->state())) return false;
    return !other->queue.ring.empty() || other->queue.newest.stealable();
  });
}

bool run_queues::anything_queued() const noexcept {
  const auto& workers = pool_.workers();
  return !injection_.empty() ||
         std::any_of(workers.begin(), workers.end(), [](const auto& w) { return !local_empty(*w); });
}

std::size_t run_queues::size() const noexcept {
  auto sum = injection_.size();
  for (const auto& w : pool_.workers()) sum += w->queue.ring.size() + (w->queue.newest.empty() ? 0 : 1);
  return sum;
}

}  // namespace ramie::runtime_internal
