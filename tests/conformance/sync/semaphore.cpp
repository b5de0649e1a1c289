// SPDX-License-Identifier: BSL-1.0
// semaphore: permits are counted exactly and handed out in order.
#include <atomic>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_semaphore {

using namespace std::chrono_literals;
using ramie::nursery;
using ramie::semaphore;
using namespace test;

constinit semaphore constant_initialised(1);

TEST_CASE("no more are inside than there are permits", "[conformance][sync][semaphore]") {
  const int times = test::scaled(2'000, 200);
  for_all_workers([times](unsigned workers) {
    semaphore s(3);
    std::atomic<int> inside{0}, most{0};
    together(workers, 8, 2, [&](int who) {
      const unsigned wanted = 1 + static_cast<unsigned>(who) % 3;
      for (int i = 0; i < times; ++i) {
        s.acquire(wanted);
        const int now = inside.fetch_add(static_cast<int>(wanted)) + static_cast<int>(wanted);
        if (now > most) most = now;
        if (i % 4 == 0) ramie::yield();
        inside.fetch_sub(static_cast<int>(wanted));
        s.release(wanted);
      }
    });
    CHECK(most <= 3);
    CHECK(s.available() == 3);
  });
}

TEST_CASE("permits are taken, refused and given back", "[conformance][sync][semaphore]") {
  as_thread_and_fiber([](findings& found) {
    semaphore s(2);
    s.acquire();
    EXPECT(found, s.try_acquire(), !s.try_acquire(), s.available() == 0);
    found.expect(!s.try_acquire_for(0s));
    s.release(5);
    EXPECT(found, !s.try_acquire(6), s.try_acquire_for(1h, 5));
    s.acquire(0);
    constant_initialised.acquire();
    constant_initialised.release();
  });
}

TEST_CASE("permits go to those who wait in the order they came, and slip past nobody",
          "[conformance][sync][semaphore]") {
  as_fiber([](findings& found, auto&) {
    semaphore s(0);
    std::vector<int> order;
    nursery n;
    for (const int wanted : {3, 1, 2}) {
      n.spawn([&, wanted] {
        s.acquire(static_cast<unsigned>(wanted));
        order.push_back(wanted);
      });
      ramie::yield();
    }
    s.release(2);
    ramie::yield();
    EXPECT(found, order.empty(), s.available() == 2, !s.try_acquire());  // the first wants three
    s.release(2);
    ramie::yield();
    EXPECT(found, order.size() == 2, order[0] + order[1] == 4, s.available() == 0);  // both at once
    s.release(3);
    n.join();
    EXPECT(found, order.size() == 3, order[2] == 2, s.try_acquire(), s.available() == 0);
  });
}

TEST_CASE("a waiter that goes leaves its permits, and its place, to the others",
          "[conformance][sync][semaphore][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    semaphore s(0);
    fate cut = fate::running, late = fate::running, third = fate::running;
    nursery n;
    nursery goes;
    let_wait(goes, cut, [&] { return s.acquire(5), true; });
    let_wait(n, late, [&] { return s.try_acquire_for(1s, 4); });
    let_wait(n, third, [&] { return s.acquire(2), true; });
    s.release(2);
    goes.cancel();
    goes.join();
    ramie::yield();
    EXPECT(found, cut == fate::cut_short, late == fate::running, third == fate::running);
    clock.advance(2s);
    n.join();
    EXPECT(found, late == fate::failed, third == fate::done, s.available() == 0);
  });
}

TEST_CASE("who was handed a permit is neither cancelled nor too late", "[conformance][sync][semaphore][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    semaphore s(0);
    fate cancelled_late = fate::running, timed = fate::running;
    nursery n;
    let_wait(n, cancelled_late, [&] { return s.acquire(), true; });
    let_wait(n, timed, [&] { return s.try_acquire_for(1s); });
    s.release(2);
    clock.advance(2s);
    n.cancel();
    n.join();
    EXPECT(found, cancelled_late == fate::done, timed == fate::done, s.available() == 0);
  });
}

TEST_CASE("no permit is lost while waiters are cancelled", "[conformance][sync][semaphore][cancel]") {
  const int rounds = test::scaled(300, 30);
  for_all_workers([rounds](unsigned workers) {
    semaphore s(0);
    std::atomic<std::uint64_t> taken{0};
    ramie::run(test::with_workers(workers), [&] {
      for (int i = 0; i < rounds; ++i) {
        nursery goes;
        for (int k = 0; k < 4; ++k) {
          goes.spawn([&] {
            s.acquire();
            ++taken;
          });
        }
        if (i % 2 == 0) ramie::yield();
        s.release(3);
        goes.cancel();
        goes.join();
      }
    });
    CHECK(taken + s.available() == 3u * static_cast<unsigned>(rounds));
  });
}

}  // namespace conformance_sync_semaphore
