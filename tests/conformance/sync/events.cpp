// SPDX-License-Identifier: BSL-1.0
// notify, event, latch, barrier.
#include <atomic>
#include <memory>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_events {

using namespace std::chrono_literals;
using ramie::barrier;
using ramie::event;
using ramie::latch;
using ramie::notify;
using ramie::nursery;
using namespace test;

constinit notify constant_notify;
constinit event constant_event;
constinit latch constant_latch(0);
constinit barrier constant_barrier(1);

// --- notify ---

TEST_CASE("a notification waits for somebody to take it, and several are one", "[conformance][sync][notify]") {
  as_thread_and_fiber([](findings& found) {
    notify n;
    EXPECT(found, !n.try_wait(), !n.wait_for(0s));
    n.notify_one();
    n.notify_one();
    EXPECT(found, n.try_wait(), !n.try_wait());
    n.notify_one();
    n.wait();
    n.notify_all();  // nobody waits: stored for nobody
    found.expect(!n.try_wait());
    constant_notify.notify_one();
    constant_notify.wait();
  });
}

TEST_CASE("notify_one wakes the longest waiter, notify_all everybody who waits", "[conformance][sync][notify]") {
  as_fiber([](findings& found, auto&) {
    notify n;
    std::vector<int> order;
    nursery home;
    for (int i = 0; i < 4; ++i) {
      home.spawn([&, i] {
        n.wait();
        order.push_back(i);
      });
      ramie::yield();
    }
    n.notify_one();
    ramie::yield();
    EXPECT(found, order == std::vector<int>{0}, !n.try_wait());
    n.notify_all();
    home.join();
    EXPECT(found, order.size() == 4, !n.try_wait());
  });
}

TEST_CASE("a waiter that goes takes no notification with it", "[conformance][sync][notify][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    notify n;
    fate cut = fate::running, late = fate::running, notified = fate::running;
    nursery home;
    nursery goes;
    let_wait(home, late, [&] { return n.wait_for(1s); });
    clock.advance(2s);
    n.notify_one();  // it is awake already: stored
    home.join();
    EXPECT(found, late == fate::failed || late == fate::done);
    EXPECT(found, (late == fate::failed) == n.try_wait());
    let_wait(goes, cut, [&] { return n.wait(), true; });
    goes.cancel();
    n.notify_one();
    goes.join();
    EXPECT(found, n.try_wait() == (cut == fate::cut_short));
    nursery last;
    let_wait(last, notified, [&] { return n.wait(), true; });
    n.notify_one();
    last.cancel();
    last.join();
    EXPECT(found, notified == fate::done, !n.try_wait());
  });
}

TEST_CASE("work that is announced by notify_one is found", "[conformance][sync][notify]") {
  const int jobs = test::scaled(5'000, 500);
  for_all_workers([jobs](unsigned workers) {
    notify n;
    std::atomic<int> there{0}, done{0};
    together(workers, 3, 1, [&](int who) {
      if (who != 0) {
        for (int i = 0; i < jobs; ++i) {
          ++there;
          n.notify_one();
          if (i % 8 == 0) ramie::yield();
        }
        return;
      }
      while (done != 3 * jobs) {
        const int taken = there.exchange(0);
        done += taken;
        if (taken == 0) n.wait();
      }
    });
    CHECK(done == 3 * jobs);
  });
}

// --- event ---

TEST_CASE("an event lets all pass while it is set", "[conformance][sync][event]") {
  as_thread_and_fiber([](findings& found) {
    event e;
    EXPECT(found, !e.is_set(), !e.wait_for(0s));
    e.set();
    e.set();
    e.wait();
    EXPECT(found, e.is_set(), e.wait_for(1h));
    e.reset();
    EXPECT(found, !e.is_set(), !e.wait_for(0s));
    constant_event.set();
    constant_event.wait();
  });
}

TEST_CASE("who waits when an event is set goes on, though it is reset at once", "[conformance][sync][event]") {
  for_all_workers([](unsigned workers) {
    event e;
    std::atomic<int> waits{0}, passed{0};
    ramie::run(test::with_workers(workers), [&] {
      for (int round = 0; round < 50; ++round) {
        nursery n;
        for (int i = 0; i < 5; ++i) {
          n.spawn([&] {
            ++waits;
            e.wait();
            ++passed;
          });
        }
        ramie::testing::wait_all_blocked();
        e.set();
        e.reset();
        n.join();
      }
    });
    CHECK(passed == 250);
  });
}

TEST_CASE("a wait for an event is cancelled, or over in time", "[conformance][sync][event][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    event e;
    fate cut = fate::running, late = fate::running;
    nursery n;
    tell_fate(n, late, [&] { return e.wait_for(1s); });
    tell_fate(n, cut, [&] { return e.wait(), true; });
    ramie::yield();
    clock.advance(2s);
    ramie::yield();
    n.cancel();
    n.join();
    EXPECT(found, late == fate::failed, cut == fate::cut_short);
  });
}

