// SPDX-License-Identifier: BSL-1.0
// The threads of blocking(): how many, in which order, for how long, and what happens when there are none.
#include <sched.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/src/blocking/pool.hpp"
#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/faults.hpp>
#include <support/findings.hpp>
#include <support/held_calls.hpp>
#include <support/sleeping.hpp>
#include <support/threadless_runtime.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_blocking_pool {

using namespace std::chrono_literals;
using ramie::blocking;
using ramie::blocking_stats;
using ramie::detach_on_cancel;
using test::findings;
using test::held_calls;
using test::with_workers;
using test::yield_until;
namespace faults = ramie::platform::faults;
using ramie::platform::fault;

TEST_CASE("no more threads than the limit, and the others wait in line", "[conformance][blocking]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto o = with_workers(workers);
    o.max_blocking_threads = 2;
    ramie::runtime rt(o);
    held_calls held;
    findings found;
    test::journal<int> order;
    rt.run([&] {
      ramie::nursery n;
      const auto hold_one = [&](int i) {
        n.spawn([&, i] {
          blocking([&] {
            order.add(i);
            held.call();
          });
        });
      };
      for (const int i : {0, 1}) {
        hold_one(i);
        yield_until([&] { return held.inside() == i + 1; });
      }
      for (const int i : {2, 3, 4}) {
        hold_one(i);
        yield_until([&] { return rt.stats().blocking.pending == static_cast<unsigned>(i - 1); });
      }
      const blocking_stats full = rt.stats().blocking;
      EXPECT(found, full.threads == 2, full.idle == 0, full.pending == 3, full.jobs == 2, full.peak == 2);
      for (unsigned left = 3; left-- > 0;) {  // one after the other, so that they begin in order
        held.let_go(1);
        yield_until([&] { return rt.stats().blocking.pending == left && held.inside() == 2; });
      }
      held.let_go(2);
      n.join();
    });
    CHECK(found.wrong() == "");
    CHECK(order.entries() == std::vector<int>{0, 1, 2, 3, 4});
    const blocking_stats after = rt.stats().blocking;
    CHECK(after.threads == 2);
    CHECK(after.idle == 2);
    CHECK(after.pending == 0);
    CHECK(after.peak == 2);
    CHECK(after.jobs == 5);
  }
}

TEST_CASE("a thread that is free is used again", "[conformance][blocking]") {
  ramie::runtime rt(with_workers(2));
  CHECK(rt.stats().blocking.threads == 0);  // none before the first call
  rt.run([] {
    for (int i = 0; i < 200; ++i) blocking([] {});
  });
  const auto seen = rt.stats().blocking;
  CHECK(seen.jobs == 200);
  CHECK(seen.peak == 1);
  CHECK(seen.threads == 1);
  CHECK(seen.idle == 1);
}

TEST_CASE("a thread that became idle last is used first", "[conformance][blocking]") {
  ramie::runtime rt(with_workers(1));
  findings found;
  rt.run([&] {
    held_calls first, second;
    std::thread::id last;
    ramie::nursery n;
    n.spawn([&] { blocking([&] { first.call(); }); });
    auto other = n.spawn([&] {
      return blocking([&] {
        second.call();
        return std::this_thread::get_id();
      });
    });
    yield_until([&] { return first.inside() == 1 && second.inside() == 1; });
    first.let_go(1);
    yield_until([&] { return rt.stats().blocking.idle == 1; });
    second.let_go(1);
    last = other.get();
    n.join();
    for (int i = 0; i < 5; ++i) EXPECT(found, blocking([] { return std::this_thread::get_id(); }) == last);
  });
  CHECK(found.wrong() == "");
}

