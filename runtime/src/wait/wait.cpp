// SPDX-License-Identifier: BSL-1.0
// fiber_wait: RUNNING -> PARKING -> {RUNNING | PARKED}. The only place where fibers park.
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

#include "../sched/hot.hpp"
#include "wake.hpp"

namespace ramie::detail {

namespace {

// The fiber `w` runs. The scheduler's own code, and callbacks it calls, are nobody and must not wait.
fiber& self_on(worker& w) noexcept {
  fiber* const f = w.current.get();
  if (f == nullptr) [[unlikely]]
    no_fiber_to_wait();
  return *f;
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

// Until somebody wakes us. `w` is the worker of the moment. Returns RUNNING.
// `next`, if not null, is RUNNABLE, in no queue, and goes first.
RAMIE_FLATTEN void park_fiber(worker* w, fiber& f, std::uint64_t accounted_epoch, fiber* next) noexcept {
  // Woken before we even left: stay on this stack.
  if (f.word.load().has(word_view::notified) && f.word.parking_to_running() == unpark_result::woken) {
    if (next != nullptr) give_back(*next);
    return;
  }
  w->left_epoch.set(accounted_epoch);
  if (next == nullptr) next = w->sched.next_local(*w);
  (void)scheduler::leave_and_return(*w, departure::park, f, next);
}

// The fiber goes to the back of a queue, if there is anybody to let through. Not a cancellation point.
RAMIE_FLATTEN void give_way(worker* w, fiber& f, departure how) noexcept {
  fiber* const next = w->sched.next_local(*w);
  if (next == nullptr) {
    if (w->attention.load(std::memory_order_relaxed) == 0) return;
    if (w->sched.chaotic) w->sched.yields_in_chaos(f);
  }
  (void)scheduler::leave_and_return(*w, how, f, next);
}

constexpr auto never = std::chrono::steady_clock::time_point::max();

// Until somebody wakes the thread. One token comes, whoever sends it: if the time is up, perhaps it itself.
void block_thread(proxy_fiber& f, std::uint64_t ticket, std::chrono::steady_clock::time_point deadline) noexcept {
  if (deadline == never) return f.parker.park();
  if (f.parker.park_until(deadline)) return;
  fiber_wake(f, ticket);
  f.parker.park();
}

// A plain thread leaves no stack that somebody else could resume: it commits at once and blocks.
wait_result thread_wait(waitable& on, waiter& node, const wait_reason& why,
                        std::chrono::steady_clock::time_point deadline = never) {
  auto& f = static_cast<proxy_fiber&>(self());
  for (;;) {
    if (on.try_complete(node)) return wait_result::completed;
    if (!enter_parking(f, on, node)) return wait_result::refused;
    f.reason.set(&why);
    if (f.word.commit_park() != commit_result::must_enqueue) block_thread(f, node.ticket, deadline);
    f.word.runnable_to_running();
    f.reason.set(nullptr);
    if (node.outcome != 0) return wait_result::completed;
    on.unpublish(node);
    if (deadline != never && platform::steady_clock::instance().now() >= deadline) {
      return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;
    }
  }
}

// Ends a wait when the time has come.
class alarm {
 public:
  alarm(timekeeper& keeper, std::chrono::steady_clock::time_point when, std::chrono::steady_clock::time_point now)
      : keeper_(keeper), now_(now), entry_(when) {
    keeper_.prepare();
  }
  ~alarm() {
    if (!rang()) keeper_.remove(entry_);
  }
  alarm(const alarm&) = delete;
  alarm& operator=(const alarm&) = delete;
  void set(const waiter& node) noexcept { keeper_.set(entry_, waker(node), now_); }
  [[nodiscard]] bool rang() const noexcept { return entry_.rang.load(std::memory_order_acquire); }

 private:
  timekeeper& keeper_;
  const std::chrono::steady_clock::time_point now_;
  wake_up entry_;
};
struct no_alarm {
  void set(const waiter&) noexcept {}
  [[nodiscard]] bool rang() const noexcept { return false; }
};

// Who runs first when the fiber parks: whoever is next.
constexpr auto nobody_first = [](worker&) -> fiber* { return nullptr; };
// Or what was spawned last, if that has not started: a program that spawns and then waits for what its children do is
// taken depth first, with few stacks, instead of breadth first, with a stack for every branch. Not before a fiber that
// was just woken, and not for ever: the oldest in the ring may have waited since before.
constexpr auto fresh_first = [](worker& w) -> fiber* {
  if (!w.newest.empty() || w.fresh_polls.get() >= max_fresh_polls) return nullptr;
  const bool due = w.attention.load(std::memory_order_relaxed) != 0 || w.tempo.due(w.count.polls.get() + 1);
  const fiber* const youngest = due ? nullptr : w.ring.peek_young();
  if (youngest == nullptr || youngest->stack.get() != nullptr) return nullptr;
  w.fresh_polls.add(1);
  w.lifo_polls.set(0);
  return w.sched.take_young(w);
};

// The loop of every wait. `first(w)` names who runs first when the fiber parks, or null.
template <class On, class First, class Alarm>
RAMIE_FLATTEN wait_result wait_as_fiber(worker* w, On& on, waiter& node, const wait_reason& why,
                                        cancellable may_cancel, First first, Alarm& clock, bool ask = true) {
  fiber& f = self_on(*w);
  for (;; w = this_worker(), ask = true) {
    // Before any look at scopes, also by try_complete: the commit wakes the fiber if the epoch has moved since.
    const auto epoch = w->sched.cancel_epoch.load(std::memory_order_acquire);
    if (ask && on.try_complete(node)) return wait_result::completed;
    if (may_cancel == cancellable::yes) throw_if_cancelled(f, epoch);
    if (may_cancel == cancellable::told && is_cancelled(f, epoch)) return wait_result::cancelled;
    if (!f.linked) f.home->link_fiber(f);
    if (!enter_parking(f, on, node)) return wait_result::refused;
    f.reason.set(&why);
    clock.set(node);
    park_fiber(w, f, epoch, first(*w));
    f.reason.set(nullptr);
    if (node.outcome != 0) return wait_result::completed;
    // Woken for another reason: cancelled, too late, or by accident. From here on nobody can claim the node.
    on.unpublish(node);
    if (clock.rang()) return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;
  }
}

// In chaos mode some waits begin with a detour.
RAMIE_FLATTEN worker* detour_in_chaos(worker* w) noexcept {
  if (!w->sched.chaotic) [[likely]]
    return w;
  (void)self_on(*w);  // fatal inside the scheduler
  return w->sched.detour(*w);
}

}  // namespace

wait_result fiber_wait(waitable& on, waiter& node, const wait_reason& why, cancellable may_cancel) {
  worker* w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why);
  w = detour_in_chaos(w);
  no_alarm none;
  return wait_as_fiber(w, on, node, why, may_cancel, nobody_first, none);
}

wait_result fiber_wait_until(waitable& on, waiter& node, const wait_reason& why,
                             std::chrono::steady_clock::time_point deadline) {
  worker* w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why, deadline);
  w = detour_in_chaos(w);
  if (deadline == never) {
    no_alarm none;
    return wait_as_fiber(w, on, node, why, cancellable::yes, fresh_first, none);
  }
  alarm clock(w->sched.deadlines, deadline, w->sched.deadlines.now());
  return wait_as_fiber(w, on, node, why, cancellable::yes, fresh_first, clock);
}

