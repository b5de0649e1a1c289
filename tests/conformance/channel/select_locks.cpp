// SPDX-License-Identifier: BSL-1.0
// select: locks, permits and events as cases. What is taken is taken by winning, and nothing is lost by losing.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/allocations.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/schedules.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_select_locks {

using ramie::on_acquire;
using ramie::on_lock;
using ramie::on_lock_shared;
using ramie::on_notified;
using ramie::testing::check;
using namespace test;
using namespace test::select_words;

bool locks_and_unlocks(ramie::mutex& m) {
  std::lock_guard hold(m);
  return true;
}

// One of everything, none of it to be had.
struct all_busy {
  ramie::mutex m;
  ramie::shared_mutex alone, shared;
  ramie::semaphore permits{1};
  ramie::notify bell;
  ramie::event go;
  ramie::latch gate{1};

  all_busy() {
    m.lock();
    alone.lock_shared();
    shared.lock();
  }
  // Waits for any of them. Locks are held until the end of `handler(number)`, then free.
  template <class Handler, class... More>
  std::size_t wait(Handler handler, More&&... more) {
    return select(on_lock(m, [&](std::unique_lock<ramie::mutex> held) { handler(held.owns_lock() ? 0 : -1); }),
                  on_lock(alone, [&](std::unique_lock<ramie::shared_mutex> held) { handler(held.owns_lock() ? 1 : -1); }),
                  on_lock_shared(shared, [&](const auto& held) { handler(held.owns_lock() ? 2 : -1); }),
                  on_acquire(permits, 2, [&] { handler(3); }), on_notified(bell, [&] { handler(4); }),
                  on_ready(go, [&] { handler(5); }), on_ready(gate, [&] { handler(6); }), std::forward<More>(more)...);
  }
  static constexpr int kinds = 7;
  void give(int kind) {
    switch (kind) {
      case 0: return m.unlock();
      case 1: return alone.unlock_shared();
      case 2: return shared.unlock();
      case 3: return permits.release();
      case 4: return bell.notify_one();
      case 5: return go.set();
      default: return gate.count_down();
    }
  }
  // Everything that was not given is as it was; what was given has been `taken`, and locks are free again, or is there.
  [[nodiscard]] bool is_consistent(int given, bool taken) {
    const bool locks = is_free(m) == (given == 0) && alone.try_lock_shared() && shared.try_lock_shared() == (given == 2);
    const bool counts = permits.available() == (given != 3 ? 1 : taken ? 0 : 2);
    return locks && counts && bell.try_wait() == (given == 4 && !taken) && go.is_set() == (given == 5);
  }
  // So that it may be destroyed.
  void end(int given) {
    if (given != 0) m.unlock();
    if (given != 1) alone.unlock_shared();
    alone.unlock_shared();  // is_consistent
    given == 2 ? shared.unlock_shared() : shared.unlock();
  }
};

TEST_CASE("locks, permits and events that can be had at once are cases", "[conformance][select][sync]") {
  as_thread_and_fiber([](findings& found) {
    for (int kind = 0; kind < all_busy::kinds; ++kind) {
      all_busy all;
      int happened = -1;
      EXPECT(found, all.wait(whatever, otherwise(whatever)) == 7);
      all.give(kind);
      EXPECT(found, all.wait([&](int which) { happened = which; }) == static_cast<std::size_t>(kind));
      EXPECT(found, happened == kind, all.is_consistent(kind, true));
      all.end(kind);
    }
  });
}

TEST_CASE("a select that waits gets the lock, permit or event that comes", "[conformance][select][sync]") {
  for_all_workers([](unsigned workers) {
    findings found;
    ramie::run(test::with_workers(workers), [&] {
      for (int kind = 0; kind < all_busy::kinds; ++kind) {
        all_busy all;
        int happened = -1;
        nursery n;
        n.spawn([&] { all.wait([&](int which) { happened = which; }); });
        ramie::yield();
        if (kind <= 2) {  // locks are unlocked by whoever locked them
          all.give(kind);
        } else {
          n.spawn([&] { all.give(kind); });
        }
        n.join();
        EXPECT(found, happened == kind, all.is_consistent(kind, true));
        all.end(kind);
      }
    });
    CHECK(found.wrong() == "");
  });
}

TEST_CASE("a plain thread selects among locks and permits that fibers give", "[conformance][select][sync][threads]") {
  findings found;
  for (int kind = 3; kind < all_busy::kinds; ++kind) {
    all_busy all;
    int happened = -1;
    std::thread outside([&] { all.wait([&](int which) { happened = which; }); });
    ramie::run(test::with_workers(1), [&] { all.give(kind); });
    outside.join();
    EXPECT(found, happened == kind, all.is_consistent(kind, true));
    all.end(kind);
  }
  CHECK(found.wrong() == "");
}