TEST_CASE("a thread that has been idle for its time leaves, and is joined", "[conformance][blocking]") {
  const long threads = test::faulty::entries_of("/proc/self/task");
  {
    auto o = with_workers(2);
    o.blocking_idle_time = 0ns;
    ramie::runtime rt(o);
    rt.run([] {
      ramie::nursery n;
      for (int i = 0; i < 8; ++i) {
        n.spawn([] {
          for (int k = 0; k < test::scaled(100, 20); ++k) blocking([] {});
        });
      }
      n.join();
    });
    test::until([&] { return rt.stats().blocking.threads == 0; });
    CHECK(rt.stats().blocking.idle == 0);
    CHECK(rt.stats().blocking.jobs == static_cast<std::uint64_t>(8 * test::scaled(100, 20)));
    // Workers and perhaps the monitor; of the pool at most the last one, which nobody has joined yet.
    CHECK(test::faulty::threads_are_back_to(threads + 2 + 2 + 1 + 1));
  }
  CHECK(test::faulty::threads_are_back_to(threads));
}

TEST_CASE("the most threads at once are told when they have long left", "[conformance][blocking]") {
  auto o = with_workers(2);
  o.blocking_idle_time = 0ns;
  ramie::runtime rt(o);
  const auto together = [&](int calls) {
    rt.run([&] {
      held_calls held;
      ramie::nursery n;
      for (int i = 0; i < calls; ++i) n.spawn([&] { blocking([&] { held.call(); }); });
      yield_until([&] { return held.inside() == calls; });
      held.let_go(calls);
      n.join();
    });
    test::until([&] { return rt.stats().blocking.threads == 0; });
    return rt.stats().blocking.peak;
  };
  CHECK(together(2) == 2);
  CHECK(together(1) == 2);
  CHECK(together(3) == 3);
  CHECK(together(2) == 3);
  CHECK(rt.stats().blocking.jobs == 8);
}

TEST_CASE("threads without an end to their patience stay", "[conformance][blocking]") {
  auto o = with_workers(1);
  o.blocking_idle_time = std::chrono::nanoseconds::max();
  ramie::runtime rt(o);
  rt.run([] { blocking([] {}); });
  CHECK(rt.stats().blocking.idle == 1);
}

TEST_CASE("shutdown takes out the calls in line and waits for those that run", "[conformance][blocking]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto o = with_workers(workers);
    o.max_blocking_threads = 2;
    auto rt = std::make_unique<ramie::runtime>(o);
    held_calls held;
    std::atomic<int> begun{0}, ended{0}, thrown{0};
    std::thread caller([&] {
      try {
        rt->run([&] {
          ramie::nursery n;
          for (int i = 0; i < 6; ++i) {
            n.spawn([&] {
              blocking([&] {
                ++begun;
                held.call();
                ++ended;
              });
            });
          }
          n.join();
        });
      } catch (const ramie::cancelled& c) {
        thrown += c.kind() == ramie::cancel_kind::shutdown;
      }
    });
    test::until([&] { return held.inside() == 2 && rt->stats().blocking.pending == 4; });
    rt->shutdown();
    test::until([&] { return rt->stats().blocking.pending == 0; });
    CHECK(ended == 0);
    held.let_go(2);
    caller.join();
    rt.reset();
    CHECK(begun == 2);
    CHECK(ended == 2);
    CHECK(thrown == 1);
  }
}

TEST_CASE("a runtime ends with calls left behind, running and idle threads", "[conformance][blocking]") {
  const long threads = test::faulty::entries_of("/proc/self/task");
  std::atomic<int> ended{0};
  {
    held_calls held;
    std::thread opener;
    ramie::runtime rt(with_workers(2));
    rt.run([&] {
      ramie::nursery n;
      for (int i = 0; i < 3; ++i) {
        n.spawn([&] {
          blocking(detach_on_cancel, [&] {
            held.call();
            ++ended;
          });
        });
      }
      yield_until([&] { return held.inside() == 3; });
      blocking([] {});
      n.cancel("leave them");
      n.join();
    });
    CHECK(rt.stats().blocking.threads == 4);
    held.let_go(3);
    // held must outlive them: the runtime is declared after it
  }
  CHECK(ended == 3);
  CHECK(test::faulty::threads_are_back_to(threads));
}