wait_result fiber_wait_told(waitable& on, waiter& node, const wait_reason& why,
                            std::chrono::steady_clock::time_point deadline) {
  worker* const w = detour_in_chaos(this_worker());
  if (deadline == never) {
    no_alarm none;
    return wait_as_fiber(w, on, node, why, cancellable::told, nobody_first, none);
  }
  alarm clock(w->sched.deadlines, deadline, w->sched.deadlines.now());
  return wait_as_fiber(w, on, node, why, cancellable::told, nobody_first, clock);
}

namespace {

// Nothing ever comes but the time.
class nothing final : public waitable {
 public:
  bool try_complete(waiter&) override { return false; }
  bool publish(waiter&) override { return true; }
  void unpublish(waiter&) noexcept override {}
};

const wait_reason sleeps{"sleep"};

RAMIE_NOINLINE void sleep_unhurriedly(std::chrono::steady_clock::time_point until) {
  nothing comes;
  waiter node;
  (void)fiber_wait_until(comes, node, sleeps, until);
}

}  // namespace

// fiber_wait_until for nothing, in one frame: sleepers are many, and what each of them has on its stack is a miss.
void sleep_on(std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point now) {
  worker* const w = this_worker();
  if (w == nullptr || w->sched.chaotic || until == never) [[unlikely]]
    return sleep_unhurriedly(until);
  nothing comes;
  waiter node;
  alarm clock(w->sched.deadlines, until, now);
  (void)wait_as_fiber(w, comes, node, sleeps, cancellable::yes, fresh_first, clock);
}

