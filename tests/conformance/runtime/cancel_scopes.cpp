// SPDX-License-Identifier: BSL-1.0
// Cancel scopes, shields, shutdown.
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_cancel_scopes {

using namespace ramie::runtime_internal;
using ramie::cancel_kind;
using test::fiber_group;
using test::dies_saying;
using test::with_workers;

void cancel(cancel_scope& s) {
  s.cancel({cancel_kind::requested, "test", ramie::source_location::current(), 0});
}

TEST_CASE("cancelling a scope wakes what is parked under it", "[conformance][cancel]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    ramie::runtime rt(with_workers(workers));
    int unwound = 0;
    rt.run([&] {
      cancel_scope scope;
      gate never;
      std::atomic<int> parked{0};
      fiber_group c(scope);
      for (int i = 0; i < 100; ++i) {
        c.spawn([&] {
          parked.fetch_add(1);
          test::wait_at(never);
        });
      }
      while (parked.load() != 100) ramie::yield();
      cancel(scope);
      c.join();
      unwound = c.cancelled();
    });
    CHECK(unwound == 100);
  }
}

TEST_CASE("a fiber cancelled before its start ends without running", "[conformance][cancel]") {
  ramie::runtime rt(with_workers(1));
  int ran = -1, discarded = -1;
  rt.run([&] {
    cancel_scope scope;
    fiber_group c(scope);
    for (int i = 0; i < 10; ++i) c.spawn([] {});
    cancel(scope);
    c.join();
    ran = c.ran();
    discarded = c.discarded(discard_cause::cancelled);
  });
  CHECK(ran == 0);
  CHECK(discarded == 10);
  CHECK(rt.stats().total.discarded == 10);
}

TEST_CASE("cancellation says why, where and by whom", "[conformance][cancel]") {
  ramie::runtime rt(with_workers(1));
  std::string text;
  cancel_kind kind{};
  bool right_scope = false;
  rt.run([&] {
    cancel_scope scope;
    cancel(scope);
    try {
      ramie::check_cancelled();
    } catch (const ramie::cancelled& c) {
      text = c.reason().text;
      kind = c.kind();
      right_scope = scope.owns(c);
    }
  });
  CHECK(text == "test");
  CHECK(kind == cancel_kind::requested);
  CHECK(right_scope);
  static_assert(!std::is_base_of_v<std::exception, ramie::cancelled>);
}

TEST_CASE("leaving a cancelled scope ends its cancellation", "[conformance][cancel]") {
  ramie::runtime rt(with_workers(1));
  bool inside = false, outside = true;
  rt.run([&] {
    {
      cancel_scope scope;
      cancel(scope);
      inside = ramie::stop_requested();
      try {
        ramie::yield();
      } catch (const ramie::cancelled&) {
      }
    }
    outside = ramie::stop_requested();
    ramie::yield();
  });
  CHECK(inside);
  CHECK_FALSE(outside);
}

TEST_CASE("a swallowed cancellation comes again and is counted", "[conformance][cancel]") {
  ramie::runtime rt(with_workers(1));
  int times = 0;
  rt.run([&] {
    cancel_scope scope;
    cancel(scope);
    for (int i = 0; i < 3; ++i) {
      try {
        ramie::yield();
      } catch (const ramie::cancelled&) {
        ++times;
      }
    }
  });
  CHECK(times == 3);
  CHECK(rt.stats().total.cancel_redelivered == 2);
}

TEST_CASE("the outermost cancelled scope is the one to unwind to", "[conformance][cancel]") {
  bool outer_seen = false;
  ramie::run([&] {
    cancel_scope outer;
    cancel_scope inner;
    cancel(inner);
    cancel(outer);
    try {
      ramie::yield();
    } catch (const ramie::cancelled& c) {
      outer_seen = outer.owns(c) && !inner.owns(c);
    }
  });
  CHECK(outer_seen);
}

TEST_CASE("cancellation travels down nested scopes to parked fibers", "[conformance][cancel]") {
  for (const unsigned workers : {1u, 2u}) {
    ramie::runtime rt(with_workers(workers));
    std::atomic<int> unwound{0};
    rt.run([&] {
      cancel_scope outer;
      std::atomic<int> parked{0};
      gate never;
      fiber_group c(outer);
      for (int i = 0; i < 5; ++i) {
        c.spawn([&] {
          cancel_scope middle;
          fiber_group inner(middle);
          for (int k = 0; k < 5; ++k) {
            inner.spawn([&] {
              parked.fetch_add(1);
              test::wait_at(never);
            });
          }
          inner.join();
          unwound += inner.cancelled();
        });
      }
      while (parked.load() != 25) ramie::yield();
      cancel(outer);
      c.join();
    });
    CHECK(unwound == 25);
  }
}

TEST_CASE("a shield defers cancellation until it drops", "[conformance][shield]") {
  ramie::runtime rt(with_workers(1));
  test::journal<const char*> log;
  rt.run([&] {
    cancel_scope scope;
    gate door;
    fiber_group c(scope);
    c.spawn([&] {
      try {
        {
          ramie::shield guard;
          test::wait_at(door);  // cancelled meanwhile: neither woken nor hung
          log.add("work done");
          if (ramie::stop_requested()) log.add("delivered early");
        }
        log.add(ramie::stop_requested() ? "pending" : "forgotten");
        ramie::yield();
      } catch (const ramie::cancelled&) {
        log.add("delivered");
        throw;
      }
    });
    ramie::yield();
    cancel(scope);
    door.open();
    c.join();
    if (c.cancelled() != 1) log.add("not cancelled");
  });
  CHECK(log.entries() == std::vector<const char*>{"work done", "pending", "delivered"});
}