TEST_CASE("without a thread a blocking call is a system_error, with one it waits for it", "[conformance][blocking]") {
  auto o = with_workers(1);
  ramie::runtime rt(o);
  findings found;
  test::census things;
  rt.run([&] {
    faults::plan_for(fault::thread, 1, faults::for_good);
    bool ran = false;
    for (int i = 0; i < 2; ++i) {
      try {
        if (i == 0) {
          blocking([&] { ran = true; });
        } else {
          blocking(detach_on_cancel, [&ran, who = test::citizen(things)] { ran = true; });
        }
        found.expect(false);
      } catch (const std::system_error&) {
      }
    }
    EXPECT(found, !ran, things.alive() == 0);
    const auto none = rt.stats().blocking;
    EXPECT(found, none.threads == 0, none.pending == 0, none.jobs == 0, none.peak == 0);

    faults::plan_for(fault::thread, 0, 0);
    blocking([&] { ran = true; });
    found.expect(ran);
    faults::plan_for(fault::thread, 1, faults::for_good);
    held_calls held;
    ramie::nursery n;
    n.spawn([&] { blocking([&] { held.call(); }); });
    yield_until([&] { return held.inside() == 1; });
    auto late = n.spawn([] { return blocking([] { return 3; }); });
    yield_until([&] { return rt.stats().blocking.pending == 1; });
    held.let_go(1);
    EXPECT(found, late.get() == 3);
    n.join();
    faults::plan_for(fault::thread, 0, 0);
    EXPECT(found, rt.stats().blocking.peak == 1);
  });
  CHECK(found.wrong() == "");
}

// A job like those of blocking().
struct counted_job : ramie::runtime_internal::blocking_job {
  counted_job() : blocking_job([](blocking_job& self) noexcept {
    ++static_cast<counted_job&>(self).runs;
    return true;
  }) {}
  std::atomic<int> runs{0};
};

struct second_caller {
  ramie::runtime_internal::blocking_pool& pool;
  counted_job job;
  std::atomic<int> id{0};
  std::atomic<bool> through{false};
  std::thread thread;

  // Returns when it is queued, or waits for the thread that is just being started.
  void come() {
    thread = std::thread([this] {
      id = test::this_thread_number();
      pool.submit(job);
      through = true;
    });
    test::until([this] { return through || (id != 0 && test::sleeps(id)); });
  }
};

// The limit is one thread, and that one is being started when the second call comes: it may not count on it.
TEST_CASE("a call that comes while a thread is started, in vain, gets one of its own", "[conformance][blocking][faults]") {
  static second_caller* second = nullptr;
  static ramie::runtime_internal::wait_reason why{"test job"};
  const ramie::runtime_internal::idle_set nobody(1);
  ramie::runtime_internal::blocking_pool pool(1, 10s, {nobody, 1});
  second_caller late{pool, {}, {}, {}, {}};
  second = &late;
  counted_job first;
  faults::plan_for(fault::thread, 1, 1);
  faults::told = [](fault at) noexcept {
    if (at == fault::thread && second != nullptr) std::exchange(second, nullptr)->come();
  };
  bool refused = false;
  try {
    pool.submit(first);
  } catch (const std::system_error&) {
    refused = true;
  }
  faults::told = nullptr;
  late.thread.join();
  faults::plan_for(fault::thread, 0, 0);
  CHECK(refused);
  CHECK(first.runs == 0);
  CHECK(pool.read().threads == 1);  // else nobody ever comes for what is queued
  if (pool.read().threads == 0) {
    REQUIRE(pool.take_back(late.job));
  } else {
    late.job.ended.wait(why);
  }
  CHECK(late.job.runs == 1);
}

