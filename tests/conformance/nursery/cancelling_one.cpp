// SPDX-License-Identifier: BSL-1.0
// task::cancel: one child and what it has opened, not its siblings.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "nursery/src/core.hpp"

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_nursery_cancelling_one {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::nursery;
using test::findings;
using test::with_workers;

// f(found) as a fiber, on several worker counts, with and without chaos.
template <class F>
void on_workers(F f) {
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    for (const bool chaos : {false, true}) {
      auto o = with_workers(workers);
      if (chaos) o.chaos = ramie::chaos_mode{workers + 7};
      findings found;
      ramie::run(o, [&] { f(found); });
      INFO("workers " << workers << " chaos " << chaos);
      CHECK(found.wrong() == "");
    }
  }
}

// The `cancelled` that get() throws for a task that was cancelled, as text; "" if there is none.
template <class R>
std::string how_it_ended(ramie::task<R>& t) {
  try {
    (void)t.get();
  } catch (const cancelled& c) {
    return c.describe();
  }
  return "";
}

TEST_CASE("a task is cancelled alone: its siblings and its nursery go on", "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    const ramie::channel<int> never(0), gate(0);
    nursery n;
    auto sibling = n.spawn([gate] { return *gate.recv(); });
    auto one = n.spawn([never] { return never.recv().has_value(); });
    EXPECT(found, one.cancel("not needed"), !one.cancel("again"));
    const std::string how = how_it_ended(one);
    EXPECT(found, how.find("not needed") != std::string::npos, how.find("cancelling_one.cpp") != std::string::npos);
    EXPECT(found, !sibling.done(), !n.closing(), !ramie::stop_requested());
    gate.send(7);
    EXPECT(found, sibling.get() == 7);
    n.join();  // which does not throw
    EXPECT(found, n.failures().empty(), !one.cancel());
  });
}

TEST_CASE("a task that was cancelled before its start does not run", "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    test::census closures;
    std::atomic<int> ran{0};
    nursery n;
    for (int i = 0; i < 50; ++i) {
      auto t = n.spawn([&ran, token = test::citizen(closures)] {
        ramie::check_cancelled();
        ran.fetch_add(1);
      });
      const bool in_time = t.cancel();
      t.wait();
      EXPECT(found, !in_time || ran.load() == 0 || how_it_ended(t).empty());
      ran.store(0);
    }
    n.join();
  });
  int ran = 0;
  ramie::run(with_workers(1), [&] {
    nursery n;
    auto t = n.spawn([&] { ran = 1; });
    CHECK(t.cancel());
    n.join();
  });
  CHECK(ran == 0);
}

TEST_CASE("a cancelled task takes along what it has opened", "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    const ramie::channel<int> never(0);
    const ramie::channel<int> ready(8);
    std::atomic<int> unwound{0};
    std::stop_token inside;
    nursery n;
    auto one = n.spawn([&] {
      nursery inner;
      inside = inner.get_stop_token();
      for (int i = 0; i < 3; ++i) {
        inner.spawn([&] {
          nursery innermost;
          innermost.spawn([&] {
            ready.send(1);
            try {
              (void)never.recv();
            } catch (const cancelled& c) {
              if (c.is_own()) unwound.fetch_add(1);
              throw;
            }
          });
          innermost.join();
        });
      }
      inner.join();
    });
    for (int i = 0; i < 3; ++i) (void)ready.recv();
    EXPECT(found, one.cancel());
    one.wait();
    EXPECT(found, unwound.load() == 3, inside.stop_requested(), !how_it_ended(one).empty(), !n.closing());
    n.join();
  });
}

TEST_CASE("a shield keeps a task's own cancellation away, and a timeout inside catches only its own",
          "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    const ramie::channel<int> gate(0), never(0), ready(2);
    std::atomic<int> under_shield{0};
    nursery n;
    auto shielded = n.spawn([&] {
      {
        const ramie::shield keep;
        ready.send(1);
        under_shield = *gate.recv();
      }
      (void)never.recv();
    });
    auto timed = n.spawn([&] {
      ready.send(1);
      (void)ramie::with_timeout(1h, [&] { (void)never.recv(); });
      return 1;
    });
    for (int i = 0; i < 2; ++i) (void)ready.recv();
    EXPECT(found, shielded.cancel(), timed.cancel());
    gate.send(5);
    EXPECT(found, !how_it_ended(shielded).empty(), under_shield.load() == 5);
    EXPECT(found, !how_it_ended(timed).empty());
    n.join();
  });
}

TEST_CASE("a cancelled task may fail, or end with its value", "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    const ramie::channel<int> never(0), ready(1);
    int failures = 0;
    try {
      ramie::with_nursery([&](nursery& n) {
        auto stubborn = n.spawn([&] {
          ready.send(1);
          try {
            (void)never.recv();
          } catch (const cancelled&) {
          }
          return 3;
        });
        (void)ready.recv();
        EXPECT(found, stubborn.cancel(), stubborn.get() == 3);
        auto failing = n.spawn([&] {
          ready.send(1);
          try {
            (void)never.recv();
          } catch (const cancelled&) {
            throw std::runtime_error("instead");
          }
        });
        (void)ready.recv();
        EXPECT(found, failing.cancel());
      });
    } catch (const std::runtime_error&) {
      ++failures;
    }
    EXPECT(found, failures == 1);
  });
}

