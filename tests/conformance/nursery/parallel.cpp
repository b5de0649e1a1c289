// SPDX-License-Identifier: BSL-1.0
// parallel_invoke and parallel_for: each call once, by whoever is there; waits, failures and cancellations in calls.
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_parallel {

using ramie::parallel_for;
using ramie::parallel_invoke;
using test::with_workers;
using test::runtime_internal::gate;

template <class F>
std::string thrown_by(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  } catch (const ramie::cancelled&) {
    return "cancelled";
  }
  return "nothing";
}

TEST_CASE("calls that nobody takes are plain calls: the last function first, no fiber", "[conformance][nursery][parallel]") {
  test::journal<int> order;
  std::uint64_t fibers = 99;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    const auto before = rt.stats().total.spawned;
    parallel_invoke([&] { order.add(1); }, [&] { order.add(2); }, [&] { order.add(3); });
    parallel_for(3, [&](std::size_t i) { order.add(10 + static_cast<int>(i)); });
    std::vector<std::function<void()>> many{[&] { order.add(20); }, [&] { order.add(21); }};
    parallel_invoke(many);
    parallel_invoke([&] { order.add(30); });
    parallel_for(1, [&](std::size_t i) { order.add(40 + static_cast<int>(i)); });
    parallel_for(0, [&](std::size_t) { order.add(-1); });
    fibers = rt.stats().total.spawned - before;
  });
  CHECK(order.entries() == std::vector<int>{3, 2, 1, 10, 11, 12, 20, 21, 30, 40});
  CHECK(fibers == 0);
}

std::size_t tree_sum(std::size_t first, std::size_t leaves) {
  if (leaves == 1) return first;
  std::vector<std::size_t> sums(4);
  parallel_for(sums.size(), [&](std::size_t i) { sums[i] = tree_sum(first + i * leaves / 4, leaves / 4); });
  return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}
int fib(int n) {
  if (n < 2) return n;
  int x = 0, y = 0;
  parallel_invoke([&] { x = fib(n - 1); }, [&] { y = fib(n - 2); });
  return x + y;
}

TEST_CASE("each index is called once, however many workers there are", "[conformance][nursery][parallel]") {
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    for (const bool chaos : {false, true}) {
      test::findings found;
      auto o = with_workers(workers);
      if (chaos) o.chaos = ramie::chaos_mode{5};
      const std::size_t leaves = chaos ? 64 : 4096;
      ramie::runtime rt(o);
      rt.run([&] {
        for (const std::size_t count : {1, 2, 3, 17, 1000}) {
          std::vector<std::atomic<int>> calls(count);
          parallel_for(count, [&](std::size_t i) {
            calls[i].fetch_add(1);
            if (i % 7 == 0) ramie::yield();
          });
          for (const auto& each : calls) EXPECT(found, each.load() == 1);
          int sum = 0;
          std::vector<int> elements(count, 1);
          parallel_for(elements, [](int& e) { e = 2; });
          for (const int e : elements) sum += e;
          EXPECT(found, sum == 2 * static_cast<int>(count));
        }
        EXPECT(found, tree_sum(0, leaves) == leaves * (leaves - 1) / 2);
        EXPECT(found, fib(chaos ? 8 : 18) == (chaos ? 21 : 2584));
      });
      CHECK(found.wrong().empty());
      const auto total = rt.stats().total;
      CHECK(total.spawned + 1 == total.started + total.discarded);  // run's own fiber came from outside
    }
  }
}

TEST_CASE("a call that waits leaves the others to any worker", "[conformance][nursery][parallel]") {
  for (const unsigned workers : {1u, 2u}) {
    int passed = 0;
    ramie::run(with_workers(workers), [&] {
      gate door;
      parallel_invoke([&] { door.open(); }, [&] { test::wait_at(door); });
      ++passed;
      ramie::channel<std::size_t> there(0), back(0);  // each call but the last needs the next one
      std::atomic<int> met{0};
      parallel_for(2, [&](std::size_t i) {
        if (i == 0) {
          there.send(i);
          met.fetch_add(back.recv().has_value());
        } else {
          met.fetch_add(there.recv().has_value());
          back.send(i);
        }
      });
      passed += met.load();
    });
    CHECK(passed == 3);
  }
}

