// SPDX-License-Identifier: BSL-1.0
// retry and rate_limiter, to the nanosecond.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/on_many.hpp>
#include <support/test.hpp>

namespace conformance_time_helpers {

using namespace std::chrono_literals;
using ramie::jitter;
using ramie::now;
using ramie::rate_limiter;
using ramie::retry;
using ramie::retry_policy;
using ramie::testing::virtual_clock;
using ramie::testing::wait_all_blocked;
using std::chrono::nanoseconds;
using test::findings;
using test::with_workers;

// f(found) with a virtual clock, without chaos.
template <class F>
void in_virtual_time(F f) {
  test::in_virtual_time(f, test::chaos::without);
}

// When each attempt of a call that always fails is made, from the first one on.
std::vector<nanoseconds> attempts_at(const retry_policy& policy) {
  std::vector<nanoseconds> all;
  const auto began = now();
  try {
    retry(policy, [&] {
      all.push_back(now() - began);
      throw std::runtime_error("again");
    });
  } catch (const std::runtime_error&) {
  }
  return all;
}

TEST_CASE("retry pauses longer each time, up to a limit", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    const retry_policy p{
        .attempts = 6, .first_delay = 100ms, .factor = 2, .longest_delay = 500ms, .spread = jitter::none()};
    EXPECT(found, attempts_at(p) == (std::vector<nanoseconds>{0ms, 100ms, 300ms, 700ms, 1200ms, 1700ms}));
    const retry_policy even{.attempts = 3, .first_delay = 1s, .factor = 1, .spread = jitter::none()};
    EXPECT(found, attempts_at(even) == (std::vector<nanoseconds>{0s, 1s, 2s}));
    const retry_policy at_once{.attempts = 3, .first_delay = 0s, .spread = jitter::none()};
    EXPECT(found, attempts_at(at_once) == (std::vector<nanoseconds>{0s, 0s, 0s}));
    const retry_policy short_limit{.attempts = 3, .first_delay = 1h, .longest_delay = 1s, .spread = jitter::none()};
    EXPECT(found, attempts_at(short_limit) == (std::vector<nanoseconds>{0s, 1s, 2s}));
    EXPECT(found, attempts_at({.attempts = 1}) == std::vector<nanoseconds>{0s});
  });
}

TEST_CASE("retry returns the first result that will do, or throws the last failure", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    int calls = 0;
    const auto third_time = [&] {
      if (++calls < 3) throw std::runtime_error("not yet");
      return std::make_unique<int>(calls);
    };
    EXPECT(found, *retry({}, third_time) == 3);
    calls = 0;
    std::string last;
    try {
      retry({.attempts = 4}, [&] { throw std::runtime_error("number " + std::to_string(++calls)); });
    } catch (const std::runtime_error& e) {
      last = e.what();
    }
    EXPECT(found, last == "number 4");
    calls = 0;
    retry({}, [&] { ++calls; });
    EXPECT(found, calls == 1);
    int there = 0;
    EXPECT(found, &retry({}, [&]() -> int& { return there; }) == &there);
  });
}

TEST_CASE("retry asks which failures and results are worth it", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    retry_policy p{.attempts = 10, .first_delay = 1s, .spread = jitter::none()};
    p.retry_on = [](const std::exception_ptr& failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::system_error&) {
        return true;
      } catch (...) {
        return false;
      }
    };
    int calls = 0;
    std::string last;
    try {
      retry(p, [&] {
        if (++calls < 3) throw std::system_error(EAGAIN, std::generic_category());
        throw std::logic_error("for good");
      });
    } catch (const std::logic_error& e) {
      last = e.what();
    }
    EXPECT(found, calls == 3, last == "for good");

    calls = 0;
    const auto too_small = [](int value) { return value < 4; };
    EXPECT(found, retry(
                      p, [&] { return ++calls; }, too_small) == 4);
    calls = 0;
    p.attempts = 3;
    EXPECT(found, retry(
                      p, [&] { return ++calls; }, too_small) == 3);  // the last one, such as it is
    calls = 0;
    const auto never_sure = [](int) -> bool { throw std::system_error(EIO, std::generic_category()); };
    EXPECT(found, retry(
                      p, [&] { return ++calls; }, never_sure) == 3);  // asked twice, and failed like the call
  });
}

