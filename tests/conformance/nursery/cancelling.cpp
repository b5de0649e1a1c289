// SPDX-License-Identifier: BSL-1.0
// Cancellation as nurseries pass it on: who is reached, when, and what is told.
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_cancelling {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

TEST_CASE("cancelling a nursery is not a failure of its join", "[conformance][nursery][cancel]") {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> waiting{0}, unwound{0};
    bool first = false, second = true, closing = false;
    ramie::run(with_workers(workers), [&] {
      gate never;
      nursery n;
      for (int i = 0; i < 10; ++i) {
        n.spawn([&] {
          nursery inner;
          inner.spawn([&] {
            waiting.fetch_add(1);
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
      while (waiting.load() != 10) ramie::yield();
      first = n.cancel("enough");
      second = n.cancel("again");
      closing = n.closing();
      n.join();
    });
    CHECK(unwound.load() == 10);
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
  CHECK(std::string(reason.where.file_name()).find("nursery/cancelling.cpp") != std::string::npos);
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

}  // namespace conformance_nursery_cancelling
