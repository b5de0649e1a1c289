// SPDX-License-Identifier: BSL-1.0
// Cancellation as nurseries pass it on: deadlines, stop tokens, shutdown.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/crew.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_cancelling {

using namespace std::chrono_literals;
using ramie::cancel_kind;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::detail::gate;

TEST_CASE("cancelling a nursery is not a failure of its join", "[conformance][nursery][cancel]") {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> unwound{0};
    bool first = false, second = true, closing = false;
    ramie::run(with_workers(workers), [&] {
      gate never;
      nursery n;
      for (int i = 0; i < 10; ++i) {
        n.spawn([&] {
          nursery inner;
          inner.spawn([&] {
            try {
              test::wait_at(never);
            } catch (const cancelled& c) {
              unwound.fetch_add(c.reason().text == "enough");
              throw;
            }
          });
          inner.join();
        });
      }
      for (int i = 0; i < 20; ++i) ramie::yield();
      first = n.cancel("enough");
      second = n.cancel("again");
      closing = n.closing();
      n.join();
    });
    CHECK(unwound.load() > 0);
    CHECK(first);
    CHECK_FALSE(second);
    CHECK(closing);
  }
}

TEST_CASE("a cancellation says who, where, why and along which scopes", "[conformance][nursery][cancel]") {
  std::string text;
  std::size_t path = 0;
  ramie::cancel_reason reason;
  std::atomic<bool> waiting{false};
  ramie::run(with_workers(1), [&] {
    gate never;
    nursery n;
    n.spawn([&] {
      nursery inner;
      inner.spawn([&] {
        try {
          (void)ramie::with_timeout(1h, [&] {
            waiting.store(true);
            test::wait_at(never);
          });
        } catch (const cancelled& c) {
          text = c.describe();
          path = c.path().size();
          reason = c.reason();
          throw;
        }
      });
      inner.join();
    });
    n.spawn({.name = "the canceller"}, [&] {
      while (!waiting.load()) ramie::yield();
      n.cancel("time for bed");
    });
    n.join();
  });
  INFO(text);
  CHECK(path == 3);
  CHECK(reason.origin_name == "the canceller");
  CHECK(reason.origin_fiber != 0);
  CHECK(std::string(reason.where.file_name()).find("nursery_cancelling.cpp") != std::string::npos);
  CHECK(text.find("time for bed") != std::string::npos);
}

TEST_CASE("a swallowed cancellation is counted and named", "[conformance][nursery][cancel]") {
  test::reports reported;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    gate never;
    nursery n;
    n.spawn({.name = "deaf"}, [&] {
      for (int i = 0; i < 4; ++i) {
        try {
          test::wait_at(never);
        } catch (const cancelled&) {
        }
      }
    });
    ramie::yield();
    n.cancel();
    n.join();
  });
  CHECK(rt.stats().total.cancel_redelivered == 3);
  REQUIRE(reported.taken().size() == 1);
  CHECK(reported.taken()[0].kind == ramie::report_kind::swallowed_cancellation);
  CHECK(reported.taken()[0].who.find("'deaf'") != std::string::npos);
}

TEST_CASE("a child cancelled before it starts ends without running", "[conformance][nursery][cancel]") {
  test::census closures;
  std::atomic<int> ran{0};
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.cancel();
    for (int i = 0; i < 10; ++i) n.spawn([&, c = test::citizen(closures)] { ran.fetch_add(1); });
    auto t = n.spawn([] { return 1; });
    n.join();
    CHECK_THROWS_AS(t.get(), cancelled);
  });
  CHECK(ran.load() == 0);
  CHECK(closures.made.load() == 10);
  CHECK(closures.alive() == 0);
}

TEST_CASE("a cancellation from outside passes through the join, after the children", "[conformance][nursery][cancel]") {
  bool thrown = false, after_children = false;
  ramie::run(with_workers(2), [&] {
    std::atomic<int> live{0};
    nursery outer;
    outer.spawn([&] {
      nursery inner;
      for (int i = 0; i < 5; ++i) {
        inner.spawn([&] {
          live.fetch_add(1);
          struct leave {
            std::atomic<int>& count;
            ~leave() { count.fetch_sub(1); }
          } const at_the_end{live};
          ramie::shield not_at_once;
          for (int k = 0; k < 20; ++k) ramie::yield();
          outer.cancel();
        });
      }
      try {
        inner.join();
      } catch (const cancelled& c) {
        thrown = outer.owns(c);
        after_children = live.load() == 0;
        throw;
      }
    });
    outer.join();
  });
  CHECK(thrown);
  CHECK(after_children);
}

