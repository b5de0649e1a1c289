// SPDX-License-Identifier: BSL-1.0
#include "timekeeper.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/timeout.hpp>

#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

using tick = std::chrono::milliseconds;
constexpr std::uint32_t most_wakes_at_once = 64;
constexpr std::uint32_t no_limit = ~0u;

std::uint64_t tick_before(platform::time_point t) noexcept {
  return static_cast<std::uint64_t>(std::chrono::floor<tick>(t.time_since_epoch()).count());
}
std::uint64_t tick_after(platform::time_point t) noexcept {
  return static_cast<std::uint64_t>(std::chrono::ceil<tick>(t.time_since_epoch()).count());
}
platform::time_point time_of(std::uint64_t t) noexcept {
  if (t == timer_wheel::never) return timekeeper::never;
  return platform::time_point(tick(static_cast<std::int64_t>(t)));
}
platform::time_point later(platform::time_point t, platform::nanoseconds by) noexcept {
  return t < timekeeper::never - by ? t + by : timekeeper::never;
}

}  // namespace

timekeeper::timekeeper(platform::virtual_clock* manual, unsigned worker_slots)
    : manual_(manual),
      clock_(manual != nullptr ? static_cast<const platform::clock_source&>(*manual)
                               : platform::steady_clock::instance()),
      slots_(worker_slots),
      shards_(std::make_unique<shard[]>(worker_slots + 1)) {
  if (manual_ != nullptr && !manual_->subscribe(*this)) {
    throw usage_error("ramie: runtime::runtime: options.clock serves another runtime. Give each its own.");
  }
}

timekeeper::~timekeeper() {
  stop();
  if (manual_ != nullptr) manual_->unsubscribe(*this);
}

void timekeeper::prepare() {
  if (manual_ != nullptr || keeper_.is_started()) [[likely]]
    return;
  (void)keeper_.start<&timekeeper::run>(*this);
}

std::uint16_t timekeeper::shard_of_caller() const noexcept {
  if (manual_ != nullptr) return 0;  // all in one order
  const worker* const w = this_worker();
  return static_cast<std::uint16_t>(w != nullptr && &w->sched.deadlines == this ? w->index : slots_);
}

void timekeeper::add(scope_deadline& entry) {
  prepare();
  // By the caller itself: the keeper might not be done when the caller goes on.
  const auto now = clock_.now();
  if (entry.when <= now) {
    entry.target->cancel({cancel_kind::deadline, {}, entry.where, 0, {}, {}});
    return;
  }
  insert(entry, now);
  if (manual_ != nullptr) fire_in_order();  // it may have been advanced meanwhile
}

void timekeeper::insert(deadline_entry& entry, time_point now) noexcept {
  entry.shard = shard_of_caller();
  shard& in = shards_[entry.shard];
  {
    std::lock_guard hold(in.lock);
    list(in, entry, now);  // 1
  }
  if (manual_ != nullptr) return;
  platform::light_fence();  // 2
  const auto grace = entry.shard == slots_ ? platform::nanoseconds{0} : keeper_grace;
  if (later(entry.when, grace) < armed_until_.load(std::memory_order_relaxed)) keeper_.unpark();  // 3
}

void timekeeper::list(shard& in, deadline_entry& entry, time_point now) noexcept {
  auto next = entry.when;
  if (manual_ != nullptr || entry.when - now < exact_below) {
    entry.at = deadline_entry::place::heap;
    in.heap.insert(entry);
  } else {
    if (in.wheel.empty()) in.wheel.skip_to(tick_before(now));
    entry.at = deadline_entry::place::wheel;
    next = time_of(in.wheel.insert(entry, tick_after(entry.when)));
  }
  if (next < in.next.load(std::memory_order_relaxed)) in.next.store(next, std::memory_order_relaxed);
}

void timekeeper::unlist(shard& in, deadline_entry& entry) noexcept {
  switch (std::exchange(entry.at, deadline_entry::place::nowhere)) {
    case deadline_entry::place::nowhere: return;
    case deadline_entry::place::heap: in.heap.remove(entry); break;
    case deadline_entry::place::wheel: in.wheel.remove(entry); break;
    case deadline_entry::place::cancelling: timer_list::remove(entry); break;
  }
}

void timekeeper::renew_next(shard& of) noexcept {
  const auto exact = of.heap.empty() ? never : of.heap.first()->when;
  of.next.store(std::min(exact, time_of(of.wheel.next())), std::memory_order_relaxed);
}

