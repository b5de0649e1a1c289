// SPDX-License-Identifier: BSL-1.0
// mutex: one at a time, whoever they are; waits that end otherwise; fairness.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_sync_mutex {

using namespace std::chrono_literals;
using ramie::mutex;
using ramie::nursery;
using namespace test;

constinit mutex constant_initialised;

TEST_CASE("a mutex is held by one at a time: fibers and threads", "[conformance][sync][mutex]") {
  const int times = test::scaled(4'000, 400);
  for_all_workers([times](unsigned workers) {
    mutex m;
    long counted = 0;
    std::atomic<int> inside{0}, doubles{0};
    together(workers, 8, 2, [&](int who) {
      for (int i = 0; i < times; ++i) {
        std::lock_guard hold(m);
        doubles.fetch_add(inside.exchange(1, std::memory_order_relaxed), std::memory_order_relaxed);
        ++counted;
        if (who % 4 == 0 && i % 8 == 0) ramie::yield();  // with the lock
        inside.store(0, std::memory_order_relaxed);
      }
    });
    CHECK(counted == 10L * times);
    CHECK(doubles == 0);
  });
}

TEST_CASE("sixty-four fibers that lock and unlock count exactly", "[conformance][sync][mutex]") {
  const int times = test::scaled(100'000, 500);
  for (const unsigned workers : {1u, 2u}) {
    mutex m;
    long counted = 0;
    together(workers, 64, 0, [&](int) {
      for (int i = 0; i < times; ++i) {
        std::lock_guard hold(m);
        ++counted;
      }
    });
    CHECK(counted == 64L * times);
  }
}

TEST_CASE("fibers of two runtimes share a mutex", "[conformance][sync][mutex]") {
  const int times = test::scaled(3'000, 300);
  mutex m;
  long counted = 0;
  const auto count = [&](int) {
    for (int i = 0; i < times; ++i) {
      std::lock_guard hold(m);
      ++counted;
      if (i % 16 == 0) ramie::yield();
    }
  };
  std::thread other([&] { together(2, 4, 0, count); });
  together(2, 4, 0, count);
  other.join();
  CHECK(counted == 8L * times);
}

TEST_CASE("the standard's lock wrappers work with a mutex", "[conformance][sync][mutex]") {
  as_thread_and_fiber([](findings& found) {
    mutex a, b;
    {
      std::scoped_lock both(a, b);
      EXPECT(found, !a.try_lock(), !b.try_lock());
    }
    {
      std::unique_lock one(a, std::try_to_lock);
      std::unique_lock late(a, std::defer_lock);
      EXPECT(found, one.owns_lock(), !late.try_lock(), !late.try_lock_for(0ms));
      one.unlock();
      found.expect(late.try_lock_until(std::chrono::steady_clock::now() - 1s));  // too late, but it is free
    }
    std::unique_lock<mutex> timed(b, 1h);
    found.expect(timed.owns_lock());
    std::lock_guard hold(constant_initialised);
  });
}

TEST_CASE("a cancelled wait for a mutex leaves it to the others", "[conformance][sync][mutex][cancel]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    fate hasty = fate::running, patient = fate::running;
    nursery stays;
    nursery goes;
    m.lock();
    let_wait(goes, hasty, [&] { return m.lock(), true; });
    let_wait(stays, patient, [&] { return m.lock(), m.unlock(), true; });
    goes.cancel();
    goes.join();
    EXPECT(found, hasty == fate::cut_short, patient == fate::running);
    m.unlock();
    stays.join();
    EXPECT(found, patient == fate::done, is_free(m));
  });
}

TEST_CASE("a wait for a mutex with a deadline is over in time", "[conformance][sync][mutex][deadline]") {
  as_fiber([](findings& found, auto& clock) {
    mutex m;
    one_is_too_late(found, clock, m, [&](auto limit) { return m.try_lock_for(limit); }, [&] { m.unlock(); });
    EXPECT(found, is_free(m));
  });
}

// The unlock wakes it; the cancellation comes before it runs.
TEST_CASE("who finds the mutex free is not cancelled away", "[conformance][sync][mutex][cancel]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    fate woken = fate::running;
    nursery n;
    m.lock();
    let_wait(n, woken, [&] { return m.lock(), m.unlock(), true; });
    m.unlock();
    n.cancel();
    n.join();
    EXPECT(found, woken == fate::done);
  });
}

// M13: woken, overtaken, cancelled.
TEST_CASE("a woken waiter that is cancelled in vain does not take the wake with it",
          "[conformance][sync][mutex][cancel]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    fate first = fate::running, second = fate::running;
    nursery stays;
    nursery goes;
    m.lock();
    let_wait(goes, first, [&] { return m.lock(), true; });
    let_wait(stays, second, [&] { return m.lock(), m.unlock(), true; });
    m.unlock();
    found.expect(m.try_lock());  // before the one that was woken
    goes.cancel();
    goes.join();
    EXPECT(found, first == fate::cut_short);
    m.unlock();
    stays.join();
    EXPECT(found, second == fate::done);
  });
}

