// SPDX-License-Identifier: BSL-1.0
// blocking(): a fiber's wait for a job of the pool.
//
// A job is queued, then running, then ended. Whether it ever runs is decided by who takes it out of the queue: a thread
// of the pool, or the fiber, because it was cancelled. When the job has ended its gate opens: after that only the fiber
// touches it.
//
// A detachable job is on the heap. Fiber and thread each exchange `parting` when they are done with it; the second of
// them owns the job alone:
//
//       fiber, cancelled while it runs          thread, when it has ended
//       1. parting = left                       1. parting = ended
//       2. had it ended? then wait for the      2. had the fiber left? then the thread owns the job,
//          gate; the fiber owns the job            else the gate opens
#include <ramie/blocking.hpp>

#include <exception>
#include <memory>
#include <utility>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/forced_unwind.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/runtime/wait.hpp>

#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

namespace {

const wait_reason waits_for_job{"blocking"};
const wait_reason waits_for_end{"blocking, cancelled"};
const wait_reason waits_for_thread{"blocking, about to end"};

struct awaited_job : blocking_job {
  using blocking_job::blocking_job;
  std::exception_ptr failure;
};

// The exception of a call whose caller was cancelled can't be thrown to it, because the cancellation is: so it is
// reported.
void report_dropped(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) return;
  try {
    fiber* const f = current_context().self;
    report_lost_failure(f != nullptr ? "a blocking call of " + describe(*f) : "a detached blocking call", failure);
  } catch (...) {
    report_lost_failure({}, failure);
  }
}

[[noreturn]] void thread_ended_in_call() noexcept {
  platform::fatal(
      "pthread_exit() or pthread_cancel() in a call of blocking(): it would end a thread of the runtime. Return from "
      "the call, or throw.");
}

// On the fiber's stack.
struct borrowed_job final : awaited_job {
  borrowed_job(void (*f)(void*), void* argument) noexcept : awaited_job(execute), call(f), data(argument) {}
  void (*const call)(void*);
  void* const data;

  static bool execute(blocking_job& self) noexcept {
    auto& job = static_cast<borrowed_job&>(self);
    try {
      job.call(job.data);
    } catch (const platform::forced_unwind&) {
      thread_ended_in_call();
    } catch (...) {
      job.failure = std::current_exception();
    }
    return true;
  }
};

// On the heap.
struct detachable_job final : awaited_job {
  explicit detachable_job(std::unique_ptr<detachable_call> f) noexcept : awaited_job(execute), work(std::move(f)) {}
  enum party : std::uint8_t { together, ended_first, left_first };
  std::unique_ptr<detachable_call> work;
  platform::atomic<std::uint8_t> parting{together};

  static bool execute(blocking_job& self) noexcept {
    auto& job = static_cast<detachable_job&>(self);
    try {
      job.work->call();
    } catch (const platform::forced_unwind&) {
      thread_ended_in_call();
    } catch (...) {
      job.failure = std::current_exception();
    }
    // acq_rel, with the exchange in run_detachable: the second of them sees what the first did with the job.
    if (job.parting.exchange(ended_first, std::memory_order_acq_rel) == together) return true;
    const std::unique_ptr<detachable_job> mine(&job);
    report_dropped(job.failure);
    return false;
  }
};

// The scheduler of the calling fiber; null on a plain thread, which makes the call itself.
scheduler* pool_of_caller() {
  call_context at = current_context();
  if (at.local == nullptr) return nullptr;
  if (at.self == nullptr) no_fiber_to_wait();
  begin_operation(at);
  return at.local->runs_in;
}

void submit(scheduler& home, blocking_job& job) {
  const bool made_elsewhere = home.blocking.submit(job);
  dispatcher::expect_end_of_call(*this_worker(), made_elsewhere);
}

// Waits for a submitted job. If the fiber is cancelled: takes the job out of the queue, or, if it runs already, calls
// `when_cancelled`; then throws `cancelled`.
template <class WhenCancelled>
void wait_for(awaited_job& job, blocking_pool& pool, WhenCancelled when_cancelled) {
  const blocking_pool::awaited while_it_runs(pool);
  try {
    job.ended.wait(waits_for_job);
  } catch (...) {
    if (!pool.take_back(job)) when_cancelled();
    throw;
  }
}

}  // namespace

void run_blocking(void (*call)(void*), void* data) {
  scheduler* const home = pool_of_caller();
  if (home == nullptr) return call(data);
  borrowed_job job(call, data);
  submit(*home, job);
  wait_for(job, home->blocking, [&job] {
    job.ended.wait(waits_for_end, cancellable::no);
    report_dropped(job.failure);
  });
  if (job.failure != nullptr) std::rethrow_exception(std::move(job.failure));
}

void run_detachable(std::unique_ptr<detachable_call>& work) {
  scheduler* const home = pool_of_caller();
  if (home == nullptr) return work->call();
  auto job = std::make_unique<detachable_job>(std::move(work));
  submit(*home, *job);
  wait_for(*job, home->blocking, [&job] {
    if (job->parting.exchange(detachable_job::left_first, std::memory_order_acq_rel) == detachable_job::together) {
      (void)job.release();  // the thread owns it
      return;
    }
    job->ended.wait(waits_for_thread, cancellable::no);
    report_dropped(job->failure);
  });
  work = std::move(job->work);
  if (job->failure != nullptr) std::rethrow_exception(std::move(job->failure));
}

}  // namespace ramie::runtime_internal