TEST_CASE("a nursery opened under a shield is not reached until it drops", "[conformance][nursery][cancel]") {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> finished{0};
    bool after = false;
    ramie::run(with_workers(workers), [&] {
      nursery outer;
      outer.spawn([&] {
        {
          ramie::shield s;
          nursery sheltered;
          outer.cancel();
          for (int i = 0; i < 5; ++i) {
            sheltered.spawn([&] {
              for (int k = 0; k < 5; ++k) ramie::yield();
              finished.fetch_add(1);
            });
          }
          sheltered.join();
        }
        try {
          ramie::check_cancelled();
        } catch (const cancelled&) {
          after = true;
          throw;
        }
      });
      outer.join();
    });
    CHECK(finished.load() == 5);
    CHECK(after);
  }
}

TEST_CASE("a thousand shields deep, nothing is delivered early", "[conformance][nursery][cancel]") {
  int early = 0;
  bool at_last = false;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.spawn([&] {
      std::function<void(int)> deeper = [&](int left) {
        ramie::shield s;
        if (left != 0) {
          deeper(left - 1);
        } else {
          n.cancel();
        }
        try {
          ramie::yield();
        } catch (const cancelled&) {
          ++early;
        }
      };
      deeper(100);
      std::vector<std::unique_ptr<ramie::shield>> thousand;
      for (int i = 0; i < 1'000; ++i) thousand.push_back(std::make_unique<ramie::shield>());
      while (thousand.size() > 1) {
        thousand.pop_back();
        if (ramie::stop_requested()) ++early;
      }
      thousand.pop_back();
      at_last = ramie::stop_requested();
    });
    n.join();
  });
  CHECK(early == 0);
  CHECK(at_last);
}

TEST_CASE("deadlines: each catches its own, the nearest wins", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  std::vector<std::string> said;
  ramie::run(o, [&] {
    gate never;
    nursery n;
    n.spawn([&] {
      const auto outer = ramie::with_timeout(10s, [&] {
        const bool inner = ramie::with_timeout(1s, [&] { test::wait_at(never); });
        said.push_back(inner ? "inner done" : "inner timed out");
        const auto value = ramie::with_timeout(1h, [] { return 5; });
        said.push_back(value == 5 ? "value" : "no value");
        (void)ramie::with_timeout(1h, [&] { test::wait_at(never); });
        said.push_back("not reached");
        return 1;
      });
      said.push_back(outer ? "outer done" : "outer timed out");
    });
    n.spawn([&] {
      ramie::yield();
      clock.advance(999ms);
      for (int i = 0; i < 3; ++i) ramie::yield();
      said.push_back("a second is almost over");
      clock.advance(1ms);
      for (int i = 0; i < 3; ++i) ramie::yield();
      clock.advance(9s);
    });
    n.join();
    int here = 7;
    const auto reference = ramie::with_deadline(ramie::now() + 1s, [&]() -> int& { return here; });
    said.push_back(&reference->get() == &here ? "reference" : "copy");
    const bool expired = ramie::with_timeout(-1s, [] { ramie::check_cancelled(); });
    const bool long_ago = ramie::with_timeout(std::chrono::hours::min(), [] { ramie::check_cancelled(); });
    said.push_back(expired || long_ago ? "late" : "expired");
  });
  CHECK(said == std::vector<std::string>{"a second is almost over", "inner timed out", "value", "outer timed out",
                                         "reference", "expired"});
}

TEST_CASE("a nursery's own deadline", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  std::atomic<int> in_time{0}, late{0};
  std::atomic<bool> waiting{false};
  ramie::run(o, [&] {
    gate never;
    nursery n;
    n.cancel_after(1s);
    n.cancel_after(5s);  // the later call replaces the earlier one
    n.spawn([&] {
      while (!waiting.load()) ramie::yield();
      clock.advance(2s);
      ramie::yield();
      if (!ramie::stop_requested()) in_time.fetch_add(1);
      clock.advance(4s);
    });
    n.spawn([&] {
      waiting.store(true);
      try {
        test::wait_at(never);
      } catch (const cancelled& c) {
        late.fetch_add(c.kind() == cancel_kind::deadline);
        throw;
      }
    });
    n.join();
    nursery unhurried;
    unhurried.cancel_after(std::chrono::hours::max());
    unhurried.join();
    nursery gone_in_time;
    gone_in_time.cancel_after(1s);
    gone_in_time.join();
  });
  clock.advance(1h);
  CHECK(in_time.load() == 1);
  CHECK(late.load() == 1);
}

TEST_CASE("deadlines by the machine's clock", "[conformance][nursery][deadline]") {
  bool done = true;
  ramie::run(with_workers(1), [&] {
    gate never;
    done = ramie::with_timeout(1ms, [&] { test::wait_at(never); });
  });
  CHECK_FALSE(done);
}

TEST_CASE("a deadline that has passed cancels at the first cancellation point", "[conformance][nursery][deadline]") {
  int passed = 0;
  for (const unsigned workers : {1u, 2u}) {
    ramie::run(test::with_workers(workers), [&] {
      for (int i = 0; i < 200; ++i) {
        if (ramie::with_timeout(0s, [] { ramie::check_cancelled(); })) ++passed;
        if (ramie::with_deadline(ramie::now(), [] { ramie::yield(); })) ++passed;
        ramie::nursery n;
        n.cancel_after(0s);
        n.spawn([&] { ++passed; });  // never starts
        n.join();
      }
    });
  }
  CHECK(passed == 0);
}

