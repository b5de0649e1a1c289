// SPDX-License-Identifier: BSL-1.0
// Stop tokens of nurseries, and shutdown: asked first, then cancelled.
#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_stopping {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

TEST_CASE("a new nursery remembers nothing of the one before", "[conformance][nursery][shutdown]") {
  bool closing = true, stopped = true;
  std::size_t live = 99;
  ramie::run(with_workers(1), [&] {
    {
      nursery a;
      a.spawn([] {});
      (void)a.shutdown(1s);
      a.join();
    }
    {
      nursery c;
      c.cancel();
    }
    nursery b;
    closing = b.closing();
    stopped = b.get_stop_token().stop_requested();
    live = b.live_fibers();
    ramie::check_cancelled();
    b.join();
  });
  CHECK_FALSE(closing);
  CHECK_FALSE(stopped);
  CHECK(live == 0);
}

TEST_CASE("stop tokens are produced and accepted", "[conformance][nursery][cancel]") {
  int from_own = 0, from_above = 0, accepted = 0, late = 0;
  ramie::run(with_workers(2), [&] {
    gate never;
    std::stop_source source;
    {
      nursery n;
      const std::stop_token token = n.get_stop_token();
      std::stop_callback count(token, [&] { ++from_own; });
      n.cancel();
      n.cancel();
      n.join();
      late += token.stop_requested();
    }
    {
      nursery outer;
      std::stop_token token;
      outer.spawn([&] {
        nursery inner;
        token = inner.get_stop_token();
        std::stop_callback count(token, [&] { ++from_above; });
        outer.cancel();
        inner.join();
      });
      outer.join();
    }
    {
      nursery n;
      n.cancel_on(source.get_token());
      std::atomic<bool> waiting{false};
      n.spawn([&] {
        while (!waiting.load()) ramie::yield();
        source.request_stop();
      });
      n.spawn([&] {
        waiting.store(true);
        try {
          test::wait_at(never);
        } catch (const cancelled&) {
          ++accepted;
          throw;
        }
      });
      n.join();
    }
    nursery already;
    already.cancel_on(source.get_token());
    late += already.closing();
    already.join();
  });
  CHECK(from_own == 1);
  CHECK(from_above == 1);
  CHECK(accepted == 1);
  CHECK(late == 2);
}

// The callback runs on the thread that cancels; it must not hold up the owner, nor the clock.
TEST_CASE("a stop callback may wait for the nursery to end", "[conformance][nursery][cancel]") {
  std::atomic<int> ended{0}, called{0};
  ramie::manual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  ramie::run(o, [&] {
    nursery others;
    std::atomic<bool> ready{false};
    others.spawn([&] {
      while (!ready.load()) ramie::yield();
      clock.advance(2s);
    });
    {
      gate never;
      nursery n;
      std::stop_callback wait_for_it(n.get_stop_token(), [&] {
        (void)ramie::with_timeout(1h, [] { ramie::check_cancelled(); });  // uses the clock's runtime again
        called.fetch_add(1);
      });
      n.cancel_after(1s);
      n.spawn([&] {
        ready.store(true);
        test::wait_at(never);
      });
      n.join();
      ended.fetch_add(1);
      while (called.load() == 0) ramie::yield();
    }
    others.join();
  });
  CHECK(ended.load() == 1);
  CHECK(called.load() == 1);
}

TEST_CASE("shutdown asks, waits, cancels and names the stragglers", "[conformance][nursery][shutdown]") {
  ramie::manual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  std::atomic<int> polite{0};
  std::vector<std::string> stragglers;
  std::vector<std::string> none{"not set"};
  ramie::run(o, [&] {
    gate never;
    nursery timekeeper;
    timekeeper.spawn([&] {
      while (polite.load() != 2) ramie::yield();
      ramie::testing::wait_all_blocked();  // they have ended
      clock.advance(2s);
    });
    nursery n;
    const auto token = n.get_stop_token();
    n.spawn({.name = "polite"}, [&] {
      while (!n.closing()) ramie::yield();
      polite.fetch_add(1);
    });
    n.spawn({.name = "by token"}, [&, token] {
      while (!token.stop_requested()) ramie::yield();
      polite.fetch_add(1);
    });
    n.spawn({.name = "stubborn"}, [&] { test::wait_at(never); });
    n.spawn([&] { test::wait_at(never); });
    stragglers = n.shutdown(1s).stragglers;
    n.join();
    timekeeper.join();
    nursery quick;
    quick.spawn([] {});
    none = quick.shutdown(1s).stragglers;
  });
  CHECK(polite.load() == 2);
  REQUIRE(stragglers.size() == 2);
  CHECK((stragglers[0] == "stubborn" || stragglers[1] == "stubborn"));
  CHECK((stragglers[0] + stragglers[1]).find("nursery/stopping.cpp:") != std::string::npos);
  CHECK(none.empty());
}

TEST_CASE("runtime shutdown unwinds the whole tree", "[conformance][nursery][shutdown]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    test::census closures;
    std::string text;
    {
      ramie::runtime rt(with_workers(workers));
      try {
        rt.run([&] {
          gate never;
          std::function<void(int)> grow = [&](int depth) {
            nursery n;
            for (int i = 0; i < 3; ++i) {
              n.spawn([&, depth, c = test::citizen(closures)] {
                if (depth != 0) grow(depth - 1);
                test::wait_at(never);
              });
            }
            if (depth == 4) {
              n.spawn([&] {
                while (closures.made.load() < 50) ramie::yield();
                rt.shutdown();
              });
            }
            n.join();
          };
          grow(4);
        });
      } catch (const cancelled& c) {
        text = ramie::to_string(c.kind());
      }
    }
    CHECK(text == "shutdown");
    CHECK(closures.made.load() >= 50);
    CHECK(closures.alive() == 0);
  }
}

// N22, X10
TEST_CASE("a stop token that is asked for after the shutdown is stopped", "[conformance][nursery][shutdown]") {
  bool before = true, after = false;
  ramie::run(with_workers(1), [&] {
    nursery fresh, n;
    before = fresh.get_stop_token().stop_requested();
    (void)n.shutdown(1s);
    after = n.get_stop_token().stop_requested();
    n.join();
    fresh.join();
  });
  CHECK_FALSE(before);
  CHECK(after);
}

}  // namespace conformance_nursery_stopping