void timekeeper::remove(deadline_entry& entry) noexcept {
  if (entry.shard == deadline_entry::in_none) return;
  shard& in = shards_[entry.shard];
  std::lock_guard hold(in.lock);
  unlist(in, entry);
  entry.shard = deadline_entry::in_none;
  if (in.wheel.empty() && in.heap.empty()) in.next.store(never, std::memory_order_relaxed);
}

void timekeeper::set(wake_up& entry, waker who, time_point now) noexcept {
  const bool first = entry.shard == deadline_entry::in_none;
  if (first && entry.when > now) {
    entry.who = who;
    insert(entry, now);
    if (manual_ != nullptr) fire_in_order();  // as in add
    return;
  }
  if (!first) {
    std::lock_guard hold(shards_[entry.shard].lock);
    entry.who = who;
    if (!entry.fired.load(std::memory_order_relaxed)) return;
  }
  entry.fired.store(true, std::memory_order_relaxed);
  who.wake();
}

platform::time_point timekeeper::earliest() const noexcept {
  auto found = never;
  if (manual_ != nullptr) return found;
  for (unsigned i = 0; i < slots_; ++i) found = std::min(found, shards_[i].next.load(std::memory_order_relaxed));
  return found;
}

bool timekeeper::fire_due(time_point now, std::uint32_t most) noexcept {
  if (manual_ != nullptr) return false;
  while (most > 0) {
    unsigned first = 0;
    auto next = never;
    for (unsigned i = 0; i < slots_; ++i) {
      const auto its_next = shards_[i].next.load(std::memory_order_relaxed);
      if (its_next >= next) continue;
      next = its_next;
      first = i;
    }
    if (next > now) return false;
    most -= fire(shards_[first], now, std::min(most, most_wakes_at_once));
  }
  return earliest() <= now;
}

deadline_entry* timekeeper::take_due(shard& from, time_point now) noexcept {
  auto* found = static_cast<deadline_entry*>(from.heap.first());
  if (found != nullptr && found->when <= now) {
    from.heap.remove(*found);
    return found;
  }
  return static_cast<deadline_entry*>(from.wheel.take_due(tick_before(now)));
}

std::uint32_t timekeeper::fire(shard& of, time_point now, std::uint32_t most) noexcept {
  bool cancels = false;
  std::uint32_t woken = 0;
  of.last_taken.store(now, std::memory_order_relaxed);
  for (bool more = true; more && woken < most;) {
    waker ready[most_wakes_at_once];
    const auto limit = std::min(most - woken, most_wakes_at_once);
    std::uint32_t count = 0;
    {
      std::lock_guard hold(of.lock);
      while (count < limit) {
        deadline_entry* const due = take_due(of, now);
        more = due != nullptr;
        if (!more) break;
        if (due->of_scope) {
          due->at = deadline_entry::place::cancelling;
          of.cancelling.add(*due);
          cancels = true;
          continue;
        }
        auto& call = static_cast<wake_up&>(*due);
        call.at = deadline_entry::place::nowhere;
        ready[count] = call.who;
        ++count;
        call.prefetch();
        call.fired.store(true, std::memory_order_release);  // pairs with the acquire in fired(): its owner's again
      }
      renew_next(of);
    }
    for (std::uint32_t i = 0; i < count; ++i) ready[i].wake();
    woken += count;
  }
  if (cancels) {
    cancels_.store(true, std::memory_order_release);
    keeper_.unpark();
  }
  return woken;
}

platform::time_point timekeeper::become_timer_sleeper() noexcept {
  const auto until = earliest();
  auto before = sleeper_until_.load(std::memory_order_relaxed);
  while (until < before) {
    if (sleeper_until_.compare_exchange_weak(before, until, std::memory_order_relaxed)) return until;
  }
  return never;
}

// Another worker may have taken over meanwhile.
void timekeeper::resign_as_timer_sleeper(time_point until) noexcept {
  sleeper_until_.compare_exchange_strong(until, never, std::memory_order_relaxed);
}

// The keeper -------------------------------------------------------------------------------------------

platform::time_point timekeeper::shard::overdue() const noexcept {
  const auto due = next.load(std::memory_order_relaxed);
  return due == never ? never : later(std::max(due, last_taken.load(std::memory_order_relaxed)), keeper_grace);
}

platform::time_point timekeeper::earliest_for_keeper() const noexcept {
  auto found = shards_[slots_].next.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < slots_; ++i) found = std::min(found, shards_[i].overdue());
  return found;
}

platform::time_point timekeeper::arm() noexcept {
  for (;;) {
    const auto until = earliest_for_keeper();
    armed_until_.store(until, std::memory_order_relaxed);  // 1
    platform::heavy_fence();                               // 2
    if (earliest_for_keeper() >= until) return until;      // 3
  }
}