TEST_CASE("cancelling a task races with its end, its handle and its nursery's cancellation", "[conformance][nursery][cancel]") {
  const int rounds = test::scaled(300, 40);
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    test::census results;
    std::atomic<int> innocents{0};
    int expected = 0;
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < rounds; ++i) {
        auto quick = n.spawn([&results] { return test::citizen(results); });
        auto yielding = n.spawn([&results] {
          ramie::yield();
          return test::citizen(results);
        });
        n.spawn([t = std::move(quick)]() mutable { t.cancel(); });
        if (i % 2 == 0) {
          yielding.cancel();
        } else {
          ramie::blocking([&] { yielding.cancel("from a thread"); });
        }
        if (i % 3 == 0) yielding.wait();
        // Frames and blocks are used again: nobody else may be hit.
        n.spawn([&innocents] {
          ramie::yield();
          innocents.fetch_add(1);
        });
        ++expected;
      }
      n.join();
    });
    CHECK(innocents.load() == expected);
    CHECK(results.alive() == 0);
  }
}

TEST_CASE("a nursery that cancels task after task stays flat in memory", "[conformance][nursery][cancel]") {
  std::size_t kept = 0;
  ramie::run(with_workers(1), [&] {
    const ramie::channel<int> never(0);
    nursery n;
    auto last = n.spawn([] {});
    for (int i = 0; i < 2'000; ++i) {
      auto t = n.spawn([never] { (void)never.recv(); });
      if (i % 2 == 0) ramie::yield();
      t.cancel();
      if (i % 3 == 0) t.wait();
      if (i == 1'999) last = std::move(t);
    }
    n.join();
    const auto& inside = *static_cast<const ramie::nursery_internal::nursery_core*>(
        ramie::runtime_internal::ready_access::source_of(last).home);
    kept = inside.has_more()->cancellations.size();
  });
  CHECK(kept == 1);
}

// Who asks does so behind a shield: else it would end by its own cancellation.
TEST_CASE("a task of a joined nursery says that the fiber that opened the nursery was cancelled",
          "[conformance][nursery][cancel]") {
  on_workers([](findings& found) {
    const ramie::channel<int> never(0), ready(1);
    std::string after;
    nursery n;
    auto opener = n.spawn([&] {
      nursery inner;
      auto child = inner.spawn([&] {
        ready.send(1);
        (void)never.recv();
      });
      try {
        inner.join();
      } catch (const cancelled&) {
      }
      const ramie::shield keep;
      after = how_it_ended(child);
    });
    (void)ready.recv();
    EXPECT(found, opener.cancel("not needed"));
    opener.wait();
    EXPECT(found, after.find("not needed") != std::string::npos, after.find("cancelling_one.cpp") != std::string::npos);
    n.join();
  });
}

// The nursery is no barrier of its own there: the scope around it, opened in the same destructor, reaches its children.
TEST_CASE("a task of a nursery that was joined in a destructor says what cancelled it",
          "[conformance][nursery][cancel]") {
  struct cleanup {
    findings& found;
    ~cleanup() {
      const ramie::channel<int> never(0);
      std::string after;
      (void)ramie::with_timeout(0s, [&] {
        nursery inner;
        auto child = inner.spawn([never] { (void)never.recv(); });
        try {
          inner.join();
        } catch (const cancelled&) {
        }
        const ramie::shield keep;
        after = how_it_ended(child);
      });
      EXPECT(found, after.find("deadline") != std::string::npos);
    }
  };
  on_workers([](findings& found) {
    try {
      const cleanup c{found};
      throw std::runtime_error("unwinds");
    } catch (const std::runtime_error&) {
    }
  });
}

// The result of a cancelled task is destroyed by its fiber, without a lock: its destructor is the user's.
TEST_CASE("the result of a cancelled task may let go of another cancelled task", "[conformance][nursery][cancel]") {
  struct holder {
    ramie::task<int> other;
  };
  bool joined = false;
  ramie::run(with_workers(2), [&] {
    std::atomic<bool> go{false};
    const auto shielded_wait = [&] {
      const ramie::shield until_it_may_end;
      while (!go.load()) ramie::yield();
    };
    nursery n;
    auto other = n.spawn([&] { return shielded_wait(), 1; });
    auto t = n.spawn([&, o = std::move(other)]() mutable {
      o.cancel();
      shielded_wait();
      return holder{std::move(o)};
    });
    ramie::yield();
    ramie::yield();
    t.cancel();
    t.reset();
    go.store(true);
    n.join();
    joined = true;
  });
  CHECK(joined);
}

TEST_CASE("a task that can't be cancelled for want of memory goes on", "[conformance][nursery][cancel][faults]") {
  int refused = 0;
  bool cancelled_in_the_end = false;
  for (int k = 1; k < 20 && !cancelled_in_the_end; ++k) {
    ramie::run(with_workers(1), [&] {
      const ramie::channel<int> never(0);
      nursery n;
      auto t = n.spawn([never] { (void)never.recv(); });
      ramie::yield();
      try {
        test::fail_allocation(k);
        cancelled_in_the_end = t.cancel();
        test::fail_allocation(0);
      } catch (const std::bad_alloc&) {
        test::fail_allocation(0);
        ++refused;
        t.cancel();
      }
      n.join();
    });
  }
  CHECK(refused >= 1);
}

}  // namespace conformance_nursery_cancelling_one