// On one worker: the direct call waits, so the worker takes the offered one, as a fiber.
TEST_CASE("what a worker has taken is a fiber, which fails and is described like one", "[conformance][nursery][parallel]") {
  const test::reports reported;
  std::string first, both;
  std::uint64_t fibers = 0;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    const auto before = rt.stats().total.spawned;
    gate taken;
    first = thrown_by([&] {
      parallel_invoke(
          [&] {
            taken.open();
            throw std::runtime_error("the taken one");
          },
          [&] { test::wait_at(taken); });
    });
    fibers = rt.stats().total.spawned - before;
    gate again;
    both = thrown_by([&] {
      parallel_invoke(
          [&] {
            again.open();
            throw std::runtime_error("the taken one");
          },
          [&] {
            test::wait_at(again);
            throw std::runtime_error("the caller's");
          });
    });
  });
  CHECK(first == "the taken one");
  CHECK(fibers == 1);
  CHECK(both == "the caller's");
  REQUIRE(reported.count(ramie::report_kind::lost_failure) == 1);
  CHECK(reported.taken().front().text == "the taken one");
}

TEST_CASE("after a failure that the caller has seen no call begins", "[conformance][nursery][parallel]") {
  const test::reports reported;
  for (const unsigned workers : {1u, 4u}) {
    std::atomic<int> begun{0}, ended{0};
    std::string loop, pair;
    ramie::run(with_workers(workers), [&] {
      loop = thrown_by([&] {
        parallel_for(1'000, [&](std::size_t i) {
          begun.fetch_add(1);
          if (i == 3) throw std::runtime_error("at three");
          ended.fetch_add(1);
        });
      });
      bool called = false;
      pair = thrown_by([&] { parallel_invoke([&] { called = true; }, [] { throw std::runtime_error("at once"); }); });
      if (workers == 1 && called) pair += ", but the other was called";
    });
    CHECK(loop == "at three");
    CHECK(pair == "at once");
    CHECK(begun.load() == ended.load() + 1);
    if (workers == 1) CHECK(begun.load() == 4);
  }
  CHECK(reported.taken().empty());
}

// The caller's call fails while another worker is inside of one. That one goes on when the caller waits for its end, so
// the failure has been seen; neither it nor the caller's worker, which looks for work, begins another call.
TEST_CASE("who has taken a part of a loop begins no call after a failure", "[conformance][nursery][parallel]") {
  std::atomic<bool> taken{false}, seen{false};
  std::atomic<int> too_late{0};
  std::string thrown;
  auto o = with_workers(2);
  o.elastic = false;
  ramie::runtime rt(o);
  rt.run([&] {
    const auto parks = rt.stats().total.parks;
    thrown = thrown_by([&] {
      parallel_for(64, [&](std::size_t i) {
        if (seen.load()) too_late.fetch_add(1);
        if (i == 0) {
          while (!taken.load()) std::this_thread::yield();
          throw std::runtime_error("at zero");
        }
        taken.store(true);
        while (rt.stats().total.parks == parks) std::this_thread::yield();
        seen.store(true);
      });
    });
  });
  CHECK(thrown == "at zero");
  CHECK(seen.load());
  CHECK(too_late.load() == 0);
}

TEST_CASE("a cancellation from outside ends the calls that wait, and a loop of calls that do not",
          "[conformance][nursery][parallel]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> unwound{0}, went_on{0};
    bool stopped_early = false;
    ramie::run(with_workers(workers), [&] {
      gate never;
      std::atomic<int> waiting{0};
      ramie::nursery n;
      n.spawn([&] {
        const auto wait = [&] {
          waiting.fetch_add(1);
          try {
            test::wait_at(never);
          } catch (const ramie::cancelled&) {
            unwound.fetch_add(1);
            throw;
          }
        };
        parallel_invoke(wait, wait, wait);
        went_on.fetch_add(1);
      });
      n.spawn([&] {
        std::atomic<std::size_t> calls{0};
        try {
          parallel_for(1'000'000'000, [&](std::size_t) {
            if (calls.fetch_add(1) != 100) return;
            while (waiting.load() < 3) ramie::yield();
            n.cancel();
          });
          went_on.fetch_add(1);
        } catch (const ramie::cancelled&) {
          stopped_early = true;
          throw;
        }
      });
      n.join();
    });
    CHECK(unwound.load() == 3);
    CHECK(went_on.load() == 0);
    CHECK(stopped_early);
  }
}

