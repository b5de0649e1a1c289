// SPDX-License-Identifier: BSL-1.0
// The two threads that sleep until they are needed: the monitor of the elastic pool, and the keeper of the time. And who
// else keeps the time: deadlines are by the model's clock here, so that being late is something that can be required
// not to happen, in every schedule.
#include <chrono>
#include <memory>

#include <ramie/channel.hpp>
#include <ramie/nursery.hpp>
#include <ramie/options.hpp>
#include <ramie/runtime.hpp>
#include <ramie/this_fiber.hpp>
#include <ramie/time.hpp>
#include <ramie/timeout.hpp>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/constants.hpp>
#include <ramie/runtime/deadline.hpp>
#include <ramie/runtime/wait.hpp>
#include "runtime/src/time/timekeeper.hpp"

#include "scenarios.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using ramie::platform::time_point;

time_point model_time() {
  return ramie::platform::steady_clock::instance().now();
}
void require_in_time(time_point due, std::chrono::nanoseconds tolerance) {
  require(model_time() >= due, "woken before the time");
  require(model_time() < due + tolerance, "woken late");
}

// A fiber, or a thread, that holds its thread until it may go on. Nobody tells it: it looks.
class signal_flag {
 public:
  void raise() { raised_.store(true); }
  [[nodiscard]] bool is_raised() const { return raised_.load(); }
  void spin() {
    while (!is_raised()) ramie::platform::yield_thread();
  }

 private:
  ramie::platform::atomic<bool> raised_{false};
};

// Runs `body` as the root fiber of a runtime that goes by the machine's clock, the model's.
class program_in_time final : public scenario {
 public:
  program_in_time(void (*body)(), unsigned workers, bool elastic) : body_(body), workers_(workers), elastic_(elastic) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
      ramie::options o;
      o.workers = workers_;
      o.elastic = elastic_;
      o.root_stack_size = 64 * 1024;
      ramie::run(o, body_);
      ended_ = true;
    }};
  }
  void check() override { require(ended_, "the program did not end"); }

 private:
  void (*const body_)();
  const unsigned workers_;
  const bool elastic_;
  bool ended_ = false;
};

// The monitor ticks, since something was queued once, and is about to sleep when something is queued again, behind a
// fiber that holds its worker. E4.
void monitor_falls_asleep() {
  {
    ramie::nursery before;
    before.spawn([] {});
  }
  for (int i = 0; i < 2; ++i) ramie::platform::yield_thread();  // time passes
  signal_flag done;
  ramie::nursery n;
  n.spawn([&done] { done.raise(); });
  done.spin();
  n.join();
}

// Two fibers are woken by a plain thread while all sleep. The worker that takes both runs one, which holds it until the
// other has run. The monitor may have looked before that worker was active, and sleep again: so the worker tells it that
// it leaves something queued.
void monitor_told_by_the_woken() {
  signal_flag done;
  ramie::channel<int> bell(0);
  ramie::nursery n;
  n.spawn([&done, bell]() mutable {
    (void)bell.recv();
    done.raise();
  });
  n.spawn([&done, bell]() mutable {
    (void)bell.recv();
    done.spin();
  });
  ramie::platform::thread outside([bell]() mutable {
    ramie::platform::yield_thread();
    bell.close();
    ramie::platform::atomic<int> steps{0};
    while (steps.fetch_add(1) < 20) {
    }  // in which the monitor looks, though the worker has not got any further
  });
  n.join();
  outside.join();
}

// Sleepers, some of whom are due while nobody else is awake, on whichever worker they were. U6, U7.
void sleepers_in_time() {
  const auto sleep = [](std::chrono::nanoseconds length) {
    const auto due = model_time() + length;
    ramie::sleep_until(due);
    require_in_time(due, keeper_grace);
  };
  ramie::nursery n;
  n.spawn([sleep] {
    sleep(60ms);
    sleep(3ms);
  });
  sleep(15ms);
  sleep(15ms);
  n.join();
}

// A fiber sleeps that was last on a worker which was added for it, and which retires meanwhile: its deadline is in the
// shard of a slot without a thread.
void sleeper_of_a_retired_worker() {
  signal_flag begun;
  ramie::nursery n;
  n.spawn([&begun] {
    begun.raise();
    const auto due = model_time() + 60ms;
    ramie::sleep_until(due);
    require_in_time(due, keeper_grace);
  });
  begun.spin();
  n.join();
}

