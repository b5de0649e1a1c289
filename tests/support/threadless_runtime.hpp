// SPDX-License-Identifier: BSL-1.0
// A runtime whose workers have no thread, and fibers that never run: the parts of the scheduler by hand.
#pragma once

#include <array>

#include "runtime/src/sched/runner.hpp"
#include <support/fiber_group.hpp>
#include <support/scheduler_access.hpp>

namespace test {

class threadless_runtime {
 public:
  explicit threadless_runtime(unsigned workers = 1, bool elastic = false) : rt_(settings(workers, elastic)) {
    while (sched().pool.idle().claim_parked()) {  // counted as searching: nobody is started for what is queued
    }
    sched().queues.reserve(fibers.size());  // they are from no pool, which would have done it
    for (runtime_internal::fiber& f : fibers) f.word.init_to_runnable(0);
  }
  // What a test has left in the queues belongs to nobody.
  ~threadless_runtime() {
    runtime_internal::fiber* out = nullptr;
    while ((out = sched().queues.take_one_injected(w())) != nullptr) {
    }
  }
  threadless_runtime(const threadless_runtime&) = delete;
  threadless_runtime& operator=(const threadless_runtime&) = delete;

  [[nodiscard]] ramie::runtime& runtime() { return rt_; }
  [[nodiscard]] runtime_internal::scheduler& sched() { return runtime_internal::scheduler_of(rt_); }
  [[nodiscard]] runtime_internal::worker& w(std::size_t index = 0) { return *sched().pool.workers()[index]; }

  // The youngest of the worker's ring.
  void push(runtime_internal::fiber& f, std::size_t worker = 0) { w(worker).queue.ring.push(runtime_internal::as_entry(f), w(worker).queue.overflow); }
  void nobody_searches() {
    while (sched().pool.idle().load().searching() != 0) (void)sched().pool.idle().leave_search();
  }

  std::array<runtime_internal::fiber, 12> fibers;

 private:
  static ramie::options settings(unsigned workers, bool elastic) {
    ramie::options o;
    o.workers = workers;
    o.elastic = elastic;
    return o;
  }

  ramie::runtime rt_;
};

}  // namespace test