TEST_CASE("a select that something else has ended has taken no lock, permit or notification",
          "[conformance][select][sync][cancel]") {
  enum class end { element, cancelled, timed_out };
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    for (const end how : {end::element, end::cancelled, end::timed_out}) {
      for (int kind = 0; kind < all_busy::kinds; ++kind) {
        all_busy all;
        const channel<int> c(0);
        fate waits = fate::running;
        bool taken = false;
        nursery n;
        let_wait(n, waits, [&] { return all.wait([&](int) { taken = true; }, on_recv(c, whatever), on_timeout(1s, whatever)) > 6; });
        if (how == end::element) (void)c.try_send(1);
        if (how == end::timed_out) clock.advance(2s);
        if (how == end::cancelled) n.cancel();
        all.give(kind);  // before the select has run: it has no claim on it any more, or has not looked yet
        n.join();
        const bool lost = waits == fate::done || waits == fate::cut_short;
        EXPECT(found, taken == !lost, how != end::element || !taken, all.is_consistent(kind, taken));
        all.end(kind);
      }
    }
  });
}

TEST_CASE("a select that was handed something is neither cancelled nor too late",
          "[conformance][select][sync][cancel]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    for (int kind = 0; kind < all_busy::kinds; ++kind) {
      all_busy all;
      fate waits = fate::running;
      int happened = -1;
      nursery n;
      let_wait(n, waits, [&] { return all.wait([&](int which) { happened = which; }, on_timeout(1s, whatever)) < 7; });
      all.give(kind);
      clock.advance(2s);
      n.cancel();
      n.join();
      EXPECT(found, waits == fate::done, happened == kind, all.is_consistent(kind, true));
      all.end(kind);
    }
  });
}

TEST_CASE("what a select has not taken goes to the next who waits", "[conformance][select][sync]") {
  as_fiber([](findings& found, auto&) {
    ramie::mutex m;
    ramie::semaphore permits(0);
    ramie::notify bell;
    const channel<int> c(0);
    fate chooses = fate::running, locks = fate::running, acquires = fate::running, hears = fate::running;
    m.lock();
    nursery n;
    let_wait(n, chooses, [&] {
      return select(on_lock(m, whatever), on_acquire(permits, whatever), on_notified(bell, whatever), on_recv(c, whatever)) == 3;
    });
    let_wait(n, locks, [&] { return locks_and_unlocks(m); });
    let_wait(n, acquires, [&] { return permits.acquire(), true; });
    let_wait(n, hears, [&] { return bell.wait(), true; });
    (void)c.try_send(1);  // has won, but not run: its other nodes are still listed, first of all
    m.unlock();
    permits.release();
    bell.notify_one();
    n.join();
    EXPECT(found, chooses == fate::done, locks == fate::done, acquires == fate::done, hears == fate::done);
    EXPECT(found, is_free(m), permits.available() == 0, !bell.try_wait());
  });
}

// An unlock wakes the select without reserving the lock (M14); somebody else is faster, and meanwhile another case has
// become ready. The select must have tried the lock all the same, or the next unlock believes that somebody will.
TEST_CASE("a select that was woken for a lock tries it before it takes something else", "[conformance][select][sync]") {
  as_fiber([](findings& found, auto&) {
    for (int i = 0; i < 30; ++i) {
      ramie::mutex m;
      ramie::event go;
      fate chooses = fate::running, locks = fate::running;
      m.lock();
      nursery n;
      let_wait(n, chooses, [&] { return select(on_lock(m, whatever), on_ready(go, whatever)) == 1; });
      let_wait(n, locks, [&] { return locks_and_unlocks(m); });
      m.unlock();  // wakes the select
      m.lock();
      go.set();
      ramie::yield();
      EXPECT(found, chooses == fate::done, locks == fate::running);
      m.unlock();
      ramie::yield();
      EXPECT(found, locks == fate::done);
      n.cancel();
      n.join();
    }
  });
}

TEST_CASE("a select that waits for a mutex is not passed over for ever", "[conformance][select][sync]") {
  as_fiber([](findings& found, auto&) {
    ramie::mutex m;
    bool got = false;
    int turns = 0;
    const ramie::task<int> no_task;
    nursery n;
    m.lock();
    n.spawn([&] { select(on_lock(m, [&](auto&&) { got = true; }), on_ready(no_task, whatever)); });
    ramie::yield();
    for (; !got && turns < 100; ++turns) {
      m.unlock();
      if (!m.try_lock()) break;  // handed over
      ramie::yield();            // it finds the lock taken
    }
    if (turns == 100) m.unlock();
    n.join();
    EXPECT(found, got, turns < 10);
  });
}

