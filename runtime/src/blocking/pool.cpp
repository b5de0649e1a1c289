// SPDX-License-Identifier: BSL-1.0
#include "pool.hpp"

#include <algorithm>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/platform/cpu.hpp>

#include "../sched/helper_thread.hpp"

namespace ramie::runtime_internal {

void job_queue::add(blocking_job& job) noexcept {
  job.previous_ = last_;
  job.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &job;
  last_ = &job;
  job.queued_ = true;
  ++size_;
}

bool job_queue::remove(blocking_job& job) noexcept {
  if (!std::exchange(job.queued_, false)) return false;
  (job.previous_ != nullptr ? job.previous_->next_ : first_) = job.next_;
  (job.next_ != nullptr ? job.next_->previous_ : last_) = job.previous_;
  --size_;
  return true;
}

blocking_job* job_queue::take() noexcept {
  blocking_job* const job = first_;
  if (job != nullptr) (void)remove(*job);
  return job;
}

bool blocking_pool::submit(blocking_job& job) {
  job.caller_on_ = platform::current_cpu();
  {
    std::unique_lock hold(mutex_);
    const placement found = place(hold, job);
    if (found != placement::needs_thread) return found == placement::elsewhere;
  }
  return start_one_for(job);
}

// Hands the job to an idle thread, or queues it at the limit. Releases the lock before it wakes the thread, which
// should not wake up only to wait for the lock.
blocking_pool::placement blocking_pool::place(std::unique_lock<platform::mutex>& hold, blocking_job& job) noexcept {
  if (member* const chosen = idle_) {
    idle_ = chosen->next_idle;
    --idle_count_;
    ++jobs_;
    chosen->given = &job;
    const bool elsewhere = chosen->on != job.caller_on_;  // before the token: with that the job is the thread's
    hold.unlock();
    chosen->parker.unpark();  // still exists: it waits for this token before it does anything else (B6)
    return elsewhere ? placement::elsewhere : placement::done;
  }
  if (threads_ - (starting_ ? 1 : 0) < limit_) return placement::needs_thread;
  queue_.add(job);
  return placement::done;
}

// The job is queued for the new thread, or for a thread that ends its job before the new one has started.
bool blocking_pool::start_one_for(blocking_job& job) {
  std::lock_guard one_at_a_time(start_mutex_);
  unsigned with_it = 0;
  {
    std::unique_lock hold(mutex_);
    const placement found = place(hold, job);
    if (found != placement::needs_thread) return found == placement::elsewhere;
    with_it = ++threads_;
    starting_ = true;
    queue_.add(job);
  }
  try {
    auto fresh = std::make_unique<member>(*this);
    fresh->handle = platform::start_thread<&member::serve>(*fresh);
    (void)fresh.release();  // the thread owns it until it leaves
  } catch (...) {
    std::lock_guard hold(mutex_);
    starting_ = false;
    if (--threads_ == 0 && queue_.remove(job)) throw;
    return false;
  }
  std::lock_guard hold(mutex_);
  starting_ = false;
  peak_ = std::max(peak_, with_it);
  return false;
}

bool blocking_pool::take_back(blocking_job& job) noexcept {
  std::lock_guard hold(mutex_);
  return queue_.remove(job);
}

void blocking_pool::serve(member& me) noexcept {
  helper_of = this;
  awake_.fetch_add(1, std::memory_order_relaxed);
  blocking_job* done = nullptr;
  while (blocking_job* const job = next_job(me, done)) {
    me.caller_on = job->caller_on_;
    done = job->run(*job) ? job : nullptr;
  }
  awake_.fetch_sub(1, std::memory_order_relaxed);
  if (me.left_before == nullptr) return;
  me.left_before->handle.join();
  delete me.left_before;
}

blocking_job* blocking_pool::next_job(member& me, blocking_job* done) noexcept {
  blocking_job* next = nullptr;
  const bool idle = take_or_list(me, next);
  if (done != nullptr) done->ended.open();
  return idle ? wait_idle(me) : next;
}

// True: it is idle now. Else `next` is its next job, or null: it has resigned.
bool blocking_pool::take_or_list(member& me, blocking_job*& next) noexcept {
  std::lock_guard hold(mutex_);
  spins_ += std::exchange(me.spins, 0);
  next = queue_.take();
  if (next != nullptr) {
    ++jobs_;
    return false;
  }
  if (stopping_) {
    resign(me);
    return false;
  }
  me.on = platform::current_cpu();
  me.next_idle = idle_;
  idle_ = &me;
  ++idle_count_;
  return true;
}

blocking_job* blocking_pool::wait_idle(member& me) noexcept {
  spin(me);
  if (!sleep(me)) {
    if (time_is_up(me)) return nullptr;
    me.parker.park();
  }
  if (me.given != nullptr) return std::exchange(me.given, nullptr);
  std::lock_guard hold(mutex_);
  resign(me);
  return nullptr;
}

// Until the next call, if it is likely to come soon. Not on the processor of the last caller: it could not come.
void blocking_pool::spin(member& me) noexcept {
  const auto is_free = [this] { return spare_.suffice_for(awake_.load(std::memory_order_relaxed)); };
  if (me.on == me.caller_on || !is_free() || !me.calls.is_worthwhile()) return;
  ++me.spins;
  const auto end = platform::steady_clock::instance().now() + longest_spin;
  do {
    for (int look = 0; look < looks_per_clock_read; ++look) {
      if (me.parker.has_token()) return me.calls.paid();
      platform::cpu_pause();
    }
  } while (is_free() && platform::steady_clock::instance().now() < end);
  me.calls.did_not_pay();
}

// True: until it has a token, which it consumes. False: until its idle time is over.
bool blocking_pool::sleep(member& me) noexcept {
  if (me.parker.has_token()) return me.parker.park_until(platform::time_point::min());
  awake_.fetch_sub(1, std::memory_order_relaxed);
  const bool has_token = me.parker.park_until(time_after(idle_time_));
  awake_.fetch_add(1, std::memory_order_relaxed);
  return has_token;
}

// True: it has resigned. False: a caller has unlisted it meanwhile.
bool blocking_pool::time_is_up(member& me) noexcept {
  { const std::lock_guard handle_is_there(start_mutex_); }
  std::lock_guard hold(mutex_);
  for (member** at = &idle_; *at != nullptr; at = &(*at)->next_idle) {
    if (*at != &me) continue;
    *at = me.next_idle;
    --idle_count_;
    resign(me);
    return true;
  }
  return false;
}

// In the critical section in which it decides to leave: a job queued after that must not count on it (B4).
void blocking_pool::resign(member& me) noexcept {
  spins_ += std::exchange(me.spins, 0);
  me.left_before = std::exchange(left_, &me);
  if (--threads_ == 0) all_left_.notify_all();
}

void blocking_pool::stop() noexcept {
  std::unique_lock hold(mutex_);
  stopping_ = true;
  while (member* const sent_away = idle_) {
    idle_ = sent_away->next_idle;
    --idle_count_;
    sent_away->parker.unpark();
  }
  all_left_.wait(hold, [this] { return threads_ == 0; });
  const std::unique_ptr<member> last(std::exchange(left_, nullptr));
  hold.unlock();
  if (last != nullptr) last->handle.join();
}

bool blocking_pool::runs_caller() const noexcept {
  return helper_of == this;
}

blocking_stats blocking_pool::read() const noexcept {
  std::lock_guard hold(mutex_);
  return {threads_, idle_count_, queue_.size(), peak_, jobs_, spins_};
}

}  // namespace ramie::runtime_internal
