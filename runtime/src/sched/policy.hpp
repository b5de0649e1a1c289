// SPDX-License-Identifier: BSL-1.0
// Who decides what runs next, and where a running fiber must yield, instead of the queues' own order.
//
// Production has no policy. Tests have one of two: chaos mode decides at random (testing/chaos.hpp), explore follows a
// seed (testing/director.hpp). A hot path checks `worker::policy` once and calls the policy instead of going on; the
// loop of a worker with a policy never takes the short cut past dispatcher::next, because its `attention` is never zero
// (worker::under_policy).
//
// W3 of worker.hpp holds under a policy as well: what is runnable is in the injection queue, in a ring, or in a list of
// the policy that its only worker empties before it sleeps.
//
// Every function is called on the worker's own thread, by its scheduler code or by one of its fibers, and never with a
// lock held, unless its comment says otherwise.
#pragma once

#include <cstdint>
#include <string>

#include <ramie/stats.hpp>

namespace ramie::runtime_internal {

class fiber;
class fiber_record;
class scheduler;
class worker;

class scheduling_policy {
 public:
  // A place at which a fiber that holds no lock may be made to yield.
  enum class point : std::uint8_t {
    wait,         // it is about to wait, or could
    after_wake,   // it has spawned or woken another fiber
    budget_used,  // it has used up its budget of operations that did not wait
  };

  virtual ~scheduling_policy() = default;

  // `f` is RUNNABLE and in no queue: put it into one, and signal. `woken`: it was parked; else it is new, or has
  // yielded.
  virtual void enqueue(worker& w, fiber& f, bool woken) noexcept = 0;
  // The same for a task, which was spawned just now.
  virtual void enqueue_task(worker& w, fiber_record& task) noexcept = 0;
  // What the worker runs next; null: nothing is runnable. Counted as a poll.
  [[nodiscard]] virtual fiber* next(worker& w) noexcept = 0;
  // Like next, but for a join that needs a fiber to call in place.
  [[nodiscard]] virtual fiber* next_for_join(worker& w) noexcept = 0;
  // Whether a join asks only next_for_join, and never does a tick's maintenance.
  [[nodiscard]] virtual bool decides_joins() const noexcept = 0;

  // Whether the running fiber must yield here.
  [[nodiscard]] virtual bool preempts(worker& w, point where) noexcept = 0;
  // How many operations a fiber may perform before its budget is used up. Also called before there is a thread.
  [[nodiscard]] virtual std::uint32_t budget(worker& w) noexcept = 0;
  // The running fiber yields by itself, and there is nobody to switch to directly.
  virtual void yielded(fiber& f) noexcept = 0;
  // Whether the worker has to leave the pool now, although nothing is wrong with it; it has drained then. May also
  // start another worker.
  [[nodiscard]] virtual bool retires(worker& w) noexcept = 0;
  // Every fiber is blocked, and no deadline is left. True: one of them has become runnable.
  [[nodiscard]] virtual bool standstill(scheduler& s) noexcept = 0;
  // Of everything it decides.
  [[nodiscard]] virtual std::uint64_t seed() const noexcept = 0;
  // A check of a test has failed. Any thread of the runtime.
  virtual void check_failed(const std::string& what) noexcept = 0;
  // Any thread.
  virtual void add_to(chaos_stats& sum) const noexcept = 0;
};

}  // namespace ramie::runtime_internal
