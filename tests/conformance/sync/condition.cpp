// SPDX-License-Identifier: BSL-1.0
// condition_variable: waits under a mutex that end by a notification, a cancellation or in time.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_condition {

using namespace std::chrono_literals;
using ramie::condition_variable;
using ramie::mutex;
using ramie::nursery;
using namespace test;

TEST_CASE("a queue under a mutex with two condition variables loses nothing", "[conformance][sync][condition]") {
  const int each = test::scaled(2'000, 200);
  for_all_workers([each](unsigned workers) {
    mutex m;
    condition_variable not_empty, not_full;
    std::deque<int> queue;
    long sum = 0;
    together(workers, 8, 2, [&](int who) {
      for (int i = 1; i <= each; ++i) {
        std::unique_lock lock(m);
        if (who % 2 == 0) {
          not_full.wait(lock, [&] { return queue.size() < 3; });
          queue.push_back(i);
          not_empty.notify_one();
        } else {
          not_empty.wait(lock, [&] { return !queue.empty(); });
          sum += queue.front();
          queue.pop_front();
          not_full.notify_one();
        }
      }
    });
    CHECK(sum == 5L * each * (each + 1) / 2);
    CHECK(queue.empty());
  });
}

TEST_CASE("notify_all ends every wait, notify_one the longest", "[conformance][sync][condition]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    condition_variable c;
    int permits = 0;
    std::vector<int> order;
    nursery n;
    for (int i = 0; i < 5; ++i) {
      n.spawn([&, i] {
        std::unique_lock lock(m);
        c.wait(lock, [&] { return permits > 0; });
        --permits;
        order.push_back(i);
      });
      ramie::yield();
    }
    c.notify_all();  // for nothing: they wait again, in the same order
    ramie::yield();
    found.expect(order.empty());
    for (int i = 0; i < 2; ++i) {
      permits = 1;
      c.notify_one();
      ramie::yield();
    }
    EXPECT(found, order.size() == 2);
    permits = 3;
    c.notify_all();
    n.join();
    EXPECT(found, order.size() == 5, permits == 0);
  });
}

TEST_CASE("a wait on a condition that is cancelled has the mutex when it throws",
          "[conformance][sync][condition][cancel]") {
  for_all_workers([](unsigned workers) {
    findings found;
    ramie::run(test::with_workers(workers), [&] {
      mutex m;
      condition_variable c;
      std::atomic<bool> waits{false}, held{false};
      nursery n;
      n.spawn([&] {
        std::unique_lock lock(m);
        waits = true;
        try {
          c.wait(lock, [] { return false; });
        } catch (const ramie::cancelled&) {
          held = lock.owns_lock() && !is_free(m);
          throw;
        }
      });
      while (!waits) ramie::yield();
      m.lock();
      n.cancel();
      {
        const ramie::shield our_own;
        for (int i = 0; i < 10; ++i) ramie::yield();
        found.expect(!held);  // it has to wait for the mutex
        m.unlock();
      }
      n.join();
      EXPECT(found, held, is_free(m));
    });
    CHECK(found.wrong() == "");
  });
}

TEST_CASE("a cancelled waiter takes no notification with it", "[conformance][sync][condition][cancel]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    condition_variable c;
    fate first = fate::running, second = fate::running;
    nursery stays;
    nursery goes;
    const auto wait = [&] {
      std::unique_lock lock(m);
      return c.wait(lock), true;
    };
    let_wait(goes, first, wait);
    let_wait(stays, second, wait);
    goes.cancel();
    c.notify_one();  // the first is awake already
    goes.join();
    stays.join();
    EXPECT(found, first == fate::cut_short, second == fate::done);
  });
}

TEST_CASE("who has been notified is not cancelled away", "[conformance][sync][condition][cancel]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    condition_variable c;
    fate notified = fate::running;
    nursery n;
    let_wait(n, notified, [&] {
      std::unique_lock lock(m);
      return c.wait(lock), true;
    });
    c.notify_one();
    n.cancel();
    n.join();
    EXPECT(found, notified == fate::done);
  });
}

TEST_CASE("a wait on a condition with a deadline is over in time, with the mutex",
          "[conformance][sync][condition][deadline]") {
  as_fiber([](findings& found, auto& clock) {
    mutex m;
    condition_variable c;
    bool ready = false;
    fate late = fate::running, in_time = fate::running, plain = fate::running;
    nursery n;
    tell_fate(n, late, [&] {
      std::unique_lock lock(m);
      const bool came = c.wait_for(lock, 1s, [&] { return ready; });
      return found.expect(lock.owns_lock()), came;
    });
    tell_fate(n, plain, [&] {
      std::unique_lock lock(m);
      return c.wait_until(lock, ramie::now() + 1s) == std::cv_status::no_timeout;
    });
    tell_fate(n, in_time, [&] {
      std::unique_lock lock(m);
      return c.wait_for(lock, 1h, [&] { return ready; });
    });
    ramie::yield();
    clock.advance(2s);
    ramie::yield();
    EXPECT(found, late == fate::failed, plain == fate::failed, in_time == fate::running);
    {
      std::lock_guard hold(m);
      ready = true;
    }
    c.notify_all();
    n.join();
    EXPECT(found, in_time == fate::done);
    std::unique_lock lock(m);
    EXPECT(found, !c.wait_for(lock, 0s, [] { return false; }), c.wait_for(lock, 0s, [] { return true; }));
  });
}

}  // namespace conformance_sync_condition
