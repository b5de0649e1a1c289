// SPDX-License-Identifier: BSL-1.0
// A runtime whose workers have no thread, and fibers that never run: the parts of the scheduler by hand.
#pragma once

#include <array>

#include <sched/hot.hpp>
#include <support/crew.hpp>

namespace test {

class still_scheduler {
 public:
  explicit still_scheduler(unsigned workers = 1, bool elastic = false) : rt_(settings(workers, elastic)) {
    while (sched().idle.claim_parked()) {  // counted as searching: nobody is started for what is queued
    }
    sched().injection.reserve(fibers.size());  // they are from no pool, which would have done it
    for (detail::fiber& f : fibers) f.word.initialise_runnable(0);
  }
  // What a test has left in the queues belongs to nobody.
  ~still_scheduler() {
    detail::fiber* out = nullptr;
    while (sched().injection.take(&out, 1) != 0) {
    }
  }
  still_scheduler(const still_scheduler&) = delete;
  still_scheduler& operator=(const still_scheduler&) = delete;

  [[nodiscard]] ramie::runtime& runtime() { return rt_; }
  [[nodiscard]] detail::scheduler& sched() { return rt_.internals(); }
  [[nodiscard]] detail::worker& w(std::size_t index = 0) { return *sched().workers[index]; }

  // The youngest of the worker's ring.
  void push(detail::fiber& f, std::size_t worker = 0) { w(worker).ring.push(&f, w(worker).overflow); }
  void nobody_searches() {
    while (sched().idle.look().searching() != 0) (void)sched().idle.leave_search();
  }

  std::array<detail::fiber, 12> fibers;

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