TEST_CASE("retry never retries a cancellation", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    const retry_policy p{.attempts = 100, .first_delay = 1s, .spread = jitter::none()};
    int calls = 0;
    const auto began = now();
    found.expect(!ramie::with_timeout(3500ms, [&] {
      retry(p, [&] {
        ++calls;
        throw std::runtime_error("again");
      });
    }));
    EXPECT(found, calls == 3, now() == began + 3500ms);  // at 0, 1 and 3 seconds; in the pause to 7
    calls = 0;
    found.expect(!ramie::with_timeout(1s, [&] {
      retry(p, [&] {
        ++calls;
        ramie::sleep_for(1h);
      });
    }));
    EXPECT(found, calls == 1);
  });
}

// The nursery's own cancellation, which has left it: whether the child's failure cut the body short or was thrown by the
// join makes no difference.
TEST_CASE("retry takes another scope's cancellation for the failure behind it", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    for (const bool cut_short : {false, true}) {
      int calls = 0;
      retry_policy p{.attempts = 5, .first_delay = 1s, .spread = jitter::none()};
      p.retry_on = [&](const std::exception_ptr& failure) {
        try {
          std::rethrow_exception(failure);
        } catch (const std::runtime_error& e) {
          return std::string(e.what()) == "disk";
        } catch (...) {
          return false;
        }
      };
      retry(p, [&] {
        ramie::nursery n;
        if (++calls < 3) n.spawn([] { throw std::runtime_error("disk"); });
        if (cut_short && calls < 3) ramie::sleep_for(1h);
        n.join();
      });
      EXPECT(found, calls == 3);
    }
  });
}

TEST_CASE("jitter is drawn from the seed, within its bounds", "[conformance][time][retry]") {
  in_virtual_time([](findings& found) {
    const auto pauses = [](jitter how, std::uint64_t seed) {
      const auto at = attempts_at({.attempts = 50, .first_delay = 1s, .factor = 1, .spread = how, .seed = seed});
      std::vector<nanoseconds> all;
      for (std::size_t i = 1; i < at.size(); ++i) all.push_back(at[i] - at[i - 1]);
      return all;
    };
    EXPECT(found, pauses(jitter::full(), 7) == pauses(jitter::full(), 7));
    EXPECT(found, pauses(jitter::full(), 7) != pauses(jitter::full(), 8));
    EXPECT(found, pauses(jitter::full(), 0) != pauses(jitter::full(), 0));
    const auto within = [&](jitter how, nanoseconds least, nanoseconds most) {
      nanoseconds low = nanoseconds::max(), high{};
      for (const nanoseconds each : pauses(how, 3)) {
        EXPECT(found, each >= least, each <= most);
        low = std::min(low, each);
        high = std::max(high, each);
      }
      const auto room = most - least;
      EXPECT(found, room == 0s || (low < least + room / 4 && high > most - room / 4));  // and all over it
    };
    within(jitter::full(), 0s, 1s);
    within(jitter::ratio(0.2), 800ms, 1200ms);
    within(jitter::ratio(0), 1s, 1s);
    within(jitter::none(), 1s, 1s);
    const auto at = attempts_at({.attempts = 50,
                                 .first_delay = 1s,
                                 .factor = 1,
                                 .longest_delay = 1s,
                                 .spread = jitter::ratio(0.2),
                                 .seed = 3});
    for (std::size_t i = 1; i < at.size(); ++i) EXPECT(found, at[i] - at[i - 1] <= 1s);  // the limit is for jitter, too
  });
}