namespace {

// What fiber_wait_fresh_first leaves to the loop: a thread, chaos, a first park, a cancellation, a wake in vain.
RAMIE_NOINLINE wait_result wait_unhurriedly(waitable& on, waiter& node, const wait_reason& why, bool ask) {
  worker* w = this_worker();
  if (w == nullptr) return thread_wait(on, node, why);
  w = detour_in_chaos(w);
  no_alarm none;
  return wait_as_fiber(w, on, node, why, cancellable::yes, fresh_first, none, ask);
}

}  // namespace

// The first round of wait_as_fiber in one straight line: what nearly every wait on a channel is.
wait_result fiber_wait_fresh_first(waitable& on, waiter& node, const wait_reason& why) {
  worker* const w = this_worker();
  if (w == nullptr || w->attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return wait_unhurriedly(on, node, why, false);
  fiber& f = self_on(*w);
  const auto epoch = w->cancel_epoch->load(std::memory_order_acquire);
  if (f.seen_epoch.get() != epoch || !f.linked) [[unlikely]]
    return wait_unhurriedly(on, node, why, false);
  if (!enter_parking(f, on, node)) return wait_result::refused;
  f.reason.set(&why);
  w->left_epoch.set(epoch);
  fiber* next = fresh_first(*w);
  if (next == nullptr) [[likely]]
    next = w->sched.next_undisturbed(*w);
  (void)scheduler::leave_and_return(*w, departure::park, f, next);
  f.reason.set(nullptr);
  if (node.outcome != 0) [[likely]]
    return wait_result::completed;
  on.unpublish(node);
  return wait_unhurriedly(on, node, why, true);
}

// The budget of a fiber that goes on and on without a wait is used up: everybody else has a turn. If that is just the
// one that was woken last, it takes that one's place in the LIFO slot: two that work for each other stay on one worker.
worker_desk& step_aside(worker_desk& desk) noexcept {
  auto* w = &static_cast<worker&>(desk);
  fiber& f = self_on(*w);
  if (w->sched.chaotic) [[unlikely]]
    return *w->sched.end_budget_in_chaos(*w);
  w->budget.set(budget_per_tick);  // for those who come now
  const auto hits = w->count.lifo_hits.get();
  fiber* const next = w->sched.next_local(*w);
  if (next != nullptr || w->attention.load(std::memory_order_relaxed) != 0) {
    const bool for_newest = w->count.lifo_hits.get() != hits;
    w = scheduler::leave_and_return(*w, for_newest ? departure::step_aside : departure::yield, f, next);
    if (w->budget.get() == 0) w->budget.set(budget_per_tick);
  }
  return *w;
}

void let_others_pass() noexcept {
  worker* const w = this_worker();
  if (w != nullptr && w->current.get() != nullptr) give_way(w, *w->current.get(), departure::step_aside);
  platform::yield_thread();
}

void join_wait(waitable& on, waiter& node, const wait_reason& why, fiber* next) {
  struct entry {
    fiber* f;
    ~entry() {
      if (f != nullptr) give_back(*f);
    }
  } taken{next};
  no_alarm none;
  (void)wait_as_fiber(
      this_worker(), on, node, why, cancellable::no, [&taken](worker&) { return std::exchange(taken.f, nullptr); },
      none);
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

void yield() {
  detail::worker* const w = detail::this_worker();
  if (w == nullptr) return std::this_thread::yield();
  detail::fiber& f = detail::self_on(*w);
  detail::throw_if_cancelled(f, w->sched.cancel_epoch.load(std::memory_order_acquire));
  detail::give_way(w, f, detail::departure::yield);
}

namespace this_fiber {

bool exists() noexcept {
  return detail::current_fiber() != nullptr;
}

std::uint32_t number() {
  detail::fiber* const f = detail::current_fiber();
  return f != nullptr ? f->number : 0;
}

}  // namespace this_fiber

}  // namespace ramie::inline v0
