// SPDX-License-Identifier: BSL-1.0
// The run queues: where RUNNABLE fibers wait for their turn.
//
// Each worker has a LIFO slot for the fiber woken last, whose data is still in its caches, and a ring. All workers
// share the injection queue: for fibers made runnable by plain threads, and for what overflows a ring. An entry of the
// ring or of the injection queue is a fiber, or a task: a child that has not started and has no frame yet (queued.hpp).
// Whoever takes a task from a queue gives it its frame, but for joins, which may not need one (pop_youngest_entry).
//
// Invariants
//   Q4   A RUNNABLE fiber is pushed exactly once for each transition to RUNNABLE (F2, F4), and is in exactly one place
//        from the push until a worker takes it. A push makes the entry visible, then signals (worker_pool::signal; I3).
//   Q8   No worker is woken for the LIFO slot, because its owner comes to it next: only the monitor is. The slot of a
//        worker that the monitor has marked as stalled is open to thieves.
//   RQ2  A task stands for the INIT state: no word, no number, nobody who could wake it. It is in exactly one place, like
//        a RUNNABLE fiber.
//   RQ1  Only the owner pushes to its LIFO slot and its ring. Thieves take from the old end of the ring.
//
// Order: the LIFO slot first, but at most three times in a row while others wait in the ring; then the ring, oldest
// first. When the injection queue has its turn is the dispatcher's decision.
//
// The functions that every wake, yield and poll runs through are inline: a switch costs one mispredicted return for
// each call between the user's code and the jump.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fatal.hpp>

#include "injection_queue.hpp"
#include "worker_pool.hpp"

namespace ramie::runtime_internal {

class run_queues {
 public:
  explicit run_queues(const worker_pool& of) noexcept;
  run_queues(const run_queues&) = delete;
  run_queues& operator=(const run_queues&) = delete;

  // Pushes. The owner `w`, a RUNNABLE fiber that is in no queue -------------------------------------------

  // A new fiber, to the young end of the ring. Under a policy the spawner may have to yield.
  static void push_spawned(worker& w, fiber& f) noexcept;
  // Like push_spawned, but for a task. False, and nothing has happened: the ring is full, and there is no memory for the
  // injection queue to grow.
  [[nodiscard]] static bool push_task(worker& w, fiber_record& task) noexcept;
  // Like push_task, but does not signal. False, and nothing has happened, if the ring may be full or a policy decides.
  [[nodiscard]] static bool try_push_task(worker& w, fiber_record& task) noexcept;
  // A fiber that was parked, to the LIFO slot. `may_preempt`: a fiber calls that holds no lock, and asks anew which
  // worker it is on afterwards; under a policy it may have to yield.
  static void push_woken(worker& w, fiber& f, bool may_preempt = false) noexcept;
  // A fiber that has yielded: behind everybody.
  static void push_yielded(worker& w, fiber& f) noexcept;
  // A fiber that yields to those of its own worker only: behind the ring, or next if nothing is queued here.
  static void push_yielded_locally(worker& w, fiber& f) noexcept;
  // A fiber that was taken and is not needed: to the young end of the ring.
  static void push_back(worker& w, fiber& f) noexcept;
  // To the young end of the ring, whatever a policy says.
  static void push_ring(worker& w, fiber& f) noexcept {
    if (!w.queue.ring.try_push_quick(as_entry(f))) [[unlikely]]
      push_full(w, f);
    w.pool.signal(&w);
  }

  // Takes. The owner ------------------------------------------------------------------------------------

  // The next of the worker's own queues, or null. It is poll number `polls` of the worker.
  [[nodiscard]] static fiber* pop(worker& w, std::uint64_t polls) noexcept;
  // The oldest or the youngest of the ring alone, or null. Not yet counted as a poll.
  [[nodiscard]] static fiber* pop_oldest(worker& w) noexcept;
  [[nodiscard]] static fiber* pop_youngest(worker& w) noexcept;
  // Like pop_youngest, but a task stays one: the caller gives it a frame (fiber_of), or runs it without.
  [[nodiscard]] static queued* pop_youngest_entry(worker& w) noexcept { return w.queue.ring.pop_young(); }
  // The same in two steps (deque.hpp).
  [[nodiscard]] static bool pop_youngest_quick(worker& w, queued*& entry, bool& has_lowered) noexcept {
    return w.queue.ring.pop_young_quick(entry, has_lowered);
  }
  [[nodiscard]] static queued* pop_youngest_rest(worker& w, bool has_lowered) noexcept {
    return w.queue.ring.pop_young_rest(has_lowered);
  }
  // The fiber in an entry that was taken; a task gets its frame. Null: there was no memory for one, and the task is gone.
  [[nodiscard]] static fiber* fiber_of(worker& w, queued* entry) noexcept {
    return is_task(entry) ? give_frame(w, task_in(entry)) : &fiber_in(entry);
  }
  // Whether an unstarted fiber at the young end of the ring may go before all others: no woken fiber waits in the LIFO
  // slot, and at most max_fresh_polls times in a row, since the oldest would starve.
  [[nodiscard]] static bool fresh_may_go_first(const worker& w) noexcept {
    return w.queue.newest.empty() && w.queue.fresh_polls.get() < max_fresh_polls;
  }
  // If the youngest entry has not started: counts a turn for it (fresh_polls) and returns true. Racy: a thief may take
  // it first.
  [[nodiscard]] static bool begin_fresh_turn(worker& w) noexcept;
  // One to which a join yields: of the LIFO slot; else the oldest of the ring, if it has started or the caller says
  // that unstarted ones have waited long enough. Not yet counted as a poll.
  template <class WaitedLong>
  [[nodiscard]] static fiber* pop_for_others(worker& w, WaitedLong waited_long) noexcept;
  // What the worker will probably pop next. Racy: only a hint, since a thief may be faster.
  [[nodiscard]] static const queued* peek_oldest(worker& w) noexcept { return w.queue.ring.peek_old(); }
  // The LIFO slot has its turns again.
  static void restart_lifo_turns(worker& w) noexcept { w.queue.lifo_polls.set(0); }