// task::cancel cancels one fiber alone, and what is inside of it: also the fibers that have taken its calls, and theirs.
TEST_CASE("a task that is cancelled alone ends the calls that others have taken", "[conformance][nursery][parallel]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> unwound{0}, went_on{0};
    ramie::run(with_workers(workers), [&] {
      gate never;
      std::atomic<int> waiting{0};
      const auto wait = [&] {
        waiting.fetch_add(1);
        try {
          test::wait_at(never);
        } catch (const ramie::cancelled&) {
          unwound.fetch_add(1);
          throw;
        }
      };
      ramie::nursery n;
      auto pairs = n.spawn([&] {
        const auto pair = [&] { parallel_invoke(wait, wait); };
        parallel_invoke(pair, pair);
        went_on.fetch_add(1);
      });
      auto loop = n.spawn([&] {
        parallel_for(4, [&](std::size_t) { wait(); });
        went_on.fetch_add(1);
      });
      while (waiting.load() < 8) ramie::yield();
      pairs.cancel();
      loop.cancel();
      n.join();
    });
    CHECK(unwound.load() == 8);
    CHECK(went_on.load() == 0);
  }
}

TEST_CASE("calls inherit fiber-local values, whoever makes them", "[conformance][nursery][parallel]") {
  static ramie::fiber_local<int, ramie::inherit::yes> heirloom;
  test::findings found;
  std::atomic<int> calls{0};
  ramie::run(with_workers(2), [&] {
    heirloom.set(7);
    parallel_for(20, [&](std::size_t) {
      EXPECT(found, heirloom.find() != nullptr, *heirloom == 7);
      calls.fetch_add(1);
      ramie::yield();
    });
    gate door;
    parallel_invoke([&] { door.open(); },
                    [&] {
                      test::wait_at(door);
                      EXPECT(found, *heirloom == 7);
                    });
    EXPECT(found, thrown_by([] { parallel_for(3, [](std::size_t i) { throw std::out_of_range(std::to_string(i)); }); }) != "nothing");
  });
  CHECK(found.wrong().empty());
  CHECK(calls.load() == 20);
}

// On one worker. The loop has begun without values to inherit, so there is nothing that the calls of others would miss.
TEST_CASE("a share whose calls have left a value to inherit is offered like any other", "[conformance][nursery][parallel]") {
  static ramie::fiber_local<int, ramie::inherit::yes> heirloom;
  std::vector<std::size_t> order;
  ramie::run(with_workers(1), [&] {
    gate all_but_first, first;
    parallel_for(8, [&](std::size_t i) {
      heirloom.set(static_cast<int>(i));
      if (i == 0) test::wait_at(all_but_first);
      if (i == 2) test::wait_at(first);  // 0 and 2 wait, in two fibers: somebody else is needed for 1
      if (i == 1) first.open();
      order.push_back(i);
      if (order.size() == 7) all_but_first.open();
    });
  });
  CHECK(order.size() == 8);
  CHECK(order.back() == 0);
}

// The second child of the fiber with a value to inherit can't be made, after the first one has failed.
struct copied_once {
  int* copies = nullptr;
  copied_once() = default;
  explicit copied_once(int& count) : copies(&count) {}
  copied_once(copied_once&&) = default;
  copied_once& operator=(copied_once&&) = default;
  copied_once(const copied_once& other) : copies(other.copies) {
    if (++*copies == 1) return;
    ramie::yield();
    throw std::length_error("no copy");
  }
};
TEST_CASE("a failure is reported when the caller unwinds for another reason", "[conformance][nursery][parallel]") {
  static ramie::fiber_local<copied_once, ramie::inherit::yes> heirloom;
  for (const bool loop : {false, true}) {
    const test::reports reported;
    std::string thrown;
    int copies = 0;
    ramie::run(with_workers(1), [&] {
      heirloom.set(copied_once(copies));
      const auto fail = [] { throw std::runtime_error("weather"); };
      thrown = thrown_by([&] { loop ? parallel_for(2, [&](std::size_t) { fail(); }) : parallel_invoke(fail, fail); });
    });
    INFO(loop);
    CHECK(thrown == "no copy");
    REQUIRE(reported.count(ramie::report_kind::lost_failure) == 1);
    CHECK(reported.taken().front().text == "weather");
  }
}

