// SPDX-License-Identifier: BSL-1.0
// fiber_wait: RUNNING -> PARKING -> {RUNNING | PARKED}. The only place where fibers park; and, without a park, where
// they let others go first (yields).
#include <chrono>
#include <thread>
#include <utility>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/this_fiber.hpp>
#include <ramie/time.hpp>

#include "../sched/runner.hpp"
#include "../sched/scheduler.hpp"
#include "wake.hpp"

namespace ramie::runtime_internal {

namespace {

// The fiber `w` runs. The scheduler's own code, and callbacks it calls, are nobody and must not wait.
fiber& self_on(worker& w) noexcept {
  fiber* const f = w.current.get();
  if (f == nullptr) [[unlikely]]
    no_fiber_to_wait();
  return *f;
}

// Under a policy some waits begin with a switch to another fiber.
RAMIE_FLATTEN worker* preemption_point_of_wait(worker& w) noexcept {
  if (w.policy == nullptr) [[likely]]
    return &w;
  (void)self_on(w);  // fatal inside the scheduler
  return runner::preemption_point(w, scheduling_policy::point::wait);
}

// Gives the node a fresh ticket, marks the fiber as PARKING under it, then publishes: a waker that finds
// the node finds a fiber it can claim. False: refused, and the fiber is RUNNING again.
template <class On>
RAMIE_FLATTEN bool enter_parking(fiber& f, On& on, waiter& node) {
  const auto ticket = f.wait_ticket.load(std::memory_order_relaxed) + 1;
  node.who = &f;
  node.outcome = 0;
  node.ticket = ticket;
  f.wait_ticket.store(ticket, std::memory_order_release);  // pairs with the acquire in fiber_wake
  f.word.running_to_parking(static_cast<std::uint16_t>(ticket));
  bool published = false;
  try {
    published = on.publish(node);
  } catch (...) {
    (void)f.word.parking_to_running();
    throw;
  }
  if (!published) (void)f.word.parking_to_running();
  return published;
}

// The fiber goes to the back of the queue that `how` names, if there is anybody else to run. Not a cancellation point.
RAMIE_FLATTEN void yield_as(worker* w, fiber& f, departure how) noexcept {
  fiber* const next = dispatcher::next_local(*w);
  if (next == nullptr) {
    if (!w->needs_attention()) return;
    if (w->policy != nullptr) w->policy->yielded(f);
  }
  (void)runner::leave_and_return(*w, how, f, next);
}

constexpr auto never = std::chrono::steady_clock::time_point::max();

// Ends a wait when the time has come.
class wait_timer {
 public:
  wait_timer(timekeeper& timers, std::chrono::steady_clock::time_point when, std::chrono::steady_clock::time_point now)
      : timers_(timers), now_(now), entry_(when) {
    timers_.prepare();
  }
  ~wait_timer() {
    if (!fired()) timers_.remove(entry_);
  }
  wait_timer(const wait_timer&) = delete;
  wait_timer& operator=(const wait_timer&) = delete;
  void set(const waiter& node) noexcept { timers_.set(entry_, waker(node), now_); }
  [[nodiscard]] bool fired() const noexcept { return entry_.fired.load(std::memory_order_acquire); }

 private:
  timekeeper& timers_;
  const std::chrono::steady_clock::time_point now_;
  wake_up entry_;
};
struct no_timer {
  void set(const waiter&) noexcept {}
  [[nodiscard]] bool fired() const noexcept { return false; }
};

// Which fiber runs first when the caller parks: the next of the queues; or an unstarted one at the young end of the
// ring.
constexpr auto no_preference = [](worker&) -> fiber* { return nullptr; };
constexpr auto fresh_first = [](worker& w) -> fiber* { return dispatcher::next_fresh(w); };

// The steps of the loop below that differ between a fiber and a plain thread. A fiber leaves its stack; it is cancelled
// by its scopes. `first(w)` names who runs first when it parks, or null.
template <class First, class Timer>
class fiber_steps {
 public:
  fiber_steps(worker& at, cancellable may_cancel, First first, Timer& timer) noexcept
      : f(self_on(at)), w_(&at), may_cancel_(may_cancel), first_(first), timer_(timer) {}