TEST_CASE("the handler of a lock case may keep the lock", "[conformance][select][sync]") {
  as_thread_and_fiber([](findings& found) {
    ramie::mutex m;
    ramie::shared_mutex s;
    std::unique_lock<ramie::mutex> kept;
    std::shared_lock<ramie::shared_mutex> shared;
    select(on_lock(m, [&](std::unique_lock<ramie::mutex>&& held) { kept = std::move(held); }));
    select(on_lock_shared(s, [&](std::shared_lock<ramie::shared_mutex> held) { shared = std::move(held); }));
    EXPECT(found, kept.owns_lock(), !is_free(m), shared.owns_lock(), !is_free(s));
    kept.unlock();
    bool thrown = false;
    try {
      select(on_lock(m, [](auto&&) { throw std::pair(1, 2); }));
    } catch (const std::pair<int, int>&) {
      thrown = true;
    }
    EXPECT(found, thrown, is_free(m));
  });
}

TEST_CASE("a selector waits for locks and permits again and again", "[conformance][select][sync]") {
  as_thread_and_fiber([](findings& found) {
    ramie::mutex m;
    ramie::semaphore permits(2);
    int locked = 0, acquired = 0;
    ramie::selector s;
    s.add(on_lock(m, [&](auto&&) { ++locked; })).add(on_acquire(permits, [&] { ++acquired; }));
    while (permits.available() != 0) s.wait();
    const int before = locked;
    EXPECT(found, acquired == 2, s.wait() == 0, locked == before + 1, s.size() == 2);
    std::lock_guard hold(m);
    s.otherwise(whatever);
    EXPECT(found, s.wait() == 2);
  });
}

TEST_CASE("selects among locks and permits allocate nothing", "[conformance][select][sync]") {
  std::uint64_t made = 0;
  as_fiber([&](findings& found, auto&) {
    all_busy all;
    nursery n;
    n.spawn([&] { all.wait(whatever); });
    ramie::yield();
    const auto before = test::allocations();
    all.give(3);
    ramie::yield();
    made = test::allocations() - before;
    n.join();
    EXPECT(found, all.is_consistent(3, true));
    all.end(3);
  });
  CHECK(made == 0);
}

// Every party takes whatever it can get: nobody waits for ever, two are never inside, and no permit is lost.
TEST_CASE("selects, locks and acquires of many parties keep their books", "[conformance][select][sync]") {
  const int times = test::scaled(2'000, 200);
  for_all_workers([times](unsigned workers) {
    ramie::mutex m;
    ramie::shared_mutex shared;
    ramie::semaphore permits(1);
    std::atomic<int> inside{0}, most{0}, readers_beside_writers{0};
    int counted = 0, readers = 0;
    std::atomic<int> locked{0};
    const auto with_lock = [&] {
      most = std::max(most.load(), ++inside);
      ++counted;
      ++locked;
      if (counted % 8 == 0) ramie::yield();
      --inside;
    };
    together(workers, 6, 2, [&](int who) {
      for (int i = 0; i < times; ++i) {
        if (who % 4 == 0) {
          std::lock_guard hold(m);
          with_lock();
        } else if (who % 4 == 1) {
          permits.acquire();
          if (i % 8 == 0) ramie::yield();
          permits.release();
        } else {
          select(on_lock(m, [&](auto&&) { with_lock(); }), on_acquire(permits, [&] { permits.release(); }),
                 on_lock(shared, [&](auto&&) { readers = 0; }),
                 on_lock_shared(shared, [&](auto&&) { readers_beside_writers += readers; }));
        }
      }
    });
    CHECK(most == 1);
    CHECK(counted == locked);
    CHECK(readers_beside_writers == 0);
    CHECK(is_free(m));
    CHECK(is_free(shared));
    CHECK(permits.available() == 1);
  });
}

TEST_CASE("no schedule loses a lock, a permit or a notification to a select", "[conformance][select][sync][explore]") {
  test::over_many_schedules([] {
    ramie::mutex m;
    ramie::semaphore permits(0);
    ramie::notify bell;
    const channel<int> c(0);
    int inside = 0, taken = 0, heard = 0, received = 0;
    const auto in_turn = [&] {
      const test::presence here(inside);
      check(inside == 1, "two are inside");
      ramie::yield();
    };
    nursery stays;
    stays.spawn([&] {
      std::lock_guard hold(m);
      in_turn();
    });
    stays.spawn([&] { permits.release(); });
    stays.spawn([&] { bell.notify_one(); });
    stays.spawn([&] { received += c.send_for(1, 1ms) != ramie::channel_status::ok; });
    {
      nursery goes;
      for (int i = 0; i < 2; ++i) {
        goes.spawn([&] {
          select(on_lock(m, [&](auto&&) { in_turn(); }), on_acquire(permits, [&] { ++taken; }),
                 on_notified(bell, [&] { ++heard; }), on_recv(c, [&](auto&&) { ++received; }));
        });
      }
      ramie::yield();
      goes.cancel();
      goes.join();
    }
    stays.join();
    check(is_free(m), "it is locked for ever");
    check(permits.available() + taken == 1, "a permit is lost or doubled");
    check(bell.try_wait() + heard == 1, "a notification is lost or doubled");
    check(received == 1, "an element is lost or doubled");
  });
}

}  // namespace conformance_channel_select_locks