TEST_CASE("many deadlines come in order", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  test::journal<int> order;
  ramie::run(o, [&] {
    gate never;
    nursery n;
    std::atomic<int> waiting{0};
    for (int i = 0; i < 500; ++i) {
      n.spawn([&, when = (i * 193) % 500] {
        (void)ramie::with_timeout(std::chrono::seconds(when + 1), [&] {
          waiting.fetch_add(1);
          if (when % 7 == 0) return;  // removed before its time
          test::wait_at(never);
        });
        if (when % 7 != 0) order.add(when);
      });
    }
    while (waiting.load() != 500) ramie::yield();
    for (int s = 0; s < 501; ++s) {
      clock.advance(1s);
      for (int k = 0; k < 3; ++k) ramie::yield();
    }
    n.join();
  });
  const auto seen = order.entries();
  CHECK(seen.size() == 500 - 72);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

// The deadline comes at any moment of the join: whenever it does, the join ends.
TEST_CASE("a deadline reaches a join that is about to park", "[conformance][nursery][deadline]") {
  int ended = 0;
  const int rounds = test::scaled(300, 40);
  for (int round = 0; round < rounds; ++round) {
    ramie::manual_clock clock;
    auto o = with_workers(2);
    o.clock = &clock;
    std::atomic<bool> in_scope{false};
    std::thread hand([&] {
      test::until([&] { return in_scope.load(); });
      for (int i = 0; i < round; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      clock.advance(2s);
    });
    ramie::run(o, [&] {
      gate until_timeout;
      nursery n;
      n.spawn([&] { test::wait_at(until_timeout); });
      const bool in_time = ramie::with_timeout(1s, [&] {
        in_scope.store(true);
        n.join();
      });
      ended += !in_time;
      until_timeout.open();
      n.join();
    });
    hand.join();
  }
  CHECK(ended == rounds);
}

TEST_CASE("a nursery joined from within an inner scope cancels nobody any more", "[conformance][nursery][cancel]") {
  int after = 0;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.spawn([] { throw std::runtime_error("once"); });
    (void)ramie::with_timeout(1h, [&] {
      try {
        n.join();
      } catch (const std::runtime_error&) {
        ++after;
      }
      ramie::yield();  // n's failure has been received: its cancellation is over
      ++after;
    });
    ramie::yield();
    ++after;
    if (!n.cancel()) ++after;
  });
  CHECK(after == 4);
}

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

// One nursery looks at its scopes when another one's has been cancelled, and ends; the next one there is inside that
// other.
TEST_CASE("a new nursery does not go by what its memory knew of other scopes", "[conformance][nursery][cancel]") {
  bool stopped = false;
  ramie::run(with_workers(1), [&] {
    gate opened, cancelled_meanwhile, ended;
    nursery n;
    n.spawn([&] {
      {
        nursery clean;
        opened.open();
        test::wait_at(cancelled_meanwhile);
        ramie::check_cancelled();
        clean.join();
      }
      ended.open();
    });
    n.spawn([&] {
      nursery other;
      test::wait_at(opened);
      other.cancel();
      {
        const ramie::shield meanwhile;
        cancelled_meanwhile.open();
        test::wait_at(ended);
      }
      nursery in_the_same_place;
      stopped = ramie::stop_requested();
    });
    n.join();
  });
  CHECK(stopped);
}

TEST_CASE("what a cancelled child leaves behind is cleaned up as that fiber", "[conformance][nursery][cancel]") {
  static ramie::fiber_local<int> other;
  struct uses_another {
    int* seen = nullptr;
    uses_another() = default;
    uses_another(const uses_another&) = default;
    ~uses_another() {
      if (seen != nullptr) *seen += 1 + other.get();
    }
  };
  static ramie::fiber_local<uses_another, ramie::inherit::yes> heirloom;
  struct waits_when_it_goes {
    bool armed = true;
    waits_when_it_goes() = default;
    waits_when_it_goes(waits_when_it_goes&& from) noexcept : armed(std::exchange(from.armed, false)) {}
    ~waits_when_it_goes() {
      if (!armed) return;
      ramie::shield s;
      ramie::yield();
    }
  };
  int seen = 0, ran = 0;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.spawn([&] {
      heirloom->seen = &seen;
      nursery inner;
      inner.cancel();
      for (int i = 0; i < 5; ++i) inner.spawn([&ran, w = waits_when_it_goes()] { ++ran; });
      inner.join();
      heirloom->seen = nullptr;
    });
    n.join();
  });
  CHECK(ran == 0);
  CHECK(seen == 5);
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
      for (int i = 0; i < 10; ++i) ramie::yield();
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
  CHECK((stragglers[0] + stragglers[1]).find("nursery_cancelling.cpp:") != std::string::npos);
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

}  // namespace conformance_nursery_cancelling
