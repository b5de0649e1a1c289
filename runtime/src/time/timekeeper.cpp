// SPDX-License-Identifier: BSL-1.0
#include "timekeeper.hpp"

#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/timeout.hpp>

#include "../sched/scheduler.hpp"

namespace ramie::detail {

timekeeper::timekeeper(platform::virtual_clock* manual)
    : manual_(manual),
      clock_(manual != nullptr ? static_cast<const platform::clock_source&>(*manual)
                               : platform::steady_clock::instance()) {
  if (manual_ != nullptr && !manual_->subscribe(*this)) {
    throw usage_error("ramie: a virtual_clock serves one runtime at a time. Give each its own.");
  }
}

timekeeper::~timekeeper() {
  stop();
  if (manual_ != nullptr) manual_->unsubscribe(*this);
}

void timekeeper::stop() noexcept {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void timekeeper::add(deadline_entry& entry) {
  // By the caller itself: whoever else took it from the heap might not be done when the caller goes on.
  if (entry.target != nullptr && entry.when <= clock_.now()) {
    entry.target->cancel({cancel_kind::deadline, {}, entry.where, 0, {}, {}});
    return;
  }
  std::unique_lock hold(mutex_);
  if (manual_ == nullptr && !thread_.joinable()) thread_ = platform::start_thread<&timekeeper::run>(*this);
  heap_.push_back(&entry);
  put(heap_.size() - 1, entry);
  sift_up(entry.at);
  if (manual_ != nullptr) {
    carry_out_due(hold);
  } else if (entry.at == 0) {
    changed_.notify_all();
  }
}

void timekeeper::remove(deadline_entry& entry) noexcept {
  std::lock_guard hold(mutex_);
  const auto at = entry.at;
  if (at == deadline_entry::none) return;
  entry.at = deadline_entry::none;
  deadline_entry& last = *heap_.back();
  heap_.pop_back();
  if (&last == &entry) return;
  put(at, last);
  sift_up(at);
  sift_down(last.at);
}

void timekeeper::arm(wake_up& entry, waker who) noexcept {
  {
    std::lock_guard hold(mutex_);
    entry.who = who;
    if (!entry.rang.load(std::memory_order_relaxed)) return;
  }
  who.wake();
}

void timekeeper::time_passed() noexcept {
  std::unique_lock hold(mutex_);
  carry_out_due(hold);
}

bool timekeeper::jump() noexcept {
  if (!advances_itself()) return false;
  platform::time_point earliest;
  {
    std::lock_guard hold(mutex_);
    if (heap_.empty()) return false;
    earliest = heap_.front()->when;
  }
  manual_->advance_to(earliest);
  return true;
}

void timekeeper::run() noexcept {
  std::unique_lock hold(mutex_);
  while (!stopping_) {
    carry_out_due(hold);
    if (stopping_) return;
    if (heap_.empty()) {
      changed_.wait(hold);
    } else {
      const auto when = heap_.front()->when;  // the entry may be gone while we wait
      changed_.wait_until(hold, when);
    }
  }
}

void timekeeper::carry_out_due(std::unique_lock<platform::mutex>& hold) noexcept {
  while (!heap_.empty() && heap_.front()->when <= clock_.now()) {
    deadline_entry& due = *heap_.front();
    due.at = deadline_entry::none;
    deadline_entry& last = *heap_.back();
    heap_.pop_back();
    if (&last != &due) {
      put(0, last);
      sift_down(0);
    }
    if (due.target == nullptr) {
      auto& call = static_cast<wake_up&>(due);
      call.rang.store(true, std::memory_order_release);
      const waker who = call.who;
      hold.unlock();
      who.wake();
    } else {
      cancel_scope& target = *due.target;
      const source_location where = due.where;
      target.pin();
      hold.unlock();
      target.cancel_and_unpin({cancel_kind::deadline, {}, where, 0, {}, {}});
    }
    hold.lock();
  }
}

void timekeeper::put(std::size_t at, deadline_entry& entry) noexcept {
  heap_[at] = &entry;
  entry.at = at;
}

void timekeeper::sift_up(std::size_t at) noexcept {
  deadline_entry& moving = *heap_[at];
  for (std::size_t parent = 0; at != 0 && moving.when < heap_[parent = (at - 1) / 2]->when; at = parent) {
    put(at, *heap_[parent]);
  }
  put(at, moving);
}

void timekeeper::sift_down(std::size_t at) noexcept {
  deadline_entry& moving = *heap_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->when < heap_[child]->when) ++child;
    if (moving.when <= heap_[child]->when) break;
    put(at, *heap_[child]);
    at = child;
  }
  put(at, moving);
}

void add_deadline(deadline_entry& entry) {
  entry.target->owner_scheduler().deadlines.add(entry);
}

void remove_deadline(deadline_entry& entry) noexcept {
  if (entry.target != nullptr) entry.target->owner_scheduler().deadlines.remove(entry);
}

struct deadline_scope::parts {
  cancel_scope scope;
  deadline_entry entry;
  explicit parts(std::chrono::steady_clock::time_point when, source_location where)
      : scope(cancel_scope::role::ordinary, where), entry{when, &scope, where} {
    if (when != std::chrono::steady_clock::time_point::max()) add_deadline(entry);
  }
  ~parts() { remove_deadline(entry); }
};

deadline_scope::deadline_scope(std::chrono::steady_clock::time_point when, source_location where) {
  static_assert(sizeof(parts) <= sizeof storage_, "deadline_scope::storage_ holds its parts");
  new (storage_) parts(when, where);
}

deadline_scope::~deadline_scope() {
  inside().~parts();
}

deadline_scope::parts& deadline_scope::inside() noexcept {
  return *std::launder(reinterpret_cast<parts*>(storage_));
}

bool deadline_scope::owns(const cancelled& c) const noexcept {
  return c.scope() == &const_cast<deadline_scope*>(this)->inside().scope;
}

}  // namespace ramie::detail

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
  const auto* const desk = detail::this_desk();
  return desk != nullptr ? desk->runs_in->deadlines.now() : std::chrono::steady_clock::now();
}

}  // namespace ramie::inline v0
