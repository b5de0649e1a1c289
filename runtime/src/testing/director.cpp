// SPDX-License-Identifier: BSL-1.0
#include "director.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/report.hpp>

#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

constexpr std::size_t fair_after = 1000;  // points; from then on priorities change every so often
constexpr std::size_t fair_every = 64;
constexpr std::size_t steps_to_unwind = 1000;  // of a fiber: more, and it goes on although it was cancelled
constexpr std::uint32_t longest_horizon = 10;  // falls come within the first 4 … 2^(1 + this) points

// What it waits for, or null: it does not wait.
const char* why_blocked(const fiber& f) {
  switch (f.word.load().state()) {
    case lifecycle::parked: return f.reason.get() != nullptr ? f.reason.get()->kind : "unknown";
    case lifecycle::running:
      if (f.home == nullptr) return nullptr;  // a frame that joins lend: nobody's
      return "join, with a child of its own above it on its stack";
    default: return nullptr;
  }
}

std::string describe_blocked(scheduler& s) {
  std::string all;
  s.frames.for_each([&all](const fiber& f) {
    if (const char* const why = why_blocked(f)) all.append("\n  ").append(describe(f)).append(", waits: ").append(why);
  });
  return all;
}

}  // namespace

director::director(std::uint64_t seed, const testing::explore_options& wanted)
    : seed_(seed),
      wanted_(wanted),
      by_priority_(wanted.how == testing::strategy::pct || (wanted.how == testing::strategy::mixed && seed % 2 == 0)),
      random_(seed),
      priorities_(1) {
  const std::uint32_t horizon = 4u << random_.below(longest_horizon);
  for (unsigned i = 0; by_priority_ && i < wanted_.change_points; ++i) falls_.push_back(1 + random_.below(horizon));
}

void director::admit(fiber& f) {
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();  // later ones share a number
  if (f.last_worker.get() == 0) {
    if (priorities_.size() <= most) priorities_.push_back(1 + static_cast<std::int64_t>(random_.next() >> 2));
    f.last_worker.set(static_cast<std::uint16_t>(priorities_.size() - 1));
  }
  ready_.push_back(&f);
}

void director::collect(worker& w) {
  while (fiber* const f = w.sched.queues.take_one_injected(w)) {
    platform::annotate::take_over(f);
    admit(*f);
  }
}

std::int64_t& director::priority_of(const fiber& f) noexcept {
  return priorities_[f.last_worker.get()];
}

std::size_t director::choose() noexcept {
  if (!by_priority_) return random_.below(static_cast<std::uint32_t>(ready_.size()));
  const auto lower = [this](const fiber* a, const fiber* b) { return priority_of(*a) < priority_of(*b); };
  return static_cast<std::size_t>(std::max_element(ready_.begin(), ready_.end(), lower) - ready_.begin());
}

fiber* director::next(worker& w) noexcept {
  std::unique_lock hold(mutex_);
  collect(w);
  if (ready_.empty()) return nullptr;
  if (++steps_ > wanted_.max_steps) {
    hold.unlock();
    give_up(w);
    hold.lock();
    collect(w);
  }
  const auto at = static_cast<std::ptrdiff_t>(choose());
  fiber* const f = ready_[static_cast<std::size_t>(at)];
  ready_.erase(ready_.begin() + at);
  trace_.push_back(f->last_worker.get());
  w.count.polls.add(1);
  return f;
}

void director::enqueue(worker& w, fiber& f, bool) noexcept {
  w.sched.queues.inject(as_entry(f));
  w.pool.signal(&w);
}

void director::enqueue_task(worker& w, fiber_record& task) noexcept {
  w.sched.queues.inject(as_entry(task));
  w.pool.signal(&w);
}

bool director::preempts(worker& w, point where) noexcept {
  if (where == point::after_wake && !wanted_.wake_switches) return false;
  std::lock_guard hold(mutex_);
  collect(w);
  if (++steps_ > wanted_.max_steps) return true;
  if (ready_.empty()) return false;
  ++points_;
  if (!by_priority_) return random_.below(static_cast<std::uint32_t>(ready_.size() + 1)) != 0;
  std::int64_t& mine = priority_of(*w.current.get());
  const bool falls = std::find(falls_.begin(), falls_.end(), points_) != falls_.end();
  if (falls || (points_ > fair_after && points_ % fair_every == 0)) mine = --lowest_;
  return priority_of(*ready_[choose()]) > mine;
}

void director::yielded(fiber& f) noexcept {
  std::lock_guard hold(mutex_);
  if (by_priority_) priority_of(f) = --lowest_;
}

void director::unwind(scheduler& s, cancel_reason why, std::string failure) {
  {
    std::lock_guard hold(mutex_);
    unwinding_ = true;
  }
  if (!failure.empty()) fail(std::move(failure), nullptr);
  s.root_scope.cancel(std::move(why));
}

// As the scheduler: callbacks of stop tokens may be called.
void director::give_up(worker& w) {
  if (!unwinding_) {
    fiber* const caller = w.current.get();
    w.current.set(nullptr);
    const std::string text = "livelock: the program did not end within " + std::to_string(wanted_.max_steps) + " steps";
    unwind(w.sched, {cancel_kind::requested, text, {}, 0, {}, {}}, text);
    w.current.set(caller);
  }
  if (steps_ > 4 * wanted_.max_steps + steps_to_unwind * priorities_.size()) {
    platform::fatal("explore, seed %llu: fibers go on although they were cancelled: %s",
                    static_cast<unsigned long long>(seed_), failure_.c_str());
  }
}

bool director::standstill(scheduler& s) noexcept {
  const std::string who = describe_blocked(s);
  if (who.empty()) return false;  // nobody is left, or nobody has come yet
  {
    std::lock_guard hold(mutex_);
    if (trace_.empty()) return false;
    if (unwinding_) {
      platform::fatal("explore, seed %llu: fibers are blocked and can't be unwound, because a shield is over them:%s",
                      static_cast<unsigned long long>(seed_), who.c_str());
    }
  }
  const std::string text = "deadlock: every fiber is blocked and no timer is pending" + who;
  unwind(s, {cancel_kind::deadlock, text, {}, 0, {}, {}},
         wanted_.deadlock == testing::on_deadlock::fails ? text : std::string());
  return true;
}

void director::fail(std::string what, std::exception_ptr cause) noexcept {
  std::lock_guard hold(mutex_);
  if (std::exchange(failed_, true)) return;
  failure_ = std::move(what);
  cause_ = std::move(cause);
}

testing::explore_report director::verdict(std::exception_ptr thrown) {
  bool excused = thrown == nullptr;
  try {
    if (thrown != nullptr) std::rethrow_exception(thrown);
  } catch (const cancelled& c) {
    excused = unwinding_ && c.kind() == cancel_kind::deadlock;
  } catch (...) {
  }
  if (!excused) fail("the test threw: " + text_of(thrown), thrown);
  return {1, failed_, seed_, std::move(failure_), std::move(cause_), steps_, std::move(trace_)};
}

}  // namespace ramie::runtime_internal