TEST_CASE("a policy that can't work is refused before the call", "[conformance][time][retry]") {
  int calls = 0;
  const auto refused = [&](const retry_policy& p) { CHECK_THROWS_AS(retry(p, [&] { ++calls; }), ramie::usage_error); };
  refused({.attempts = 0});
  refused({.first_delay = -1ns});
  refused({.factor = 0.5});
  refused({.factor = std::numeric_limits<double>::quiet_NaN()});
  refused({.factor = std::numeric_limits<double>::infinity()});
  refused({.longest_delay = -1s});
  refused({.spread = jitter::ratio(1.5)});
  refused({.spread = jitter::ratio(-0.1)});
  CHECK(calls == 0);
  CHECK(retry({.first_delay = 1us}, [&] { return ++calls < 3 ? throw 1 : calls; }) == 3);  // a plain thread
}

TEST_CASE("a rate limiter lets a burst through, then keeps to its rate", "[conformance][time][rate]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    rate_limiter limit(10, 3);
    std::vector<nanoseconds> at;
    for (int i = 0; i < 6; ++i) {
      limit.acquire();
      at.push_back(now() - began);
    }
    EXPECT(found, at == (std::vector<nanoseconds>{0ms, 0ms, 0ms, 100ms, 200ms, 300ms}));
    ramie::sleep_for(150ms);
    limit.acquire();  // one and a half were there
    limit.acquire();
    EXPECT(found, now() - began == 500ms);
    ramie::sleep_for(1h);  // full, no more
    for (int i = 0; i < 3; ++i) found.expect(limit.try_acquire());
    found.expect(!limit.try_acquire());
    const auto empty = now();
    limit.acquire(3);
    EXPECT(found, now() == empty + 300ms);
  });
}

TEST_CASE("who waits for a rate limiter until a deadline has taken nothing then", "[conformance][time][rate]") {
  in_virtual_time([](findings& found) {
    rate_limiter limit(10, 2);
    limit.acquire(2);
    const auto began = now();
    EXPECT(found, !limit.try_acquire_for(50ms), now() == began + 50ms);
    EXPECT(found, limit.try_acquire_until(began + 1s), now() == began + 100ms);
    EXPECT(found, !limit.try_acquire_until(began), now() == began + 100ms);
    ramie::sleep_for(100ms);
    EXPECT(found, limit.try_acquire_until(began), !limit.try_acquire());  // late, but it is there
    ramie::nursery n;
    n.spawn([&] { limit.acquire(2); });
    wait_all_blocked();
    EXPECT(found, !limit.try_acquire_for(150ms), now() == began + 350ms);  // in line
    n.join();
    EXPECT(found, now() == began + 400ms, limit.try_acquire_for(1h), now() == began + 500ms);
    try {
      (void)limit.try_acquire_for(1s, 3);
      found.expect(false);
    } catch (const ramie::usage_error&) {
    }
  });
}

TEST_CASE("a rate limiter loses no fraction", "[conformance][time][rate]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    rate_limiter thirds(3);
    for (int i = 0; i <= 300; ++i) thirds.acquire();
    EXPECT(found, now() - began == 100s);
    const auto then = now();
    rate_limiter slow(2, 1, 1h);
    for (int i = 0; i < 3; ++i) slow.acquire();
    EXPECT(found, now() - then == 1h);
    const auto last = now();
    rate_limiter fast(3'000'000'000, 3);
    for (int i = 0; i < 3'003; ++i) fast.acquire();
    EXPECT(found, now() - last == 1us);
  });
}

TEST_CASE("who waits for a rate limiter is served in the order they came", "[conformance][time][rate]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    virtual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    test::journal<int> order;
    findings found;
    ramie::run(o, [&] {
      rate_limiter limit(1, 3);
      limit.acquire(3);
      ramie::nursery n;
      for (const int want : {3, 1, 2}) {
        n.spawn([&, want] {
          limit.acquire(static_cast<std::uint64_t>(want));
          order.add(want);
          order.add(static_cast<int>(now().time_since_epoch() / 1s));
        });
        wait_all_blocked();
      }
      found.expect(!limit.try_acquire());
      n.join();
    });
    CHECK(found.wrong() == "");
    CHECK(order.entries() == std::vector<int>{3, 3, 1, 4, 2, 6});
  }
}

