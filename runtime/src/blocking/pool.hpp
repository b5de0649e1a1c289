// SPDX-License-Identifier: BSL-1.0
// Threads for calls that block, so that workers need not: started when there is no idle one, up to a limit, and gone
// again when they have had nothing to do for a while. Jobs beyond the limit wait in a queue. A job lives with whoever
// waits for it; the pool allocates for threads only.
//
// Invariants, under mutex_
//   P1  A job is queued only while no thread is idle; a thread is idle only while no job is queued.
//   P2  While a job is queued there is a thread that will look; or one is being started for this very job, by somebody
//       who takes it out again if that fails and there is no other.
//   P3  Whoever unlists an idle thread gives it a job, or none to send it away, and then exactly one token. A thread
//       that unlists itself, because its time is up, gets none; one that finds itself unlisted at that moment waits for
//       the token, which is on its way. So no token is ever left over, and no thread wakes up for nothing.
//   P4  A job has ended when its gate opens, and after that the pool never touches it. The thread is idle, or has its
//       next job, before it opens the gate: who is told by that and has another call finds the thread that is free.
//       What it is given meanwhile waits for no more than that.
//   P5  A thread that leaves is counted no more and joins the one that left before it. stop() joins the last.
//
// Threads are started one at a time, under births_, and without mutex_: so the counted ones are really there when a
// start fails, and a thread whose time is up, which passes through births_, knows that its handle is in its place.
// (When the pool stops nobody is being born.)
//
// Rejected: one semaphore or condition variable for all idle threads. It wakes the one that has slept longest, whose
// caches are cold, keeps all of them from ever being idle long enough to leave, and needs a count of notifications that
// were not consumed to tell a wake-up from a spurious one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/stats.hpp>

namespace ramie::detail {

// Something for a thread of the pool to do. Its owner keeps it there until the gate opens, or take_back() says yes.
struct blocking_job {
  // True: then the gate is to be opened. False: the job is the function's own, and may be gone.
  using function = bool (*)(blocking_job& self) noexcept;
  explicit blocking_job(function what) noexcept : run(what) {}
  const function run;
  gate ended;

 private:
  friend class job_queue;
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
  blocking_pool(unsigned limit, std::chrono::nanoseconds idle_time) noexcept : limit_(limit), idle_time_(idle_time) {}
  ~blocking_pool() { stop(); }
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  // Any thread, before stop(). An idle thread runs it, or a new one, or, at the limit or if none can be started, the
  // first that is through. Throws std::system_error or std::bad_alloc if there is none and none can be started; the
  // job is not in then.
  void submit(blocking_job& job);
  // Any thread. True: the job was queued, is not any more, and never runs.
  [[nodiscard]] bool take_back(blocking_job& job) noexcept;
  // When nobody submits any more: waits for what still runs and joins every thread. Idempotent.
  void stop() noexcept;
  [[nodiscard]] blocking_stats read() const noexcept;
  // Whether the calling thread is one of the pool's.
  [[nodiscard]] bool runs_caller() const noexcept;

  // Around a fiber's wait for a job, by that fiber: a clock that advances by itself must not take it for one that only
  // waits for a time (stillness.hpp). Not by the job: between its end and the fiber's wake nobody would be counted.
  struct awaited {
    explicit awaited(blocking_pool& in) noexcept : pool(in) { pool.awaited_.fetch_add(1, std::memory_order_relaxed); }
    ~awaited() { pool.awaited_.fetch_sub(1, std::memory_order_relaxed); }
    awaited(const awaited&) = delete;
    awaited& operator=(const awaited&) = delete;
    blocking_pool& pool;
  };
  // Exact while all workers are parked: whoever found that out is ordered after what they did before.
  [[nodiscard]] bool anybody_waits() const noexcept { return awaited_.load(std::memory_order_relaxed) != 0; }

 private:
  struct member {
    explicit member(blocking_pool& of) noexcept : pool(of) {}
    blocking_pool& pool;
    platform::thread_parker parker;
    blocking_job* given = nullptr;  // with the token
    member* next_idle = nullptr;
    member* left_before = nullptr;  // to be joined
    platform::thread handle;
    void serve() noexcept { pool.serve(*this); }
  };
  enum class placement : std::uint8_t { done, needs_thread };

  [[nodiscard]] placement place(std::unique_lock<platform::mutex>& hold, blocking_job& job) noexcept;
  void start_one_for(blocking_job& job);
  void serve(member& me) noexcept;
  [[nodiscard]] blocking_job* next_job(member& me, blocking_job* done) noexcept;  // null: it has resigned
  [[nodiscard]] bool take_or_list(member& me, blocking_job*& next) noexcept;
  [[nodiscard]] blocking_job* wait_idle(member& me) noexcept;
  [[nodiscard]] bool time_is_up(member& me) noexcept;
  void resign(member& me) noexcept;

  const unsigned limit_;
  const std::chrono::nanoseconds idle_time_;
  mutable platform::mutex mutex_;
  job_queue queue_;
  member* idle_ = nullptr;  // the one that became so last comes first
  member* left_ = nullptr;  // nobody has joined it yet
  unsigned threads_ = 0, idle_count_ = 0, peak_ = 0;
  std::uint64_t jobs_ = 0;
  bool starting_ = false;  // one of threads_ is not there yet, and nobody but its starter may count on it
  bool stopping_ = false;
  platform::condition_variable all_left_;
  platform::mutex births_;  // before mutex_
  platform::atomic<std::uint32_t> awaited_{0};
};

}  // namespace ramie::detail
