// SPDX-License-Identifier: BSL-1.0
// Forks: pushed, taken back, run as fibers by others. The invariants: fork.hpp.
#include <ramie/detail/fork.hpp>

#include <mutex>

#include <ramie/error.hpp>
#include <ramie/platform/forced_unwind.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/report.hpp>

#include "../task/extras.hpp"
#include "runner.hpp"
#include "scheduler.hpp"

namespace ramie::runtime_internal {

// The end of one fork. One at a time waits: its caller.
class fork_end final : public waitable {
 public:
  explicit fork_end(fork_record& part) noexcept : part_(part) {}

  bool try_complete(waiter&) override {
    return (part_.marks.load(std::memory_order_acquire) & fork_record::finished) != 0;  // pairs with finish_fork
  }
  bool publish(waiter& node) override {
    {
      std::lock_guard hold(lock_);
      caller_ = &node;
    }
    part_.waits = this;                                                                // 1
    const auto marks = part_.marks.fetch_or(fork_record::wanted, std::memory_order_acq_rel);  // 2
    return (marks & fork_record::finished) == 0;                                       // 3
  }
  // Woken by accident. If the fiber has seen that somebody waits, it is about to take the lock.
  void unpublish(waiter&) noexcept override {
    const auto marks = part_.marks.fetch_and(static_cast<std::uint8_t>(~fork_record::wanted), std::memory_order_acq_rel);
    if ((marks & fork_record::finished) == 0) return;
    for (platform::backoff turn; !waker_arrived_.load(std::memory_order_acquire);) turn.wait();
    std::lock_guard hold(lock_);
  }

  // The fiber that has ended. The caller may be gone when this returns.
  void wake() noexcept {
    fiber* who = nullptr;
    {
      std::lock_guard hold(lock_);
      waker_arrived_.store(true, std::memory_order_release);
      if (claim(*caller_)) {
        caller_->outcome = 1;
        who = caller_->who;
      }
    }
    if (who != nullptr) complete(*who);
  }

 private:
  fork_record& part_;
  platform::spin_lock lock_;
  platform::atomic<bool> waker_arrived_{false};
  waiter* caller_ = nullptr;
};

namespace {

void fork_discarded(fiber_record& self, discard_cause) noexcept {
  static_cast<fork_record&>(self).outcome = fork_outcome::not_run;
}

void finish_fork(fiber_record& self, cancel_scope&, const cancel_scope*) noexcept {
  auto& part = static_cast<fork_record&>(self);
  const auto marks = part.marks.fetch_or(fork_record::finished, std::memory_order_acq_rel);  // 2
  if ((marks & fork_record::wanted) != 0) part.waits->wake();                                // 3
}

constexpr fiber_ops fork_ops{run_fork, fork_discarded, finish_fork};

const wait_reason waits_for_fork{"fork"};

RAMIE_NOINLINE fork_push push_fork_slow(worker& w, fork_record& part) noexcept {
  if (run_queues::push_task(w, part)) return fork_push::pushed;
  w.count.enqueued.add(-1);
  return fork_push::alone;
}
RAMIE_NOINLINE fork_push signal_for_fork(worker& w) noexcept {
  w.pool.signal(&w);
  return fork_push::pushed;
}

[[noreturn, gnu::cold, gnu::noinline]] void forked_outside_a_fiber(const char* function) {
  throw usage_error(std::string("ramie: ") + function + ": called outside a fiber. Call it inside run().");
}

// A fiber that unwinds sees fewer cancellations than a child of its scope would; a fiber that has values to inherit
// would have to copy them while others read them; and a policy decides about fibers.
RAMIE_FLATTEN bool plain_in_reach(const worker& w, const fiber& self) noexcept {
  const auto* const extras = self.record->extras();
  return *w.in_flight.get() == 0 && w.policy == nullptr && (extras == nullptr || !has_inheritable(*extras));
}
RAMIE_FLATTEN bool forks_are_plain(const worker& w, const fiber& self) noexcept {
  return self.reaches_forks && plain_in_reach(w, self);
}

// FK5. It stays on one fiber, whichever worker that is on.
class scope_for_forks {
 public:
  scope_for_forks(fiber& self, source_location site) : opened_(cancel_scope::role::ordinary, site), self_(self) {
    self_.reaches_forks = true;
  }
  ~scope_for_forks() { self_.reaches_forks = false; }
  scope_for_forks(const scope_for_forks&) = delete;
  scope_for_forks& operator=(const scope_for_forks&) = delete;

