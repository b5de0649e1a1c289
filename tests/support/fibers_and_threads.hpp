// SPDX-License-Identifier: BSL-1.0
// Fibers and plain threads that do the same thing at the same time, on 1, 2, 4 and 8 workers; fibers that say how their
// wait ended; whether a lock is held.
#pragma once

#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace test {

// act(i) by `fibers` fibers and `threads` threads, i from 0 on; returns when all have ended.
template <class Act>
void together(unsigned workers, int fibers, int threads, Act act) {
  std::vector<std::thread> outside;
  ramie::run(with_workers(workers), [&] {
    for (int i = 0; i < threads; ++i) outside.emplace_back([&act, i, fibers] { act(fibers + i); });
    ramie::nursery n;
    for (int i = 0; i < fibers; ++i) n.spawn([&act, i] { act(i); });
    n.join();
  });
  for (auto& t : outside) t.join();
}

// body(workers) for each.
template <class Body>
void for_all_workers(Body body) {
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    INFO("workers: " << workers);
    body(workers);
  }
}

// How something ended that may be cancelled: fibers tell, the test asks when they have ended.
enum class fate { running, done, failed, cut_short };

// wait() in a fiber of `n`; false is failed.
template <class Wait>
void tell_fate(ramie::nursery& n, fate& how, Wait wait) {
  n.spawn([&how, wait]() mutable {
    try {
      how = wait() ? fate::done : fate::failed;
    } catch (const ramie::cancelled&) {
      how = fate::cut_short;
      throw;
    }
  });
}

// The same where there is one worker: returns when that fiber waits.
template <class Wait>
void let_wait(ramie::nursery& n, fate& how, Wait wait) {
  tell_fate(n, how, wait);
  ramie::yield();
}

// Two fibers wait for a lock that we hold: one is too late, the other gets it. `try_lock_for(limit)` is how they lock it;
// both unlock by unlock().
template <class Mutex, class TryLockFor, class Unlock>
void one_is_too_late(findings& found, ramie::manual_clock& clock, Mutex& m, TryLockFor try_lock_for, Unlock unlock) {
  fate late = fate::running, lucky = fate::running;
  ramie::nursery n;
  m.lock();
  tell_fate(n, late, [&] { return try_lock_for(std::chrono::seconds(1)); });
  tell_fate(n, lucky, [&] { return try_lock_for(std::chrono::seconds(10)) && (unlock(), true); });
  ramie::yield();
  clock.advance(std::chrono::seconds(2));
  ramie::yield();
  EXPECT(found, late == fate::failed, lucky == fate::running);
  m.unlock();
  n.join();
  EXPECT(found, lucky == fate::done);
}

// Whether nobody holds it.
template <class Mutex>
[[nodiscard]] bool is_free(Mutex& m) {
  if (!m.try_lock()) return false;
  m.unlock();
  return true;
}

}  // namespace test