TEST_CASE("who waits for a mutex is not passed over for ever", "[conformance][sync][mutex]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    std::atomic<bool> got{false};
    int turns = 0;
    nursery n;
    m.lock();
    n.spawn([&] {
      m.lock();
      got = true;
      m.unlock();
    });
    ramie::yield();
    while (!got && turns < 1'000) {  // whenever the other one looks, it is locked
      m.unlock();
      m.lock();
      ++turns;
      ramie::yield();
    }
    m.unlock();
    n.join();
    EXPECT(found, got, turns > 1, turns < 16);
  });
}

TEST_CASE("those who wait for a mutex get it in the order they came", "[conformance][sync][mutex]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    std::vector<int> order;
    nursery n;
    m.lock();
    for (int i = 0; i < 10; ++i) {
      n.spawn([&, i] {
        std::lock_guard hold(m);
        order.push_back(i);
      });
      ramie::yield();
    }
    m.unlock();
    n.join();
    EXPECT(found, order == (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  });
}

TEST_CASE("fibers that only lock and unlock let a third have its turn", "[conformance][sync][budget]") {
  as_fiber([](findings& found, auto&) {
    mutex m;
    std::atomic<bool> over{false};
    long turns = 0;
    nursery n;
    n.spawn([&] { over = true; });
    while (!over && turns < 1'000'000) {
      std::lock_guard hold(m);
      ++turns;
    }
    n.join();
    EXPECT(found, turns < 1'000'000);
  });
}

TEST_CASE("a cancelled fiber's lock does not begin, its try_lock does", "[conformance][sync][mutex][cancel]") {
  test::reports about_the_swallowed_cancellation;
  as_fiber([](findings& found, auto&) {
    mutex m;
    bool refused = false, timed_refused = false;
    nursery n;
    n.cancel();
    try {
      m.lock();
    } catch (const ramie::cancelled&) {
      refused = true;
    }
    try {
      (void)m.try_lock_for(1s);
    } catch (const ramie::cancelled&) {
      timed_refused = true;
    }
    EXPECT(found, refused, timed_refused, is_free(m));
    const ramie::shield shielded;
    m.lock();
    m.unlock();
    n.join();
  });
}

TEST_CASE("an uncontended mutex is one word that goes to and fro", "[conformance][sync][mutex]") {
  as_thread_and_fiber([](findings& found) {
    ramie::sync_internal::mutex_core m;
    for (int i = 0; i < 3; ++i) {
      mutex_lock(m);
      EXPECT(found, m.word.load() == 1, m.waiters.places == 0);
      mutex_unlock(m);
      EXPECT(found, m.word.load() == 0);
    }
  });
}

TEST_CASE("locks and events allocate nothing", "[conformance][sync]") {
  std::uint64_t made = 0;
  as_fiber([&](findings&, auto&) {
    mutex m;
    ramie::shared_mutex shared;
    ramie::semaphore permits(0);
    ramie::notify bell;
    ramie::event go;
    ramie::once_cell<int> cell;
    nursery n;
    n.spawn([&] {
      go.wait();
      std::scoped_lock both(m, shared);  // has to wait for the first
      permits.acquire();
      bell.wait();
      (void)cell.get_or_init([] { return 1; });
    });
    ramie::yield();
    m.lock();
    const auto before = test::allocations();
    go.set();
    ramie::yield();
    m.unlock();
    ramie::yield();
    permits.release();
    ramie::yield();
    bell.notify_one();
    ramie::yield();
    made = test::allocations() - before;
    n.join();
  });
  CHECK(made == 0);
}

// The last to unlock destroys it, though the one before may have seen to others just now.
TEST_CASE("a mutex may be destroyed by whoever unlocked it last", "[conformance][sync][mutex]") {
  struct shared {
    mutex m;
    int users = 4;
  };
  const int rounds = test::scaled(2'000, 200);
  for (const unsigned workers : {1u, 4u}) {
    std::vector<std::atomic<shared*>> all(static_cast<std::size_t>(rounds));
    for (auto& one : all) one = new shared;
    std::atomic<int> destroyed{0};
    together(workers, 3, 1, [&](int) {
      for (auto& one : all) {
        shared* const s = one.load();
        s->m.lock();
        const bool last = --s->users == 0;
        s->m.unlock();
        if (last) {
          delete s;
          ++destroyed;
        }
      }
    });
    CHECK(destroyed == rounds);
  }
}

}  // namespace conformance_sync_mutex