std::atomic<int> plain_calls{0};
void plain_call(std::size_t) {
  plain_calls.fetch_add(1);
}
TEST_CASE("what is called may be anything that can be", "[conformance][nursery][parallel]") {
  struct element {
    int calls = 0;
    int called() & { return ++calls; }
  };
  std::atomic<int> calls{0};
  element elements[3];
  ramie::run(with_workers(2), [&] {
    parallel_for(3, plain_call);
    parallel_for(3, &plain_call);
    const auto constant = [&calls](int) { return calls.fetch_add(1); };
    parallel_for(3, constant);
    parallel_for(3, [&calls, only = std::make_unique<int>(1)](std::size_t) mutable { calls.fetch_add(*only); });
    parallel_for(elements, &element::called);
    parallel_for(std::string_view("abc"), [&calls](char) { calls.fetch_add(1); });
    parallel_for(std::vector<int>{1, 2}, [&calls](int by) { calls.fetch_add(by); });
    std::vector<std::unique_ptr<int>> owned;
    owned.push_back(std::make_unique<int>(1));
    parallel_for(owned, [&calls](std::unique_ptr<int>& p) { calls.fetch_add(*std::exchange(p, nullptr)); });
    const auto one = [&calls] { return calls.fetch_add(1); };
    parallel_invoke(one, one, one, one, one, one, one, one);
    parallel_invoke(std::vector{one, one});
  });
  CHECK(plain_calls.load() == 6);
  CHECK(calls.load() == 3 + 3 + 3 + 3 + 1 + 8 + 2);
  for (const element& e : elements) CHECK(e.calls == 1);
}

TEST_CASE("a fiber that unwinds may still divide what it has to do", "[conformance][nursery][parallel]") {
  std::atomic<int> calls{0};
  ramie::run(with_workers(2), [&] {
    struct cleaner {
      std::atomic<int>& calls;
      ~cleaner() {
        parallel_for(10, [this](std::size_t) {
          ramie::yield();
          calls.fetch_add(1);
        });
      }
    };
    ramie::nursery n;
    n.spawn([&] {
      const cleaner at_end{calls};
      n.cancel();
      ramie::yield();
    });
    n.join();
  });
  CHECK(calls.load() == 10);
}

TEST_CASE("a join inside of a call does not take the caller's fork for its child", "[conformance][nursery][parallel]") {
  for (const unsigned workers : {1u, 2u}) {
    test::journal<int> order;
    ramie::run(with_workers(workers), [&] {
      parallel_invoke([&] { order.add(1); },
                      [&] {
                        ramie::nursery n;
                        auto waiting = n.spawn([] { ramie::yield(); });
                        waiting.get();
                        n.join();
                        order.add(2);
                      });
      order.add(3);
    });
    CHECK(order.entries().size() == 3);
    CHECK(order.entries().back() == 3);
  }
}

// The joiner finds the fork of its child at the young end, with the nursery as its home: it calls it in place, as a fiber.
TEST_CASE("a join of the nursery around does not count a fork", "[conformance][nursery][parallel]") {
  int calls = 0;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    gate joiner, child;
    ramie::nursery n;
    n.spawn([&] {
      parallel_invoke(
          [&] {
            ++calls;
            child.open();
          },
          [&] {
            joiner.open();
            test::wait_at(child);
            ++calls;
          });
    });
    test::wait_at(joiner);
    n.join();
  });
  CHECK(calls == 2);
  const auto total = rt.stats().total;
  CHECK(total.spawned + 1 == total.started);  // run's own fiber came from outside
}

TEST_CASE("whoever divides nothing over and over lets others have their turn", "[conformance][nursery][parallel]") {
  int turns = 0;
  ramie::run(with_workers(1), [&] {
    const std::function<void()> ways[] = {
        [] { parallel_for(0, [](std::size_t) {}); },
        [] { parallel_for(1, [](std::size_t) {}); },
        [] { parallel_invoke([] {}); },
        [] { parallel_invoke([] {}, [] {}); },
        [] { parallel_for(2, [](std::size_t) {}); },
    };
    ramie::nursery n;
    for (const auto& way : ways) {
      bool had_turn = false;
      n.spawn([&] { had_turn = true; });
      while (!had_turn) way();
      ++turns;
    }
    n.join();
  });
  CHECK(turns == 5);
}

TEST_CASE("on a plain thread parallel calls are refused", "[conformance][nursery][parallel]") {
  const auto refused = [](const char* name) {
    return std::string("ramie: ") + name + ": called outside a fiber. Call it inside run().";
  };
  CHECK(thrown_by([] { parallel_invoke([] {}, [] {}); }) == refused("parallel_invoke"));
  CHECK(thrown_by([] { parallel_invoke([] {}); }) == refused("parallel_invoke"));
  CHECK(thrown_by([] { parallel_for(0, [](std::size_t) {}); }) == refused("parallel_for"));
  CHECK(thrown_by([] { parallel_for(9, [](std::size_t) {}); }) == refused("parallel_for"));
}

}  // namespace conformance_nursery_parallel