TEST_CASE("the k-th thread of the pool is refused, and every call is made", "[conformance][blocking][faults]") {
  for (long k = 1; k <= 6; ++k) {
    INFO(k);
    ramie::runtime rt(with_workers(1));
    std::atomic<int> ran{0}, refused{0};
    rt.run([&] {
      faults::plan_for(fault::thread, k, k);
      ramie::nursery n;
      for (int i = 0; i < 6; ++i) {
        n.spawn([&] {
          try {
            blocking([&] { ++ran; });
          } catch (const std::system_error&) {
            ++refused;
          }
        });
      }
      n.join();
      faults::plan_for(fault::thread, 0, 0);
    });
    CHECK(ran + refused == 6);
    CHECK(refused == (k == 1 ? 1 : 0));
    CHECK(rt.stats().blocking.pending == 0);
  }
}

// The calling thread, and the threads it starts, stay on one of its processors.
class on_one_processor {
 public:
  on_one_processor() {
    REQUIRE(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  ~on_one_processor() { (void)sched_setaffinity(0, sizeof before_, &before_); }
  on_one_processor(const on_one_processor&) = delete;
  on_one_processor& operator=(const on_one_processor&) = delete;

 private:
  cpu_set_t before_{};
};

TEST_CASE("nobody spins for a blocking call or for the next one on a machine with one processor",
          "[conformance][blocking]") {
  const on_one_processor machine;
  for (const unsigned workers : {1u, 2u}) {
    ramie::runtime rt(with_workers(workers));
    rt.run([] {
      for (int i = 0; i < 100; ++i) blocking([] {});
    });
    CHECK(rt.stats().total.spins == 0);
    CHECK(rt.stats().blocking.spins == 0);
  }
}

// By hand: a worker without a thread, which sleeps as far as others know, so that one processor is enough.
TEST_CASE("a worker spins for the end of a call that may be short, while it pays", "[conformance][blocking]") {
  using namespace ramie::runtime_internal;
  test::threadless_runtime s;
  worker& w = s.w();
  const auto spins = [&] {
    dispatcher::expect_end_of_call(w, true);
    return test::parts::spin_for_call(s.sched().dispatch, w);
  };
  s.sched().queues.push_from_outside(s.sched().pool, s.fibers[0]);
  s.sched().pool.idle().announce_sleep(0, true);
  CHECK_FALSE(spins());  // it does not count as searching: nobody would rely on it, nor it on them
  CHECK(s.runtime().stats().total.spins == 0);
  w.dispatch.searching.set(true);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    CHECK(spins());
    CHECK(s.runtime().stats().total.spins == i);
  }
  CHECK(s.sched().queues.take_one_injected(w) == &s.fibers[0]);
  CHECK_FALSE(spins());
  CHECK(s.runtime().stats().workers[0].spins == 4);
  CHECK_FALSE(spins());  // it has just not paid
  CHECK(s.runtime().stats().total.spins == 4);
  CHECK_FALSE(spins());
  CHECK(s.runtime().stats().total.spins == 5);
  w.dispatch.searching.set(false);
  REQUIRE(s.sched().pool.idle().claim_parked());
}

// The end of a call wakes nobody who naps.
TEST_CASE("a worker that has begun a call and has nothing else to run does not nap", "[conformance][blocking]") {
  using namespace ramie::runtime_internal;
  test::threadless_runtime s;
  worker& w = s.w();
  const auto naps_after_theft = [&] {
    w.dispatch.stealing.on_steal(128, ramie::platform::steady_clock::instance().now());
    return test::parts::prepare_to_search(s.sched().dispatch, w);
  };
  for (const bool elsewhere : {false, true}) {
    dispatcher::expect_end_of_call(w, elsewhere);
    w.dispatch.stealing.woken();
    CHECK_FALSE(test::parts::should_nap(w));
    CHECK_FALSE(naps_after_theft());
  }
  CHECK(s.runtime().stats().total.naps == 0);
  w.dispatch.call.set(begun_call::none);
  CHECK(test::parts::should_nap(w));
  CHECK(naps_after_theft());
  CHECK(s.runtime().stats().total.naps == 1);
}

TEST_CASE("a runtime without threads for blocking calls is refused", "[conformance][blocking]") {
  ramie::options o;
  o.max_blocking_threads = 0;
  CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
}

}  // namespace conformance_blocking_pool
