// SPDX-License-Identifier: BSL-1.0
// Fibers for tests of the core, before there are nurseries: spawn callables into a scope, wait for all.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ramie/cancel.hpp>
#include <ramie/runtime.hpp>
#include <ramie/runtime/access.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/this_fiber.hpp>
#include "runtime/src/sched/scheduler.hpp"

namespace test {

namespace runtime_internal = ramie::runtime_internal;

class fiber_group {
 public:
  explicit fiber_group(runtime_internal::cancel_scope& scope) : scope_(scope) {}
  explicit fiber_group(ramie::runtime& rt) : fiber_group(ramie::runtime_internal::scheduler_of(rt).root_scope) {}
  ~fiber_group() { join(); }

  template <class F>
  void spawn(F f, std::size_t stack = 0, ramie::source_location site = ramie::source_location::current()) {
    auto work = std::make_unique<job<F>>(std::move(f), *this);
    live_.fetch_add(1, std::memory_order_relaxed);
    try {
      runtime_internal::spawn(job<F>::ops, *work, scope_, stack, site);
      (void)work.release();
    } catch (...) {
      live_.fetch_sub(1, std::memory_order_relaxed);
      throw;
    }
  }

  // Waits until every fiber has ended, whatever is cancelled meanwhile.
  void join() {
    if (joined_) return;
    joined_ = true;
    static const runtime_internal::wait_reason why{"fiber_group::join"};
    if (live_.fetch_sub(1, std::memory_order_acq_rel) != 1) all_ended_.wait(why, runtime_internal::cancellable::no);
  }

  [[nodiscard]] int ran() const { return ran_.load(); }
  [[nodiscard]] int cancelled() const { return cancelled_.load(); }
  [[nodiscard]] int discarded(runtime_internal::discard_cause why) const {
    return why == runtime_internal::discard_cause::no_stack ? no_stack_.load() : never_started_.load();
  }
  [[nodiscard]] int failed() const { return failed_.load(); }

 private:
  template <class F>
  struct job : runtime_internal::fiber_record {
    F f;
    fiber_group& owner;
    job(F&& work, fiber_group& c) : f(std::move(work)), owner(c) {}

    static runtime_internal::fiber_end run(runtime_internal::fiber_record& self) noexcept {
      auto& j = static_cast<job&>(self);
      try {
        j.f();
        j.owner.ran_.fetch_add(1, std::memory_order_relaxed);
      } catch (const ramie::cancelled&) {
        j.owner.cancelled_.fetch_add(1, std::memory_order_relaxed);
        return runtime_internal::fiber_end::cancelled;
      } catch (...) {
        j.owner.failed_.fetch_add(1, std::memory_order_relaxed);
      }
      return runtime_internal::fiber_end::done;
    }
    static void discard(runtime_internal::fiber_record& self, runtime_internal::discard_cause why) noexcept {
      fiber_group& c = static_cast<job&>(self).owner;
      (why == runtime_internal::discard_cause::no_stack ? c.no_stack_ : c.never_started_).fetch_add(1, std::memory_order_relaxed);
    }
    static void retire(runtime_internal::fiber_record& self, runtime_internal::cancel_scope&, const runtime_internal::cancel_scope*) noexcept {
      fiber_group& c = static_cast<job&>(self).owner;
      delete static_cast<job*>(&self);
      if (c.live_.fetch_sub(1, std::memory_order_acq_rel) == 1) c.all_ended_.open();
    }
    static constexpr runtime_internal::fiber_ops ops{run, discard, retire};
  };

  runtime_internal::cancel_scope& scope_;
  std::atomic<int> live_{1};
  std::atomic<int> ran_{0}, cancelled_{0}, never_started_{0}, no_stack_{0}, failed_{0};
  bool joined_ = false;
  runtime_internal::gate all_ended_;
};

// One worker means one: a machine that is slow enough for it to look stalled must not change what a test sees.
inline ramie::options with_workers(unsigned n) {
  ramie::options o;
  o.workers = n;
  o.elastic = n > 1;
  return o;
}
inline ramie::options one_elastic_worker() {
  ramie::options o;
  o.workers = 1;
  return o;
}

// What happened, in order. Fibers are like threads, to us and to ThreadSanitizer: they share it by a lock.
template <class T>
class journal {
 public:
  void add(T entry) {
    std::lock_guard hold(mutex_);
    entries_.push_back(std::move(entry));
  }
  [[nodiscard]] std::vector<T> entries() {
    std::lock_guard hold(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::vector<T> entries_;
};

// A door a fiber waits at until somebody opens it; for tests that need a fiber parked.
inline void wait_at(runtime_internal::gate& g) {
  static const runtime_internal::wait_reason why{"test gate"};
  g.wait(why);
}

// Spins until the condition holds. No timing: a condition that never holds is a hang, and the runner's
// time limit reports it.
template <class Condition>
void until(Condition holds) {
  while (!holds()) std::this_thread::yield();
}

}  // namespace test