// The only worker is held until a sleeper has woken: the keeper makes it runnable, as late as its grace, and the
// monitor, which looks when something is queued, adds a worker for it. U8.
void sleeper_behind_a_hog() {
  signal_flag woken;
  ramie::nursery n;
  n.spawn([&woken] {
    const auto due = model_time() + 20ms;
    ramie::sleep_until(due);
    require_in_time(due, 2 * keeper_grace);
    woken.raise();
  });
  ramie::yield();
  woken.spin();
  n.join();
}

// Two fibers keep the only worker busy, which never comes to its loop, while a third sleeps: longer than it takes until
// the worker looks at the time for the first time, so that it has to look again. U6.
void sleeper_beside_the_busy() {
  signal_flag woken;
  ramie::nursery n;
  for (int i = 0; i < 2; ++i) {
    n.spawn([&woken] {
      while (!woken.is_raised()) ramie::yield();
    });
  }
  n.spawn([&woken] {
    const auto due = model_time() + 1ms;
    ramie::sleep_until(due);
    require_in_time(due, 2ms);
    woken.raise();
  });
  n.join();
}

// The timer sleeper finds that a scope's time has come, and leaves the rest to the keeper, which has to be told. U8.
void timeouts_in_time() {
  for (const auto length : {std::chrono::nanoseconds(15ms), std::chrono::nanoseconds(3ms)}) {
    const auto due = model_time() + length;
    require(!ramie::with_timeout(length, [] { ramie::sleep_for(1h); }), "a timeout that did not come");
    require_in_time(due, keeper_grace / 2);
  }
}

// Two deadlines of plain threads, the later of which the keeper may know first: it sleeps until the earlier one,
// however little earlier that is. These have no grace. U8.
class keeper_falls_asleep final : public scenario {
 public:
  keeper_falls_asleep(std::chrono::nanoseconds later, std::chrono::nanoseconds earlier)
      : later_(later), earlier_(earlier) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              wait_until(later_);
              left_.fetch_sub(1);
            },
            [this] {
              wait_until(earlier_);
              left_.fetch_sub(1);
            },
            [this] {
              until([this] { return left_.load() == 0; });
              delete keeper_;  // waits for its thread; after a failure, when nobody goes on, it stays
            }};
  }
  void check() override { require(left_.load() == 0, "somebody was not woken"); }

 private:
  struct timer final : waitable {
    timekeeper& keeper;
    wake_up entry;
    timer(timekeeper& k, time_point when) : keeper(k), entry(when) {}
    bool try_complete(waiter&) override { return entry.fired.load(std::memory_order_acquire); }
    bool publish(waiter& node) override {
      keeper.set(entry, waker(node), keeper.now());
      return true;
    }
    void unpublish(waiter&) noexcept override {}
  };
  void wait_until(time_point when) {
    static const wait_reason for_its_time{"deadline of a scenario"};
    keeper_->prepare();
    timer t(*keeper_, when);
    waiter node;
    (void)fiber_wait(t, node, for_its_time);
    require_in_time(when, keeper_grace / 4);
  }

  const time_point later_, earlier_;
  timekeeper* const keeper_ = new timekeeper(nullptr, 1);
  model_atomic<int> left_{2};
};

entry on(const char* name, void (*body)(), unsigned workers, bool elastic) {
  return {name, [=] { return std::make_unique<program_in_time>(body, workers, elastic); }, 2, 0, 0, 1'000};
}

}  // namespace

list keeper_scenarios() {
  return {
      on("monitor_falls_asleep", monitor_falls_asleep, 1, true),
      on("monitor_told_by_the_woken", monitor_told_by_the_woken, 1, true),
      on("sleepers_in_time", sleepers_in_time, 1, false),
      on("sleepers_in_time_of_two_workers", sleepers_in_time, 2, false),
      on("sleeper_of_a_retired_worker", sleeper_of_a_retired_worker, 1, true),
      on("sleeper_behind_a_hog", sleeper_behind_a_hog, 1, true),
      on("sleeper_beside_the_busy", sleeper_beside_the_busy, 1, false),
      on("timeouts_in_time", timeouts_in_time, 1, false),
      {"keeper_falls_asleep", [] { return std::make_unique<keeper_falls_asleep>(2h, 1h); }, 2, 0, 0, 4'000},
      // So near that nobody has to look before for the wheel's sake.
      {"keeper_falls_asleep_briefly", [] { return std::make_unique<keeper_falls_asleep>(60ms, 55ms); }, 2, 0, 0, 4'000},
  };
}

}  // namespace explore