  // Before any look at scopes, also by try_complete: the commit wakes the fiber if the epoch has moved since.
  RAMIE_FLATTEN void begin_round() noexcept { epoch_ = w_->cancel_epoch->load(std::memory_order_acquire); }
  // True: cancelled, and the caller wants that as a result.
  RAMIE_FLATTEN bool cancelled() {
    if (may_cancel_ == cancellable::throws) throw_if_cancelled(f, epoch_);
    if (may_cancel_ == cancellable::returns && is_cancelled(f, epoch_)) return true;
    if (!f.linked) f.home->link_fiber(f);
    return false;
  }
  RAMIE_FLATTEN void park(waiter& node) noexcept {
    timer_.set(node);
    fiber* next = first_(*w_);
    if (woken_already()) {  // before we even left: stay on this stack
      if (next != nullptr) give_back(*next);
      return;
    }
    if (next == nullptr) next = dispatcher::next_local(*w_);
    w_ = runner::park_and_return(*w_, f, epoch_, next);
  }
  [[nodiscard]] bool too_late() const noexcept { return timer_.fired(); }

  fiber& f;

 private:
  [[nodiscard]] RAMIE_FLATTEN bool woken_already() noexcept {
    return f.word.load().has(word_view::notified) && f.word.parking_to_running() == unpark_result::woken;
  }

  worker* w_;  // of the moment
  const cancellable may_cancel_;
  First first_;
  Timer& timer_;
  std::uint64_t epoch_ = 0;
};

// A plain thread leaves no stack that somebody else could resume: it commits at once and blocks. It is in no scope.
class thread_steps {
 public:
  explicit thread_steps(std::chrono::steady_clock::time_point until)
      : f(static_cast<proxy_fiber&>(self())), until_(until) {}

  void begin_round() noexcept {}
  [[nodiscard]] bool cancelled() const noexcept { return false; }
  void park(const waiter& node) noexcept {
    if (f.word.commit_park() != commit_result::must_enqueue) block(node.ticket);
    f.word.runnable_to_running();
  }
  [[nodiscard]] bool too_late() const noexcept {
    return until_ != never && platform::steady_clock::instance().now() >= until_;
  }

  proxy_fiber& f;

 private:
  // Until the thread is woken. Exactly one token comes: a waker's, or, if the time is up, perhaps the thread's own.
  void block(std::uint64_t ticket) noexcept {
    if (until_ == never) return f.parker.park();
    if (f.parker.park_until(until_)) return;
    fiber_wake(f, ticket);
    f.parker.park();
  }

