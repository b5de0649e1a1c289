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
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/this_fiber.hpp>
#include <sched/scheduler.hpp>

namespace test {

namespace detail = ramie::detail;

class crew {
 public:
  explicit crew(detail::cancel_scope& scope) : scope_(scope) {}
  explicit crew(ramie::runtime& rt) : crew(rt.internals().root_scope) {}
  ~crew() { join(); }

  template <class F>
  void spawn(F f, std::size_t stack = 0, ramie::source_location site = ramie::source_location::current()) {
    auto work = std::make_unique<job<F>>(std::move(f), *this);
    live_.fetch_add(1, std::memory_order_relaxed);
    try {
      detail::spawn(job<F>::ops, *work, scope_, stack, site);
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
    static const detail::wait_reason why{"crew::join"};
    if (live_.fetch_sub(1, std::memory_order_acq_rel) != 1) all_ended_.wait(why, detail::cancellable::no);
  }

  [[nodiscard]] int ran() const { return ran_.load(); }
  [[nodiscard]] int cancelled() const { return cancelled_.load(); }
  [[nodiscard]] int discarded(detail::discard_cause why) const {
    return why == detail::discard_cause::no_stack ? no_stack_.load() : never_started_.load();
  }
  [[nodiscard]] int failed() const { return failed_.load(); }

 private:
  template <class F>
  struct job : detail::fiber_record {
    F f;
    crew& owner;
    job(F&& work, crew& c) : f(std::move(work)), owner(c) {}

    static detail::fiber_end run(detail::fiber_record& self) noexcept {
      auto& j = static_cast<job&>(self);
      try {
        j.f();
        j.owner.ran_.fetch_add(1, std::memory_order_relaxed);
      } catch (const ramie::cancelled&) {
        j.owner.cancelled_.fetch_add(1, std::memory_order_relaxed);
        return detail::fiber_end::cancelled;
      } catch (...) {
        j.owner.failed_.fetch_add(1, std::memory_order_relaxed);
      }
      return detail::fiber_end::done;
    }
    static void discard(detail::fiber_record& self, detail::discard_cause why) noexcept {
      crew& c = static_cast<job&>(self).owner;
      (why == detail::discard_cause::no_stack ? c.no_stack_ : c.never_started_).fetch_add(1, std::memory_order_relaxed);
    }
    static void retire(detail::fiber_record& self, detail::cancel_scope&, const detail::cancel_scope*) noexcept {
      crew& c = static_cast<job&>(self).owner;
      delete static_cast<job*>(&self);
      if (c.live_.fetch_sub(1, std::memory_order_acq_rel) == 1) c.all_ended_.open();
    }
    static constexpr detail::fiber_ops ops{run, discard, retire};
  };

  detail::cancel_scope& scope_;
  std::atomic<int> live_{1};
  std::atomic<int> ran_{0}, cancelled_{0}, never_started_{0}, no_stack_{0}, failed_{0};
  bool joined_ = false;
  detail::gate all_ended_;
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
inline void wait_at(detail::gate& g) {
  static const detail::wait_reason why{"test gate"};
  g.wait(why);
}

// Spins until the condition holds. No timing: a condition that never holds is a hang, and the runner's
// time limit reports it.
template <class Condition>
void until(Condition holds) {
  while (!holds()) std::this_thread::yield();
}

}  // namespace test