  // One from the injection queue, or null; the rest of a batch goes to the ring. Counted as a poll.
  [[nodiscard]] fiber* take_injected(worker& w) noexcept;
  // Half of another worker's ring: one to run, the others are in w's ring, which must have been empty; or a stalled
  // worker's LIFO slot. Null: there is nothing to steal. Not yet counted as a poll.
  [[nodiscard]] fiber* steal(worker& w) noexcept;
  // Moves everything the worker has queued to the injection queue. True: there was something. Does not signal. Moves
  // nothing if there is no memory for it (try_reserve_to_move).
  [[nodiscard]] bool move_to_injection(worker& w) noexcept;
  // So that move_to_injection moves everything. False: there is no memory.
  [[nodiscard]] bool try_reserve_to_move(const worker& w) noexcept {
    return injection_.try_reserve_for_tasks(w.queue.ring.size());
  }

  // The monitor has marked the worker as stalled; the worker is back.
  static void open_to_thieves(worker& w) noexcept { w.queue.newest.open_to_thieves(); }
  static void close_to_thieves(worker& w) noexcept { w.queue.newest.close(); }

  // The injection queue. Any thread ---------------------------------------------------------------------

  // A RUNNABLE fiber, from a thread that is no worker of this runtime. The fiber may run, end, and let its runtime end
  // before this returns: see wait_for_pushers.
  void push_from_outside(worker_pool& pool, fiber& f) noexcept;
  void inject(queued* entry) noexcept { injection_.put(entry); }  // does not signal
  void inject(queued* const* items, std::uint32_t count) noexcept { injection_.put(items, count); }
  // The oldest one alone, or null. Not counted as a poll. `w`: the caller's.
  [[nodiscard]] fiber* take_one_injected(worker& w) noexcept;
  [[nodiscard]] bool injection_empty() const noexcept { return injection_.empty(); }
  // Spawns from outside wait here while the queue is over its mark.
  void wait_for_capacity() { injection_.wait_for_capacity(); }
  // Makes room for so many fibers in all, so that a wake is never refused. Throws std::bad_alloc.
  void reserve(std::size_t frames) { injection_.reserve(frames); }
  // Before the runtime ends: a plain thread may still be signalling for a fiber that has long ended.
  void wait_for_pushers() const noexcept;

  // Queries. Any thread ---------------------------------------------------------------------------------

