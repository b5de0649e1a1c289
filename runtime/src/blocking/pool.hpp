// SPDX-License-Identifier: BSL-1.0
// Threads for calls that block, so that workers need not: started when there is no idle one, up to a limit, and gone
// again when they have had nothing to do for a while. Jobs beyond the limit wait in a queue. A job belongs to the fiber
// that waits for it; the pool allocates for threads only.
//
// Invariants, under mutex_
//   B4  A job is queued only while no thread is idle; a thread is idle only while no job is queued. While a job is
//       queued there is a thread that will take it; or one is being started for this very job, by a caller that removes
//       the job again if the start fails and there is no other thread. A thread decides to leave in the critical
//       section in which it finds nothing to do.
//   B6  The caller that unlists an idle thread gives it a job, or none to make it leave, and then exactly one token. A
//       thread that unlists itself, because its idle time is over, gets none; one that finds itself unlisted at that
//       moment waits for the token, which is on its way. So no token is ever left over, and no thread wakes up for
//       nothing.
//   B5  A job has ended when its gate opens, and after that the pool never touches it. The thread is idle, or has its
//       next job, before it opens the gate: so a fiber that goes on to its next call finds this thread idle. A job that
//       the thread is given meanwhile waits only until the gate is open.
//   B7  A thread that leaves is no longer counted, and joins the one that left before it. stop() joins the last.
//
// An idle thread spins before it sleeps if its next call is likely to come soon (spinning.hpp): to whoever unlists it this
// makes no difference, but that the token wakes nobody.
//
// Threads are started one at a time, under start_mutex_, and without mutex_: so the counted threads really exist when a
// start fails, and a thread whose idle time is over, which takes start_mutex_ for a moment, knows that its `handle` has
// been assigned. (While the pool stops, no thread is being started.)
//
// Rejected: one semaphore or condition variable for all idle threads. It wakes the one that has slept longest, whose
// caches are cold, keeps all of them from ever being idle long enough to leave, and needs a count of notifications that
// were not consumed to tell a wake-up from a spurious one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/stats.hpp>

#include "../sched/spinning.hpp"

namespace ramie::runtime_internal {

// Something for a thread of the pool to do. Its owner keeps it alive until the gate opens, or take_back() returns true.
struct blocking_job {
  // True: the pool is to open the gate. False: the function has taken the job over, which may be gone.
  using function = bool (*)(blocking_job& self) noexcept;
  explicit blocking_job(function what) noexcept : run(what) {}
  const function run;
  gate ended;

 private:
  friend class job_queue;
  friend class blocking_pool;
  int caller_on_ = -1;  // the processor of the thread that submitted it
  blocking_job *previous_ = nullptr, *next_ = nullptr;  // while queued
  bool queued_ = false;
};

// Oldest first. The pool's mutex protects it.
class job_queue {
 public:
  void add(blocking_job& job) noexcept;
  [[nodiscard]] blocking_job* take() noexcept;            // null: there is none
  [[nodiscard]] bool remove(blocking_job& job) noexcept;  // false: it was not there
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  blocking_job *first_ = nullptr, *last_ = nullptr;
  std::uint32_t size_ = 0;
};

class blocking_pool {
 public:
  // `limit` is at least 1. Starts no thread.
  blocking_pool(unsigned limit, std::chrono::nanoseconds idle_time, const spare_processors& spare) noexcept
      : limit_(limit), idle_time_(idle_time), spare_(spare) {}
  ~blocking_pool() { stop(); }
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  // Any thread, before stop(). An idle thread runs the job, or a new one, or, at the limit or if none can be started,
  // the first thread that ends its job. Throws std::system_error or std::bad_alloc if there is no thread and none can
  // be started; then the job was not submitted. True: an idle thread has it, which was last seen on another processor.
  bool submit(blocking_job& job);
  // Any thread. True: the job was still queued; it is removed, and never runs.
  [[nodiscard]] bool take_back(blocking_job& job) noexcept;
  // After the last submit: waits for the jobs that still run and joins every thread. Idempotent.
  void stop() noexcept;
  [[nodiscard]] blocking_stats read() const noexcept;
  // Whether the calling thread is one of the pool's.
  [[nodiscard]] bool runs_caller() const noexcept;

  // Made by a fiber around its wait for a job: a clock that advances by itself must not take it for a fiber that only
  // waits for a time (quiescence.hpp). Not counted by the job itself: between its end and the fiber's wake the count
  // would be zero.
  struct awaited {
    explicit awaited(blocking_pool& in) noexcept : pool(in) { pool.awaited_.fetch_add(1, std::memory_order_relaxed); }
    ~awaited() { pool.awaited_.fetch_sub(1, std::memory_order_relaxed); }
    awaited(const awaited&) = delete;
    awaited& operator=(const awaited&) = delete;
    blocking_pool& pool;
  };
  // Whether the caller, a worker that is awake, may keep its processor while it waits for the end of a call.
  [[nodiscard]] bool leaves_processor() const noexcept {
    return spare_.suffice_for(std::max(1u, awake_.load(std::memory_order_relaxed)));
  }
  // Exact while all workers are parked: the caller that found that out is ordered after what they did before.
  [[nodiscard]] bool anybody_waits() const noexcept { return awaited_.load(std::memory_order_relaxed) != 0; }

 private:
  struct member {
    explicit member(blocking_pool& of) noexcept : pool(of) {}
    blocking_pool& pool;
    platform::thread_parker parker;
    blocking_job* given = nullptr;  // with the token
    int on = -1;                    // its processor, when it became idle
    int caller_on = -1;             // and that of the thread that submitted its last job
    spin_forecast calls;
    std::uint32_t spins = 0;  // not in spins_ yet
    member* next_idle = nullptr;
    member* left_before = nullptr;  // to be joined
    platform::thread handle;
    void serve() noexcept { pool.serve(*this); }
  };
  enum class placement : std::uint8_t { elsewhere, done, needs_thread };  // elsewhere: done, as submit() says

  [[nodiscard]] placement place(std::unique_lock<platform::mutex>& hold, blocking_job& job) noexcept;
  bool start_one_for(blocking_job& job);
  void serve(member& me) noexcept;
  [[nodiscard]] blocking_job* next_job(member& me, blocking_job* done) noexcept;  // null: it has resigned
  [[nodiscard]] bool take_or_list(member& me, blocking_job*& next) noexcept;
  [[nodiscard]] blocking_job* wait_idle(member& me) noexcept;
  void spin(member& me) noexcept;
  [[nodiscard]] bool sleep(member& me) noexcept;
  [[nodiscard]] bool time_is_up(member& me) noexcept;
  void resign(member& me) noexcept;

  const unsigned limit_;
  const std::chrono::nanoseconds idle_time_;
  const spare_processors spare_;
  mutable platform::mutex mutex_;
  job_queue queue_;
  member* idle_ = nullptr;  // the thread that became idle last comes first
  member* left_ = nullptr;  // the last that left; not joined yet
  unsigned threads_ = 0, idle_count_ = 0, peak_ = 0;
  std::uint64_t jobs_ = 0, spins_ = 0;
  bool starting_ = false;  // one of threads_ is being started: only its starter may rely on it
  bool stopping_ = false;
  platform::condition_variable all_left_;
  platform::mutex start_mutex_;  // before mutex_
  platform::atomic<std::uint32_t> awaited_{0};
  platform::atomic<std::uint32_t> awake_{0};  // threads that do not sleep: a hint
};

}  // namespace ramie::runtime_internal