  const std::chrono::steady_clock::time_point until_;
};

// One round: publishes, parks, and is back. Woken without an outcome, the node is in no list any more, and nobody can
// claim it.
enum class round_end : std::uint8_t { completed, refused, woken };
template <class Steps, class On>
RAMIE_FLATTEN round_end wait_round(Steps& steps, On& on, waiter& node, const wait_reason& why) {
  if (!enter_parking(steps.f, on, node)) return round_end::refused;
  steps.f.reason.set(&why);
  steps.park(node);
  steps.f.reason.set(nullptr);
  if (node.outcome != 0) [[likely]]
    return round_end::completed;
  on.unpublish(node);
  return round_end::woken;
}

// The loop of every wait. Woken without an outcome means: cancelled, too late, or by accident.
template <class Steps, class On>
RAMIE_FLATTEN wait_result wait_loop(Steps& steps, On& on, waiter& node, const wait_reason& why, bool ask = true) {
  for (;; ask = true) {
    steps.begin_round();
    if (ask && on.try_complete(node)) return wait_result::completed;
    if (steps.cancelled()) return wait_result::cancelled;
    switch (wait_round(steps, on, node, why)) {
      case round_end::completed: return wait_result::completed;
      case round_end::refused: return wait_result::refused;
      case round_end::woken: break;
    }
    if (steps.too_late()) return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;
  }
}

RAMIE_NOINLINE wait_result thread_wait(waitable& on, waiter& node, const wait_reason& why,
                                       std::chrono::steady_clock::time_point until = never) {
  thread_steps steps(until);
  return wait_loop(steps, on, node, why);
}

template <class First>
RAMIE_FLATTEN wait_result wait_as_fiber(worker& at, waitable& on, waiter& node, const wait_reason& why,
                                        cancellable may_cancel, First first,
                                        std::chrono::steady_clock::time_point until) {
  worker& w = *preemption_point_of_wait(at);
  if (until == never) {
    no_timer none;
    fiber_steps steps(w, may_cancel, first, none);
    return wait_loop(steps, on, node, why);
  }
  wait_timer timer(w.sched.deadlines, until, w.sched.deadlines.now());
  fiber_steps steps(w, may_cancel, first, timer);
  return wait_loop(steps, on, node, why);
}

}  // namespace

wait_result fiber_wait(waitable& on, waiter& node, const wait_reason& why, cancellable may_cancel) {
  worker* const w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why);
  no_timer none;
  fiber_steps steps(*preemption_point_of_wait(*w), may_cancel, no_preference, none);
  return wait_loop(steps, on, node, why);
}

wait_result fiber_wait_until(waitable& on, waiter& node, const wait_reason& why,
                             std::chrono::steady_clock::time_point deadline) {
  worker* const w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why, deadline);
  return wait_as_fiber(*w, on, node, why, cancellable::throws, fresh_first, deadline);
}

wait_result fiber_wait_returning(waitable& on, waiter& node, const wait_reason& why,
                                 std::chrono::steady_clock::time_point deadline) {
  return wait_as_fiber(*this_worker(), on, node, why, cancellable::returns, no_preference, deadline);
}

namespace {

// Only a deadline ends the wait.
class never_ready final : public waitable {
 public:
  bool try_complete(waiter&) override { return false; }
  bool publish(waiter&) override { return true; }
  void unpublish(waiter&) noexcept override {}
};

const wait_reason sleeps{"sleep"};

RAMIE_NOINLINE void sleep_slow(std::chrono::steady_clock::time_point until) {
  never_ready on;
  waiter node;
  (void)fiber_wait_until(on, node, sleeps, until);
}

}  // namespace

// fiber_wait_until on never_ready, in one frame: sleepers are many, and what each of them has on its stack is a miss.
void sleep_on(std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point now) {
  worker* const w = this_worker();
  if (w == nullptr || w->policy != nullptr || until == never) [[unlikely]]
    return sleep_slow(until);
  never_ready on;
  waiter node;
  wait_timer timer(w->sched.deadlines, until, now);
  fiber_steps steps(*w, cancellable::throws, fresh_first, timer);
  (void)wait_loop(steps, on, node, sleeps);
}

namespace {

// What wait_asked leaves to the loop: a thread, a policy, a first park, a cancellation, a wake without an outcome.
template <class First>
RAMIE_NOINLINE wait_result wait_asked_slow(waitable& on, waiter& node, const wait_reason& why, First first, bool ask) {
  worker* const w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why);
  no_timer none;
  fiber_steps steps(*preemption_point_of_wait(*w), cancellable::throws, first, none);
  return wait_loop(steps, on, node, why, ask);
}

// The steps of a fiber that has been found to be linked, not cancelled, and undisturbed.
template <class First>
struct undisturbed_steps {
  worker& w;
  fiber& f;
  const std::uint64_t epoch;
  First first;