TEST_CASE("shields nest a thousand deep", "[conformance][shield]") {
  int early = 0;
  bool late = false;
  struct nest {
    static void down(int depth, int& early) {
      ramie::shield guard;
      early += ramie::stop_requested();
      if (depth > 1) down(depth - 1, early);
      early += ramie::stop_requested();
    }
  };
  ramie::run([&] {
    cancel_scope scope;
    cancel(scope);
    nest::down(1'000, early);
    late = ramie::stop_requested();
  });
  CHECK(early == 0);
  CHECK(late);
}

TEST_CASE("a scope inside a shield still cancels what is inside it", "[conformance][shield]") {
  bool inner_delivered = false;
  ramie::run([&] {
    ramie::shield guard;
    cancel_scope inner;
    cancel(inner);
    try {
      ramie::yield();
    } catch (const ramie::cancelled& c) {
      inner_delivered = inner.owns(c);
    }
  });
  CHECK(inner_delivered);
}

TEST_CASE("children of a scope opened under a shield are not reached from outside", "[conformance][shield]") {
  ramie::runtime rt(with_workers(1));
  int cancelled = -1, ran = -1;
  rt.run([&] {
    cancel_scope outer;
    gate door;
    fiber_group c(outer);
    c.spawn([&] {
      ramie::shield guard;
      cancel_scope inner;
      fiber_group children(inner);
      for (int i = 0; i < 3; ++i) children.spawn([&] { test::wait_at(door); });
      children.join();
      cancelled = children.cancelled();
      ran = children.ran();
    });
    ramie::yield();
    ramie::yield();
    cancel(outer);
    {
      ramie::shield ours;  // the root is inside `outer` too
      ramie::yield();
    }
    door.open();
    c.join();
  });
  CHECK(cancelled == 0);
  CHECK(ran == 3);
}

TEST_CASE("a wait during unwinding is not interrupted again", "[conformance][cancel]") {
  ramie::runtime rt(with_workers(1));
  bool waited = false;
  rt.run([&] {
    cancel_scope scope;
    gate never, door;
    fiber_group c(scope);
    struct closer {
      gate& door;
      bool& waited;
      ~closer() {
        test::wait_at(door);
        waited = true;
      }
    };
    c.spawn([&] {
      closer at_the_end{door, waited};
      test::wait_at(never);
    });
    ramie::yield();
    cancel(scope);
    {
      ramie::shield ours;
      ramie::yield();
    }
    door.open();
    c.join();
  });
  CHECK(waited);
}

TEST_CASE("shutdown cancels and unwinds live fibers", "[conformance][shutdown]") {
  for (const unsigned workers : {1u, 2u}) {
    ramie::runtime rt(with_workers(workers));
    std::atomic<int> destroyed{0};
    struct witness {
      std::atomic<int>& count;
      ~witness() { count.fetch_add(1); }
    };
    gate inside;
    std::thread caller([&] {
      try {
        rt.run([&] {
          gate never;
          fiber_group c(rt);
          for (int i = 0; i < 50; ++i) {
            c.spawn([&] {
              witness w{destroyed};
              test::wait_at(never);
            });
          }
          witness w{destroyed};
          inside.open();
          c.join();
          ramie::check_cancelled();
        });
      } catch (const ramie::cancelled& c) {
        if (c.kind() == cancel_kind::shutdown) destroyed.fetch_add(1'000);
      }
    });
    test::wait_at(inside);
    rt.shutdown();
    caller.join();
    CHECK(destroyed >= 1'001);  // fibers that had not started end without running
  }
}

TEST_CASE("cancelling races with parking, starting and ending, and loses nobody", "[conformance][cancel]") {
  for (int seed = 0; seed < test::scaled(200, 20); ++seed) {
    ramie::runtime rt(with_workers(2));
    int total = 0;
    rt.run([&] {
      cancel_scope scope;
      gate never;
      fiber_group c(scope);
      for (int i = 0; i < 20; ++i) {
        c.spawn([&, i] {
          for (int k = 0; k < (seed * 7 + i) % 5; ++k) ramie::yield();
          test::wait_at(never);
        });
      }
      for (int k = 0; k < seed % 7; ++k) ramie::yield();
      cancel(scope);
      c.join();
      total = c.cancelled() + c.discarded(discard_cause::cancelled);
    });
    REQUIRE(total == 20);
  }
}

// L13
TEST_CASE("a fiber that ends inside a scope of its own ends the program", "[conformance][cancel][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          alignas(cancel_scope) static std::byte room[sizeof(cancel_scope)];
          ::new (room) cancel_scope;
        });
      },
      "ended inside a scope or shield it opened");
}

// X11
TEST_CASE("a scope that is not closed by its block ends the program", "[conformance][cancel][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          auto outer = std::make_unique<cancel_scope>();
          auto inner = std::make_unique<cancel_scope>();
          outer.reset();
        });
      },
      "was not closed in the block and fiber that opened it");
}

// X6, X7
TEST_CASE("who has left a cancelled scope has swallowed nothing when the next one is cancelled",
          "[conformance][cancel]") {
  const test::reports reported;
  ramie::runtime rt(with_workers(1));
  int ended_early = 0;
  rt.run([&] {
    for (int i = 0; i < 3; ++i) {
      const auto passed = ramie::now() - std::chrono::nanoseconds(1);
      ended_early += !ramie::with_deadline(passed, [] { ramie::check_cancelled(); });
    }
  });
  CHECK(ended_early == 3);
  CHECK(rt.stats().total.cancel_redelivered == 0);
  CHECK(reported.taken().empty());
}

}  // namespace conformance_cancel_scopes