  [[nodiscard]] static bool local_empty(const worker& w) noexcept {
    return w.queue.ring.empty() && w.queue.newest.empty();
  }
  [[nodiscard]] static bool ring_empty(const worker& w) noexcept { return w.queue.ring.empty(); }
  [[nodiscard]] static std::uint32_t ring_size(const worker& w) noexcept { return w.queue.ring.size(); }
  [[nodiscard]] static std::uint32_t ring_free_slots(const worker& w) noexcept { return w.queue.ring.free_slots(); }
  // Something that a searching worker could take.
  [[nodiscard]] bool work_visible() const noexcept;
  // Something anywhere: the LIFO slots of workers that make progress count, too.
  [[nodiscard]] bool anything_queued() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;  // racy: only a hint
  [[nodiscard]] std::uint64_t pushed_from_outside() const noexcept {
    return pushed_outside_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t times_over_mark() const noexcept { return injection_.times_over_mark(); }

 private:
  friend struct tests_of_parts;

  static void push_under_policy(worker& w, fiber& f, bool woken, bool may_preempt) noexcept;
  static void push_behind_overflow(worker& w, fiber& f) noexcept;
  static void push_full(worker& w, fiber& f) noexcept;
  [[nodiscard]] static fiber* give_frame(worker& w, fiber_record& task) noexcept;
  // The task in `entry` with its frame. If there is no memory for one, the next of the ring.
  [[nodiscard]] static fiber* started_or_next_oldest(worker& w, queued* entry) noexcept;
  [[nodiscard]] static fiber* started_or_next_youngest(worker& w, queued* entry) noexcept;
  [[nodiscard]] static bool newest_may_go_first(worker& w) noexcept;

  const worker_pool& pool_;
  alignas(platform::cache_line) injection_queue<queued> injection_;
  platform::atomic<std::uint64_t> pushed_outside_{0};
  platform::atomic<std::uint32_t> pushing_outside_{0};
};

inline void check_runnable(const fiber& f) noexcept {
  if constexpr (platform::debug_checks) {
    const auto seen = f.word.load();
    if (seen.state() != lifecycle::runnable) {
      platform::fatal("fiber #%u is queued while %s (F2): corruption of the runtime.", f.number, name_of(seen.state()));
    }
  }
}

inline void run_queues::push_spawned(worker& w, fiber& f) noexcept {
  if (w.policy == nullptr) [[likely]]
    return push_ring(w, f);
  push_under_policy(w, f, false, true);
}

RAMIE_FLATTEN bool run_queues::try_push_task(worker& w, fiber_record& task) noexcept {
  return w.policy == nullptr && w.queue.ring.try_push_quick(as_entry(task));
}

inline void run_queues::push_back(worker& w, fiber& f) noexcept {
  if (w.policy == nullptr) [[likely]]
    return push_ring(w, f);
  push_under_policy(w, f, false, false);
}

RAMIE_FLATTEN void run_queues::push_yielded(worker& w, fiber& f) noexcept {
  if (w.queue.overflow.happened.get()) [[unlikely]]
    return push_behind_overflow(w, f);
  push_back(w, f);
}

// Whether the LIFO slot may come before the ring once more. While the ring is empty nobody is passed over.
RAMIE_FLATTEN bool run_queues::newest_may_go_first(worker& w) noexcept {
  if (w.queue.lifo_polls.get() < max_lifo_polls) [[likely]]
    return true;
  if (!w.queue.ring.empty()) return false;
  w.queue.lifo_polls.set(0);
  return true;
}

RAMIE_FLATTEN void run_queues::push_woken(worker& w, fiber& f, bool may_preempt) noexcept {
  check_runnable(f);
  w.count.enqueued.add(1);
  if (w.policy != nullptr) return push_under_policy(w, f, true, may_preempt);
  // Newest first, for its warm data; but no longer while others wait in the ring.
  if (!newest_may_go_first(w)) return push_ring(w, f);
  // It goes on soon: its waker has a few steps left, in which its stack can be fetched.
  const auto resume_at = reinterpret_cast<std::uintptr_t>(f.resume_point);
  for (std::size_t at = 0; at < prefetched_resume_bytes; at += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(resume_at + at), 1);
  }
  if (fiber* const older = w.queue.newest.put(&f)) return push_ring(w, *older);
  // Nobody is woken for the LIFO slot: this worker comes to it next. If it does not, the monitor sees it.
  w.pool.wake_monitor();
}

RAMIE_FLATTEN fiber* run_queues::pop(worker& w, std::uint64_t polls) noexcept {
  fiber* f = nullptr;
  if (!w.queue.newest.empty()) {
    const bool capped = !newest_may_go_first(w);
    f = w.queue.newest.take();
    if (f != nullptr && !capped) [[likely]] {
      w.queue.lifo_polls.add(1);
      w.count.lifo_hits.add(1);
      w.count.polls.set(polls);
      return f;
    }
    if (f != nullptr) push_ring(w, *f);  // it waits its turn now, and thieves see it
  }
  f = pop_oldest(w);
  if (f == nullptr) return nullptr;
  w.queue.lifo_polls.set(0);
  w.queue.fresh_polls.set(0);
  w.count.polls.set(polls);
  return f;
}

// Not loops, although the next one follows a task that can't have a frame: around these the compiler would keep the
// addresses of all that a poll touches, for the rounds that never come.
RAMIE_FLATTEN fiber* run_queues::pop_oldest(worker& w) noexcept {
  queued* const entry = w.queue.ring.pop_old();
  if (entry == nullptr) return nullptr;
  return is_task(entry) ? started_or_next_oldest(w, entry) : &fiber_in(entry);
}

RAMIE_FLATTEN fiber* run_queues::pop_youngest(worker& w) noexcept {
  queued* const entry = w.queue.ring.pop_young();
  if (entry == nullptr) return nullptr;
  return is_task(entry) ? started_or_next_youngest(w, entry) : &fiber_in(entry);
}

RAMIE_FLATTEN bool run_queues::begin_fresh_turn(worker& w) noexcept {
  const queued* const youngest = w.queue.ring.peek_young();
  if (youngest == nullptr || has_started(youngest)) return false;
  w.queue.fresh_polls.add(1);
  w.queue.lifo_polls.set(0);
  return true;
}

template <class WaitedLong>
fiber* run_queues::pop_for_others(worker& w, WaitedLong waited_long) noexcept {
  if (fiber* const woken = w.queue.newest.take()) return woken;
  const queued* const oldest = w.queue.ring.peek_old();
  if (oldest == nullptr) return nullptr;
  if (!has_started(oldest) && !waited_long()) return nullptr;
  return pop_oldest(w);
}

}  // namespace ramie::runtime_internal