TEST_CASE("nobody takes tokens past one who waits for more of them", "[conformance][time][rate]") {
  in_virtual_time([](findings& found) {
    rate_limiter limit(1, 3);
    limit.acquire(3);
    ramie::sleep_for(2s);
    ramie::nursery n;
    n.spawn([&] { limit.acquire(3); });
    wait_all_blocked();
    found.expect(!limit.try_acquire());  // two are there
    const auto before = now();
    n.join();
    EXPECT(found, now() - before == 1s);
  });
}

TEST_CASE("who is cancelled at a rate limiter takes nothing, and those behind move up", "[conformance][time][rate]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    for (const bool the_first : {true, false}) {
      virtual_clock clock;
      auto o = with_workers(workers);
      o.clock = &clock;
      test::journal<int> order;
      ramie::run(o, [&] {
        rate_limiter limit(1, 10);
        limit.acquire(10);
        ramie::nursery stay, leave;
        if (!the_first) {
          stay.spawn([&] {
            limit.acquire(2);
            order.add(static_cast<int>(now().time_since_epoch() / 1s));
          });
          wait_all_blocked();
        }
        leave.spawn([&] {
          limit.acquire(10);
          order.add(-1);
        });
        wait_all_blocked();
        stay.spawn([&] {
          limit.acquire(4);
          order.add(static_cast<int>(now().time_since_epoch() / 1s));
        });
        wait_all_blocked();
        leave.cancel_after(1s);
        leave.join();
        stay.join();
      });
      const auto expected = the_first ? std::vector<int>{4} : std::vector<int>{2, 6};
      CHECK(order.entries() == expected);
    }
  }
}

TEST_CASE("acquire is a cancellation point, also when there are tokens", "[conformance][time][rate]") {
  in_virtual_time([](findings& found) {
    rate_limiter limit(1, 2);
    found.expect(!ramie::with_timeout(0s, [&] { limit.acquire(); }));
    found.expect(ramie::with_timeout(0s, [&] { (void)limit.try_acquire(2); }));  // nothing was taken
    found.expect(!limit.try_acquire());
  });
}

TEST_CASE("a rate limiter is shared by threads", "[conformance][time][rate]") {
  rate_limiter limit(1'000'000, 100);
  const auto began = std::chrono::steady_clock::now();
  std::atomic<int> taken{0};
  const auto take = [&] {
    for (int i = 0; i < 200; ++i) {
      limit.acquire();
      ++taken;
    }
  };
  std::thread one(take), two(take);
  ramie::run(with_workers(2), take);
  one.join();
  two.join();
  CHECK(taken == 600);
  CHECK(std::chrono::steady_clock::now() - began >= 500us);
}

TEST_CASE("a rate limiter that can't work is refused", "[conformance][time][rate]") {
  CHECK_THROWS_AS(rate_limiter(0), ramie::usage_error);
  CHECK_THROWS_AS(rate_limiter(1, 0), ramie::usage_error);
  CHECK_THROWS_AS(rate_limiter(1, 1, 0s), ramie::usage_error);
  CHECK_THROWS_AS(rate_limiter(1, std::uint64_t{1} << 62), ramie::usage_error);
  rate_limiter limit(1, 5);
  CHECK_THROWS_AS(limit.acquire(6), ramie::usage_error);
  CHECK_THROWS_AS(limit.acquire(0), ramie::usage_error);
  CHECK_THROWS_AS(limit.try_acquire(6), ramie::usage_error);
  CHECK(limit.try_acquire(5));
}

}  // namespace conformance_time_helpers