void timekeeper::run() noexcept {
  helper_of = this;
  platform::wake_on_time();
  while (!keeper_.is_stopping()) {
    if (cancels_.exchange(false, std::memory_order_acquire)) cancel_all_due();
    const auto until = arm();
    if (until == never) {
      keeper_.park();
    } else {
      (void)keeper_.park_until(until);
    }
    const auto now = clock_.now();
    armed_until_.store(time_point::min(), std::memory_order_relaxed);  // it is awake
    if (shards_[slots_].next.load(std::memory_order_relaxed) <= now) fire(shards_[slots_], now, no_limit);
    for (unsigned i = 0; i < slots_; ++i) {
      if (shards_[i].overdue() <= now) fire(shards_[i], now, no_limit);
    }
  }
}

void timekeeper::cancel(scope_deadline& entry, std::unique_lock<platform::spin_lock>& hold) noexcept {
  entry.at = deadline_entry::place::nowhere;
  cancel_scope& target = *entry.target;
  const source_location where = entry.where;
  target.pin();
  hold.unlock();
  target.cancel_and_unpin({cancel_kind::deadline, {}, where, 0, {}, {}});
}

void timekeeper::cancel_all_due() noexcept {
  for (unsigned i = 0; i <= slots_; ++i) {
    for (;;) {
      std::unique_lock hold(shards_[i].lock);
      timer_node* const due = shards_[i].cancelling.take_first();
      if (due == nullptr) break;
      cancel(static_cast<scope_deadline&>(*due), hold);
    }
  }
}

// Time that is moved by hand ---------------------------------------------------------------------------

void timekeeper::time_passed() noexcept {
  fire_in_order();
}

// One after the other, the earliest first.
void timekeeper::fire_in_order() noexcept {
  shard& all = shards_[0];
  for (;;) {
    std::unique_lock hold(all.lock);
    deadline_entry* const due = take_due(all, clock_.now());
    renew_next(all);
    if (due == nullptr) return;
    if (due->of_scope) {
      cancel(static_cast<scope_deadline&>(*due), hold);
      continue;
    }
    auto& call = static_cast<wake_up&>(*due);
    call.at = deadline_entry::place::nowhere;
    const waker who = call.who;
    call.fired.store(true, std::memory_order_release);
    hold.unlock();
    who.wake();
  }
}

bool timekeeper::jump() noexcept {
  if (!advances_itself()) return false;
  const auto next = shards_[0].next.load(std::memory_order_acquire);
  if (next == never) return false;
  manual_->advance_to(next);
  return true;
}

void add_deadline(scope_deadline& entry) {
  entry.target->owner_scheduler().deadlines.add(entry);
}

void remove_deadline(scope_deadline& entry) noexcept {
  if (entry.target != nullptr) entry.target->owner_scheduler().deadlines.remove(entry);
}

struct deadline_scope::parts {
  cancel_scope scope;
  scope_deadline entry;
  parts(std::chrono::steady_clock::time_point when, source_location where, const char* function)
      : scope(cancel_scope::role::ordinary, where, function) {
    entry.set(when, scope, where);
    if (when != std::chrono::steady_clock::time_point::max()) add_deadline(entry);
  }
  ~parts() { remove_deadline(entry); }
};

deadline_scope::deadline_scope(std::chrono::steady_clock::time_point when, source_location where,
                               const char* function) {
  static_assert(sizeof(parts) <= sizeof storage_, "deadline_scope::storage_ holds its parts");
  new (storage_) parts(when, where, function);
}

deadline_scope::~deadline_scope() {
  inside().~parts();
}

deadline_scope::parts& deadline_scope::inside() noexcept {
  return *std::launder(reinterpret_cast<parts*>(storage_));
}

bool deadline_scope::owns(const cancelled& c) const noexcept {
  return const_cast<deadline_scope*>(this)->inside().scope.owns(c);
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

manual_clock::manual_clock() : manual_clock(false) {}
manual_clock::manual_clock(bool advances_itself) : clock_(std::make_unique<platform::virtual_clock>(advances_itself)) {}
manual_clock::~manual_clock() = default;

void manual_clock::advance(std::chrono::nanoseconds by) {
  clock_->advance(by);
}

std::chrono::steady_clock::time_point manual_clock::now() const noexcept {
  return clock_->now();
}

std::chrono::steady_clock::time_point now() noexcept {
  const auto* const local = runtime_internal::this_worker_local();
  return local != nullptr ? local->runs_in->deadlines.now() : platform::steady_clock::instance().now();
}

}  // namespace ramie::inline v0
