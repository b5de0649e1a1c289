// SPDX-License-Identifier: BSL-1.0
// shared_mutex: many or one, first come, first served.
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_shared_mutex {

using namespace std::chrono_literals;
using ramie::nursery;
using ramie::shared_mutex;
using namespace test;

TEST_CASE("a shared mutex has one writer, or readers", "[conformance][sync][shared_mutex]") {
  const int times = test::scaled(3'000, 300);
  for_all_workers([times](unsigned workers) {
    shared_mutex m;
    long written = 0, torn = 0;
    std::atomic<int> readers{0}, wrong{0};
    together(workers, 8, 2, [&](int who) {
      for (int i = 0; i < times; ++i) {
        if ((who + i) % 4 == 0) {
          std::lock_guard hold(m);
          if (readers.load(std::memory_order_relaxed) != 0) ++wrong;
          ++written;
          if (i % 16 == 0) ramie::yield();
          ++torn;
        } else {
          std::shared_lock hold(m);
          readers.fetch_add(1, std::memory_order_relaxed);
          if (written != torn) ++wrong;
          if (i % 16 == 0) ramie::yield();
          readers.fetch_sub(1, std::memory_order_relaxed);
        }
      }
    });
    CHECK(wrong == 0);
    CHECK(written == 10L * times / 4);
  });
}

TEST_CASE("the standard's lock wrappers work with a shared mutex", "[conformance][sync][shared_mutex]") {
  as_thread_and_fiber([](findings& found) {
    shared_mutex m;
    {
      std::shared_lock one(m);
      std::shared_lock two(m, std::try_to_lock);
      std::unique_lock alone(m, std::try_to_lock);
      EXPECT(found, one.owns_lock(), two.owns_lock(), !alone.owns_lock(), !m.try_lock_for(0ms));
    }
    std::unique_lock alone(m);
    std::shared_lock one(m, std::defer_lock);
    EXPECT(found, !one.try_lock(), !one.try_lock_for(0ms));
    alone.unlock();
    found.expect(one.try_lock_for(1h));
  });
}

TEST_CASE("a writer is not starved by readers that keep coming", "[conformance][sync][shared_mutex]") {
  as_fiber([](findings& found, auto&) {
    shared_mutex m;
    std::atomic<bool> written{false};
    std::atomic<int> rounds{0};
    nursery n;
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {  // one of the two shares it at any time
        while (!written && rounds < 1'000) {
          std::shared_lock hold(m);
          ++rounds;
          ramie::yield();
        }
      });
    }
    ramie::yield();
    n.spawn([&] {
      std::lock_guard hold(m);
      written = true;
    });
    n.join();
    EXPECT(found, written, rounds < 100);
  });
}

TEST_CASE("readers next to each other in the queue go together, behind the writer before them",
          "[conformance][sync][shared_mutex]") {
  as_fiber([](findings& found, auto&) {
    shared_mutex m;
    std::string order;
    ramie::event leave;
    nursery n;
    m.lock();
    const auto reads = [&] {
      std::shared_lock hold(m);
      order += 'r';
      leave.wait();
    };
    const auto writes = [&] {
      std::lock_guard hold(m);
      order += 'w';
    };
    n.spawn(reads);
    n.spawn(reads);
    n.spawn(writes);
    n.spawn(reads);
    ramie::yield();
    m.unlock();
    ramie::yield();
    EXPECT(found, order == "rr", !m.try_lock_shared());  // the writer waits
    leave.set();
    n.join();
    EXPECT(found, order == "rrwr", is_free(m));
  });
}

TEST_CASE("a writer that gives up lets the readers behind it in", "[conformance][sync][shared_mutex][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    shared_mutex m;
    fate late = fate::running, cut = fate::running, reader = fate::running;
    nursery n;
    nursery goes;
    m.lock_shared();
    tell_fate(n, late, [&] { return m.try_lock_for(1s); });
    tell_fate(goes, cut, [&] { return m.lock(), true; });
    ramie::yield();
    let_wait(n, reader, [&] { return m.lock_shared(), m.unlock_shared(), true; });
    clock.advance(2s);
    ramie::yield();
    EXPECT(found, late == fate::failed, reader == fate::running);
    goes.cancel();
    goes.join();
    n.join();
    EXPECT(found, cut == fate::cut_short, reader == fate::done);
    m.unlock_shared();
    found.expect(is_free(m));
  });
}

TEST_CASE("a reader waits no longer than it wants to", "[conformance][sync][shared_mutex][deadline]") {
  as_fiber([](findings& found, auto& clock) {
    shared_mutex m;
    one_is_too_late(
        found, clock, m, [&](auto limit) { return m.try_lock_shared_for(limit); }, [&] { m.unlock_shared(); });
    EXPECT(found, is_free(m));
  });
}

}  // namespace conformance_sync_shared_mutex