 private:
  const cancel_scope opened_;
  fiber& self_;
};

}  // namespace

namespace {

RAMIE_FLATTEN worker* caller_in_fiber(const char* function) {
  worker* const w = this_worker();
  fiber* const self = w != nullptr ? w->current.get() : nullptr;
  if (self == nullptr) [[unlikely]]
    forked_outside_a_fiber(function);
  if (w->cancel_epoch->load(std::memory_order_acquire) != self->seen_epoch.get()) [[unlikely]]
    check_cancelled();
  return w;
}

}  // namespace

namespace {

RAMIE_FLATTEN fork_push push_plain(worker& w, const fiber& self, fork_record& part, source_location site) noexcept {
  part.ops.store(&fork_ops, std::memory_order_relaxed);
  part.make_fork(*self.scope, site);
  platform::annotate::hand_over(static_cast<fiber_record*>(&part));
  w.count.enqueued.add(1);
  if (!run_queues::try_push_task(w, part)) [[unlikely]]
    return push_fork_slow(w, part);
  if (!w.pool.needs_no_signal()) [[unlikely]]
    return signal_for_fork(w);
  return fork_push::pushed;
}

}  // namespace

fork_push push_fork(fork_record& part, source_location site, const char* function) {
  worker* const w = caller_in_fiber(function);
  const fiber* const self = w->current.get();
  if (!forks_are_plain(*w, *self)) [[unlikely]]
    return fork_push::not_plain;
  return push_plain(*w, *self, part, site);
}

fork_push push_fork_again(fork_record& part, source_location site) {
  worker* const w = caller_in_fiber("");
  return push_plain(*w, *w->current.get(), part, site);
}

bool call_in_reach(source_location site, void (*f)(void* data), void* data) {
  worker& w = *this_worker();
  fiber& self = *w.current.get();
  if (self.reaches_forks || !plain_in_reach(w, self)) return false;
  const scope_for_forks open(self, site);
  f(data);
  return true;
}

namespace {

// What a worker does at the end of a tick, when its own fibers keep the processor. The caller may come back on another
// worker.
RAMIE_SWITCHES_IDENTITY worker* let_others_pass(worker& w, fiber& self) noexcept {
  fiber* next = nullptr;
  if (!w.is_stalled_or_stopped()) {
    next = w.sched.dispatch.turn_of_others(w);
    if (next == nullptr) return &w;
  }
  return runner::leave_and_return(w, departure::yield_locally, self, next);
}

// The entry at the young end is another one, or there is none, or something else is due. True: the caller has it back.
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY bool take_fork_slow(fork_record& part, queued* entry) noexcept {
  worker* w = this_worker();
  fork_end end(part);
  waiter node;
  if (entry == nullptr) {
    w = let_others_pass(*w, *w->current.get());
    if (end.try_complete(node)) return false;
    entry = run_queues::pop_youngest_entry(*w);
  }
  fiber* next = nullptr;
  if (entry != nullptr) {
    w->count.polls.add(1);
    if (entry == as_entry(static_cast<fiber_record&>(part))) return true;
    next = run_queues::fiber_of(*w, entry);
  }
  join_wait(end, node, waits_for_fork, next);
  return false;
}

// True: the caller has it back. False: it has ended.
RAMIE_FLATTEN bool take_back(fork_record& part) noexcept {
  worker& w = *this_worker();
  const auto polls = w.count.polls.get() + 1;
  queued* entry = nullptr;
  if (!w.is_stalled_or_stopped() && !dispatcher::is_due(w, polls)) [[likely]] {
    entry = run_queues::pop_youngest_entry(w);
    if (entry == as_entry(static_cast<fiber_record&>(part))) [[likely]] {
      w.count.polls.set(polls);
      return true;
    }
  }
  return take_fork_slow(part, entry);
}

}  // namespace

bool take_fork(fork_record& part) {
  if (take_back(part)) [[likely]]
    return true;
  return settle_fork(part);
}

void begin_calls(const char* function) {
  worker& w = *caller_in_fiber(function);
  w.count.enqueued.add(1);
  w.count.polls.add(1);
  if (w.is_stalled_or_stopped() || dispatcher::is_due(w, w.count.polls.get() + 1)) [[unlikely]]
    (void)let_others_pass(w, *w.current.get());
}

bool drop_fork(fork_record& part) noexcept {
  try {
    throw;
  } catch (const platform::forced_unwind&) {
    thread_ended_in_fiber();  // at once: the fork may wait for ever
  } catch (...) {
  }
  if (take_back(part)) return true;
  if (part.outcome == fork_outcome::failed) report_fork_failure(part.failure);
  return false;
}

void look_around(std::uint32_t calls) {
  worker& w = *this_worker();
  fiber& self = *w.current.get();
  if (w.cancel_epoch->load(std::memory_order_acquire) != self.seen_epoch.get()) [[unlikely]]
    check_cancelled();
  w.count.enqueued.add(calls);
  w.count.polls.add(calls);
  (void)let_others_pass(*this_worker(), self);
}

bool settle_fork(fork_record& part) {
  switch (part.outcome) {
    case fork_outcome::done: return false;
    case fork_outcome::failed: break;
    case fork_outcome::cancelled: check_cancelled(); break;
    case fork_outcome::not_run: check_cancelled(); return true;
  }
  std::rethrow_exception(std::move(part.failure));
}

void report_fork_failure(const std::exception_ptr& failure) noexcept {
  std::string who;
  try {
    who = describe(*this_worker()->current.get());
  } catch (const std::bad_alloc&) {
  }
  report_lost_failure(who, failure);
}

fiber_end run_fork(fiber_record& self) noexcept {
  auto& part = static_cast<fork_record&>(self);
  try {
    part.call(part);
    return fiber_end::done;
  } catch (...) {
    part.failure = current_failure(*this_worker()->current.get());
    part.outcome = part.failure != nullptr ? fork_outcome::failed : fork_outcome::cancelled;
    if (part.failure == nullptr) part.failure = std::current_exception();
    return part.outcome == fork_outcome::failed ? fiber_end::done : fiber_end::cancelled;
  }
}

}  // namespace ramie::runtime_internal