// --- latch ---

TEST_CASE("a latch opens at zero, for good", "[conformance][sync][latch]") {
  for_all_workers([](unsigned workers) {
    for (int round = 0; round < 20; ++round) {
      latch l(10);
      int before[10] = {};
      std::atomic<int> wrong{0};
      together(workers, 8, 2, [&](int who) {
        before[who] = 1;
        l.arrive_and_wait();
        for (const int one : before) wrong += one != 1;
      });
      CHECK(wrong == 0);
      CHECK(l.try_wait());
    }
  });
  constant_latch.wait();
}

TEST_CASE("a latch may be destroyed by who has waited for it", "[conformance][sync][latch]") {
  const int rounds = test::scaled(2'000, 200);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> opened{0};
    ramie::run(test::with_workers(workers), [&] {
      for (int i = 0; i < rounds; ++i) {
        auto l = std::make_unique<latch>(2);
        nursery n;
        n.spawn([at = l.get()] { at->count_down(); });
        n.spawn([at = l.get()] { at->count_down(); });
        if (i % 2 == 0) ramie::yield();
        l->wait();
        l.reset();
        ++opened;
        n.join();
      }
    });
    CHECK(opened == rounds);
  }
}

TEST_CASE("a wait for a latch is cancelled, or over in time", "[conformance][sync][latch][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    latch l(2);
    fate cut = fate::running, late = fate::running, arrived = fate::running;
    nursery n;
    tell_fate(n, late, [&] { return l.wait_for(1s); });
    tell_fate(n, cut, [&] { return l.wait(), true; });
    tell_fate(n, arrived, [&] { return l.arrive_and_wait(), true; });
    ramie::yield();
    clock.advance(2s);
    ramie::yield();
    n.cancel();
    n.join();
    EXPECT(found, late == fate::failed, cut == fate::cut_short, arrived == fate::cut_short, !l.try_wait());
    l.count_down();  // the one that was cancelled has counted
    EXPECT(found, l.try_wait(), l.wait_for(0s));
  });
}

// --- barrier ---

TEST_CASE("parties meet at a barrier again and again, and one of them leads", "[conformance][sync][barrier]") {
  const int rounds = test::scaled(500, 50);
  for_all_workers([rounds](unsigned workers) {
    barrier b(7);
    std::vector<std::atomic<int>> came(static_cast<std::size_t>(rounds));
    std::atomic<int> leaders{0}, early{0};
    together(workers, 5, 2, [&](int) {
      for (auto& round : came) {
        ++round;
        if (b.wait()) ++leaders;
        if (round != 7) ++early;
      }
    });
    CHECK(leaders == rounds);
    CHECK(early == 0);
    CHECK(b.generation() == static_cast<unsigned>(rounds));
  });
  CHECK(constant_barrier.wait());
}

TEST_CASE("a party that is cancelled has not come", "[conformance][sync][barrier][cancel]") {
  as_fiber([](findings& found, auto&) {
    barrier b(2);
    fate cut = fate::running, stays = fate::running;
    nursery n;
    nursery goes;
    let_wait(goes, cut, [&] { return b.wait(), true; });
    goes.cancel();
    goes.join();
    let_wait(n, stays, [&] { return !b.wait(); });
    EXPECT(found, cut == fate::cut_short, stays == fate::running, b.generation() == 0);
    found.expect(b.wait());  // the last one leads
    n.join();
    EXPECT(found, stays == fate::done, b.generation() == 1);
  });
}

TEST_CASE("who has met the others is not cancelled away", "[conformance][sync][barrier][cancel]") {
  as_fiber([](findings& found, auto&) {
    barrier b(2);
    fate met = fate::running;
    nursery n;
    let_wait(n, met, [&] { return !b.wait(); });
    found.expect(b.wait());
    n.cancel();
    n.join();
    EXPECT(found, met == fate::done, b.generation() == 1);
  });
}

TEST_CASE("a party that drops out is not waited for, and somebody else leads", "[conformance][sync][barrier]") {
  as_fiber([](findings& found, auto&) {
    barrier b(3);
    int leaders = 0, met = 0;
    nursery n;
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        leaders += b.wait();
        ++met;
        leaders += b.wait();  // now they are two
      });
    }
    ramie::yield();
    EXPECT(found, met == 0);
    b.arrive_and_drop();
    n.join();
    EXPECT(found, met == 2, leaders == 2, b.generation() == 2);
  });
}

}  // namespace conformance_sync_events
