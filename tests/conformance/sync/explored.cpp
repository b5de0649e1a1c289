// SPDX-License-Identifier: BSL-1.0
// Small programs of locks and events over many schedules: nobody is left waiting, whoever is cancelled when.
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/schedules.hpp>
#include <support/test.hpp>

namespace conformance_sync_explored {

using namespace std::chrono_literals;
using ramie::nursery;
using ramie::testing::check;
using namespace test;

// One of those who wait is cancelled at any time; what it could have had is there for the others.
TEST_CASE("no schedule loses a lock, a permit or a notification to a cancelled waiter",
          "[conformance][sync][explore]") {
  over_many_schedules([] {
    ramie::mutex m;
    int inside = 0, done = 0;
    nursery stays;
    const auto use = [&] {
      std::lock_guard hold(m);
      const presence here(inside);
      check(inside == 1, "two are inside");
      ramie::yield();
    };
    for (int i = 0; i < 2; ++i) stays.spawn([&] { use(), ++done; });
    {
      nursery goes;
      goes.spawn(use);
      ramie::yield();
      goes.cancel();
      goes.join();
    }
    stays.join();
    check(done == 2 && is_free(m), "it is locked for ever");
  });
  over_many_schedules([] {
    ramie::semaphore s(0);
    ramie::notify bell;
    bool had = false, told = false;
    nursery stays;
    stays.spawn([&] { s.acquire(2); });
    stays.spawn([&] { bell.wait(); });
    {
      nursery goes;
      goes.spawn([&] { s.acquire(), had = true; });
      goes.spawn([&] { bell.wait(), told = true; });
      stays.spawn([&] { s.release(2); });
      stays.spawn([&] { bell.notify_one(); });
      ramie::yield();
      goes.cancel();
      goes.join();
    }
    if (had) s.release();
    if (told) bell.notify_one();
    stays.join();
    check(s.available() == 0 && !bell.try_wait(), "something is left");
  });
  over_many_schedules([] {
    ramie::mutex m;
    ramie::condition_variable c;
    int tokens = 0;
    nursery stays;
    const auto take = [&] {
      std::unique_lock lock(m);
      c.wait(lock, [&] { return tokens > 0; });
      --tokens;
    };
    const auto put = [&] {
      std::lock_guard hold(m);
      ++tokens;
      c.notify_one();
    };
    stays.spawn(take);
    {
      bool taken = false;
      nursery goes;
      goes.spawn([&] { take(), taken = true; });
      stays.spawn(put);
      ramie::yield();
      goes.cancel();
      goes.join();
      if (taken) stays.spawn(put);
    }
    stays.join();
    check(tokens == 0, "a token is left");
  });
}

TEST_CASE("no schedule leaves a party of a shared mutex, a barrier or a once behind", "[conformance][sync][explore]") {
  over_many_schedules([] {
    ramie::shared_mutex m;
    int readers = 0, writers = 0;
    nursery n;
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        std::shared_lock hold(m);
        check(++readers > 0 && writers == 0, "beside a writer");
        ramie::yield();
        --readers;
      });
      n.spawn([&] {
        if (!m.try_lock_for(1ms)) return;
        std::lock_guard hold(m, std::adopt_lock);
        check(++writers == 1 && readers == 0, "beside others");
        ramie::yield();
        --writers;
      });
    }
    n.join();
    check(is_free(m), "it is locked for ever");
  });
  over_many_schedules([] {
    ramie::barrier b(3);
    int leaders = 0;
    nursery n;
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        for (int round = 0; round < 2; ++round) leaders += b.wait();
      });
    }
    leaders += b.wait();
    b.arrive_and_drop();
    n.join();
    check(leaders == 2 && b.generation() == 2, "not one leader each");
  });
  over_many_schedules([] {
    ramie::once_cell<int> cell;
    int tries = 0, failures = 0;
    nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] {
        try {
          check(cell.get_or_init([&] {
            const int mine = ++tries;
            ramie::yield();
            if (mine == 1) throw std::invalid_argument("the first fails");
            return mine;
          }) == 2,
                "made twice");
        } catch (const std::invalid_argument&) {
          ++failures;
        }
      });
    }
    n.join();
    check(tries == 2 && failures == 1, "tried too often");
  });
}

}  // namespace conformance_sync_explored