  RAMIE_FLATTEN void park(waiter&) noexcept {
    fiber* next = first(w);
    if (next == nullptr) [[likely]]
      next = dispatcher::next_undisturbed(w);
    (void)runner::park_and_return(w, f, epoch, next);
  }
};

// The first round apart: most waits need no other.
template <class First>
RAMIE_FLATTEN wait_result wait_asked(waitable& on, waiter& node, const wait_reason& why, First first) {
  worker* const w = this_worker();
  if (w == nullptr || w->needs_attention()) [[unlikely]]
    return wait_asked_slow(on, node, why, first, false);
  fiber& f = self_on(*w);
  const auto epoch = w->cancel_epoch->load(std::memory_order_acquire);
  if (f.seen_epoch.get() != epoch || !f.linked) [[unlikely]]
    return wait_asked_slow(on, node, why, first, false);
  undisturbed_steps<First> steps{*w, f, epoch, first};
  switch (wait_round(steps, on, node, why)) {
    case round_end::completed: return wait_result::completed;
    case round_end::refused: return wait_result::refused;
    default: return wait_asked_slow(on, node, why, first, true);
  }
}

}  // namespace

wait_result fiber_wait_asked(waitable& on, waiter& node, const wait_reason& why) {
  return wait_asked(on, node, why, no_preference);
}

wait_result fiber_wait_fresh_first(waitable& on, waiter& node, const wait_reason& why) {
  return wait_asked(on, node, why, fresh_first);
}

// A fiber has used up its budget of operations without a wait: all other fibers of its worker have a turn. If there is
// only the one that was woken last, the caller takes that one's place in the LIFO slot: two that work for each other
// stay on one worker.
worker_local& yield_at_budget_end(worker_local& local) noexcept {
  auto* w = &static_cast<worker&>(local);
  fiber& f = self_on(*w);
  if (w->policy != nullptr) [[unlikely]] {
    w = runner::preemption_point(*w, scheduling_policy::point::budget_used);
    w->budget.set(w->policy->budget(*w));
    return *w;
  }
  w->budget.set(budget_per_tick);  // for those who come now
  const auto hits = w->count.lifo_hits.get();
  fiber* const next = dispatcher::next_local(*w);
  if (next != nullptr || w->needs_attention()) {
    const bool for_newest = w->count.lifo_hits.get() != hits;
    w = runner::leave_and_return(*w, for_newest ? departure::yield_locally : departure::yield, f, next);
    if (w->budget.get() == 0) w->budget.set(budget_per_tick);
  }
  return *w;
}

void spin_yield() noexcept {
  worker* const w = this_worker();
  if (w != nullptr && w->current.get() != nullptr) yield_as(w, *w->current.get(), departure::yield_locally);
  platform::yield_thread();
}

void join_wait(waitable& on, waiter& node, const wait_reason& why, fiber* next) {
  struct entry {
    fiber* f;
    ~entry() {
      if (f != nullptr) give_back(*f);
    }
  } taken{next};
  no_timer none;
  const auto taken_first = [&taken](worker&) { return std::exchange(taken.f, nullptr); };
  fiber_steps steps(*this_worker(), cancellable::no, taken_first, none);
  (void)wait_loop(steps, on, node, why);
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

void yield() {
  runtime_internal::worker* const w = runtime_internal::this_worker();
  if (w == nullptr) return std::this_thread::yield();
  runtime_internal::fiber& f = runtime_internal::self_on(*w);
  runtime_internal::throw_if_cancelled(f, w->cancel_epoch->load(std::memory_order_acquire));
  runtime_internal::yield_as(w, f, runtime_internal::departure::yield);
}

namespace this_fiber {

bool exists() noexcept {
  return runtime_internal::current_fiber() != nullptr;
}

std::uint32_t number() {
  runtime_internal::fiber* const f = runtime_internal::current_fiber();
  return f != nullptr ? f->number : 0;
}

}  // namespace this_fiber

}  // namespace ramie::inline v0
