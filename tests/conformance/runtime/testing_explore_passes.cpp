// SPDX-License-Identifier: BSL-1.0
// explore: what it must leave alone, and races of ramie's own that it once found.
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/reports.hpp>
#include <support/exploring.hpp>
#include <support/test.hpp>

namespace conformance_testing_explore_passes {

using namespace std::chrono_literals;
using namespace ramie::testing;
using test::asking;

using program = std::function<void()>;

void must_pass(const program& correct, unsigned schedules = static_cast<unsigned>(test::scaled(300, 40))) {
  for (const auto how : {strategy::random_walk, strategy::pct}) {
    const auto report = explore(asking(schedules, how), correct);
    INFO(report.failure << " seed " << report.seed);
    CHECK_FALSE(report.failed);
    CHECK(report.schedules == schedules);
    CHECK(report.failure == "");
  }
}

// What fibers share here is shared by threads, too, as far as ThreadSanitizer is concerned: hence atomics, used so that
// they protect nothing.
using shared_int = std::atomic<int>;

TEST_CASE("explore raises no false alarm", "[conformance][testing][explore]") {
  must_pass([] {  // a mutex of a channel
    shared_int balance{0};
    ramie::channel<int> lock(1);
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] {
        lock.send(1);
        const int before = balance.load();
        ramie::yield();
        balance.store(before + 1);
        (void)lock.recv();
      });
    }
    n.join();
    check(balance.load() == 3);
  });
  must_pass([] {  // a pipeline that is closed
    ramie::channel<int> a(0), b(2);
    ramie::nursery n;
    n.spawn([=]() mutable {
      for (int i = 1; i <= 5; ++i) a.send(i);
      a.close();
    });
    n.spawn([=]() mutable {
      for (int v : a) b.send(v * v);
      b.close();
    });
    int sum = 0;
    for (int v : b) sum += v;
    n.join();
    check(sum == 55);
  });
  must_pass([] {  // waiting in a loop of yields for somebody of low priority
    shared_int there{0};
    ramie::nursery n;
    n.spawn([&] { there = 1; });
    while (there.load() == 0) ramie::yield();
    n.join();
  });
  must_pass([] {  // two that keep each other busy until a third comes
    ramie::channel<int> ping(0), pong(0);
    shared_int stop{0};
    ramie::nursery n;
    n.spawn([&] {
      while (ping.recv()) pong.send(1);
    });
    n.spawn([&] {
      while (stop.load() == 0) {
        ping.send(1);
        (void)pong.recv();
      }
      ping.close();
    });
    n.spawn([&] { stop = 1; });
    n.join();
  });
}

TEST_CASE("cancellation and failures that are handled are no failure", "[conformance][testing][explore]") {
  must_pass(
      [] {
        ramie::channel<int> never(0);
        bool caught = false;
        try {
          ramie::nursery n;
          n.spawn([=]() mutable { (void)never.recv(); });
          n.spawn([] { throw std::runtime_error("expected"); });
          n.join();
        } catch (const std::runtime_error&) {
          caught = true;
        }
        check(caught);
        ramie::nursery n;
        n.spawn([=]() mutable { (void)never.recv(); });
        n.cancel("enough");
        n.join();
      },
      100);
}

TEST_CASE("time under explore passes by itself", "[conformance][testing][explore]") {
  must_pass(
      [] {
        const auto began = ramie::now();
        ramie::channel<int> c(0);
        ramie::nursery n;
        n.spawn([=]() mutable {
          ramie::channel<int> never(0);
          check(!ramie::with_timeout(1h, [&] { (void)never.recv(); }));
          c.send(1);
        });
        check(c.recv().has_value());
        check(ramie::now() - began == 1h);
        n.join();
      },
      50);
}

TEST_CASE("wait_all_blocked under explore, and before its clock", "[conformance][testing][explore]") {
  must_pass(
      [] {
        shared_int waiting{0};
        ramie::channel<int> never(0);
        ramie::nursery n;
        for (int i = 0; i < 3; ++i) {
          n.spawn([&] {
            ramie::yield();
            ++waiting;
            (void)never.recv_for(10s);
          });
        }
        const auto began = ramie::now();
        wait_all_blocked();
        check(waiting.load() == 3);
        check(ramie::now() == began);
        n.join();
      },
      100);
}

// The getter comes from outside the nursery's tree: it may be woken and not have run yet when the nursery ends.
void getter_outlives_nursery() {
  ramie::nursery outer;
  std::optional<ramie::task<int>> task;
  ramie::channel<int> ready(1);
  outer.spawn([&task, ready]() mutable {
    (void)ready.recv();
    try {
      (void)task->get();
    } catch (const ramie::usage_error&) {  // it came too late
    }
  });
  outer.spawn([&task, ready]() mutable {
    ramie::nursery inner;
    ramie::channel<int> hold(0);
    task.emplace(inner.spawn([hold]() mutable { return hold.recv().value_or(0); }));
    (void)ready.send(1);
    for (int i = 0; i < 3; ++i) ramie::yield();
    (void)hold.send(1);
    inner.join();
  });
  outer.join();
}

TEST_CASE("a nursery that ends lets those pass who still look at its tasks", "[conformance][testing][explore]") {
  const auto found = explore(asking(50), getter_outlives_nursery);
  INFO(found.failure);
  CHECK(!found.failed);
  ramie::run(test::with_workers(1), getter_outlives_nursery);  // hung, as long as it kept the worker to itself
}

TEST_CASE("a stop callback may come to another scope that is being stopped", "[conformance][testing][explore]") {
  const auto found = explore(asking(100), [] {
    ramie::channel<int> told(4);
    ramie::nursery listener;
    listener.spawn([told]() mutable {
      while (told.recv()) {
      }
    });
    {
      ramie::nursery outer;
      for (int i = 0; i < 2; ++i) {
        outer.spawn([told]() mutable {
          ramie::nursery n;
          const auto tell = [told]() mutable { (void)told.try_send(1); };
          std::stop_callback callback(n.get_stop_token(), tell);
          (void)ramie::channel<int>(0).recv();
        });
      }
      for (int i = 0; i < 6; ++i) ramie::yield();
      outer.cancel("enough");
      outer.join();
    }
    told.close();
    listener.join();
  });
  INFO(found.failure);
  CHECK(!found.failed);
}

}  // namespace conformance_testing_explore_passes
