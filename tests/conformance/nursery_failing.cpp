// SPDX-License-Identifier: BSL-1.0
// Failure, cancellation, deadlines, shutdown, and the functions built on nurseries.
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

namespace conformance_nursery_failing {

using namespace std::chrono_literals;
using ramie::cancel_kind;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::detail::gate;

// What run() throws, as text.
template <class F>
std::string thrown_by(F&& f, unsigned workers = 2) {
  try {
    ramie::run(with_workers(workers), f);
  } catch (const std::exception& e) {
    return e.what();
  } catch (const cancelled& c) {
    return c.describe();
  }
  return "nothing";
}

TEST_CASE("the first failure cancels the scope and is rethrown by join", "[conformance][nursery][failure]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> unwound{0};
    int live = -1;
    const auto text = thrown_by(
        [&] {
          gate never;
          nursery n;
          for (int i = 0; i < 20; ++i) {
            n.spawn([&] {
              try {
                test::wait_at(never);
              } catch (const cancelled& c) {
                unwound.fetch_add(c.kind() == cancel_kind::sibling_failure);
                throw;
              }
            });
          }
          ramie::yield();
          n.spawn([] { throw std::runtime_error("broken"); });
          try {
            n.join();
          } catch (...) {
            live = static_cast<int>(n.live_fibers());
            throw;
          }
        },
        workers);
    CHECK(text == "broken");
    CHECK(live == 0);
    CHECK(unwound.load() <= 20);
  }
}

TEST_CASE("a child's failure reaches the owner's body too", "[conformance][nursery][failure]") {
  bool told = false;
  const auto text = thrown_by([&] {
    gate never;
    nursery n;
    n.spawn([] { throw std::runtime_error("broken"); });
    try {
      test::wait_at(never);  // before the join: it would wait for ever
    } catch (const cancelled& c) {
      told = c.kind() == cancel_kind::sibling_failure && n.owns(c) && c.cause() != nullptr;
      throw;
    }
  });
  CHECK(told);
  CHECK(text == "broken");  // the `cancelled` that left the nursery counts as the failure behind it
}

TEST_CASE("a failure that unwinds through nested nurseries stays that failure", "[conformance][nursery][failure]") {
  test::reports reported;
  const auto text = thrown_by([] {
    nursery outer;
    outer.spawn([] {
      gate never;
      nursery inner;
      inner.spawn([] { throw std::out_of_range("deep down"); });
      test::wait_at(never);
    });
    outer.join();
  });
  CHECK(text == "deep down");
  CHECK(reported.taken().empty());
}

TEST_CASE("all failures can be read, and those nobody reads are reported", "[conformance][nursery][failure]") {
  for (const bool read : {true, false}) {
    test::reports reported;
    std::vector<std::string> seen;
    ramie::run(with_workers(1), [&] {
      nursery n;
      for (int i = 0; i < 3; ++i) {
        n.spawn({.name = "fails"}, [i] {
          ramie::shield until_all_have_started;
          ramie::yield();
          throw std::runtime_error(std::to_string(i));
        });
      }
      try {
        ramie::yield();
        n.join();
      } catch (const std::runtime_error& e) {
        seen.push_back(e.what());
        if (read) {
          for (const auto& f : n.failures()) seen.push_back(f.who);
        }
      } catch (const cancelled&) {
        ramie::shield still_inside;
      }
    });
    INFO((reported.taken().empty() ? "" : reported.taken()[0].text));
    if (read) {
      REQUIRE(seen.size() == 4);
      CHECK(seen[1].find("'fails'") != std::string::npos);
      CHECK(reported.taken().empty());
    } else {
      REQUIRE(reported.taken().size() == 2);
      CHECK(reported.taken()[0].kind == ramie::report_kind::lost_failure);
      CHECK(reported.taken()[0].who.find("'fails'") != std::string::npos);
    }
  }
}

TEST_CASE("a failure that nobody can receive is reported", "[conformance][nursery][failure]") {
  test::reports reported;
  ramie::run(with_workers(1), [] {
    nursery n;
    n.spawn([] { throw std::runtime_error("unheard"); });
    ramie::shield s;
    ramie::yield();
    // no join, and nothing unwinds: the destructor can't throw
  });
  REQUIRE(reported.taken().size() == 1);
  CHECK(reported.taken()[0].text == "unheard");
  CHECK(reported.taken()[0].failure != nullptr);
  CHECK(reported.taken()[0].who.find("nursery_failing.cpp") != std::string::npos);
}

TEST_CASE("the destructor cancels and joins", "[conformance][nursery][failure]") {
  for (const unsigned workers : {1u, 2u}) {
    test::census closures;
    std::atomic<int> unwound{0};
    const auto text = thrown_by(
        [&] {
          gate never;
          nursery n;
          for (int i = 0; i < 50; ++i) {
            n.spawn([&, c = test::citizen(closures)] {
              try {
                test::wait_at(never);
              } catch (const cancelled&) {
                unwound.fetch_add(1);
                throw;
              }
            });
          }
          for (int i = 0; i < 5; ++i) ramie::yield();
          throw std::logic_error("on the way out");
        },
        workers);
    CHECK(text == "on the way out");
    CHECK(closures.alive() == 0);
    CHECK(unwound.load() > 0);
  }
}

TEST_CASE("task::get rethrows, and throws cancelled for a cancelled task", "[conformance][nursery][failure]") {
  std::string failed, cancelled_as;
  ramie::run(with_workers(1), [&] {
    gate never;
    nursery n;
    auto waits = n.spawn([&] { test::wait_at(never); });
    auto fails = n.spawn([]() -> int { throw std::runtime_error("no result"); });
    try {
      ramie::shield outside_of_the_failure;
      (void)fails.get();
    } catch (const std::runtime_error& e) {
      failed = e.what();
    }
    try {
      n.join();
    } catch (const std::runtime_error&) {
    }
    try {
      waits.get();
    } catch (const cancelled& c) {
      cancelled_as = c.describe();
    }
  });
  CHECK(failed == "no result");
  CHECK(cancelled_as.find("sibling failure") != std::string::npos);
  CHECK(cancelled_as.find("no result") != std::string::npos);
}

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
  CHECK(std::string(reason.where.file_name()).find("nursery_failing.cpp") != std::string::npos);
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
    gate never;
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
      {
        std::vector<std::unique_ptr<int>> keep_the_stack_small;
        deeper(100);
      }
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
    said.push_back(expired ? "late" : "expired");
  });
  CHECK(said == std::vector<std::string>{"a second is almost over", "inner timed out", "value", "outer timed out",
                                         "reference", "expired"});
}

TEST_CASE("a nursery's own deadline", "[conformance][nursery][deadline]") {
  ramie::manual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  std::atomic<int> in_time{0}, late{0};
  ramie::run(o, [&] {
    gate never;
    nursery n;
    n.cancel_after(1s);
    n.cancel_after(5s);  // the later call replaces the earlier one
    n.spawn([&] {
      clock.advance(2s);
      ramie::yield();
      if (!ramie::stop_requested()) in_time.fetch_add(1);
      clock.advance(4s);
    });
    n.spawn([&] {
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
  CHECK(late.load() <= 1);
}

TEST_CASE("deadlines by the machine's clock", "[conformance][nursery][deadline]") {
  bool done = true;
  ramie::run(with_workers(1), [&] {
    gate never;
    done = ramie::with_timeout(1ms, [&] { test::wait_at(never); });
  });
  CHECK_FALSE(done);
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
      n.spawn([&] { source.request_stop(); });
      n.spawn([&] {
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
  CHECK(accepted <= 1);
  CHECK(late == 2);
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
  CHECK((stragglers[0] + stragglers[1]).find("nursery_failing.cpp:") != std::string::npos);
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

TEST_CASE("with_nursery rethrows the failure itself", "[conformance][nursery][gather]") {
  std::string text;
  int value = 0, after_own_cancel = 0;
  ramie::run(with_workers(2), [&] {
    gate never;
    value = ramie::with_nursery([](nursery& n) { return n.spawn([] { return 21; }).get() * 2; });
    try {
      ramie::with_nursery([&](nursery& n) {
        n.spawn([] { throw std::runtime_error("itself"); });
        test::wait_at(never);
      });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    ramie::with_nursery([&](nursery& n) {
      n.cancel();
      test::wait_at(never);
    });
    after_own_cancel = 1;
    int here = 0;
    int& there = ramie::with_nursery([&](nursery&) -> int& { return here; });
    if (&there != &here) after_own_cancel = 2;
    bool threw = false;
    try {
      (void)ramie::with_nursery([&](nursery& n) {
        n.cancel();
        test::wait_at(never);
        return 1;
      });
    } catch (const cancelled&) {
      threw = true;
    }
    if (!threw) after_own_cancel = 3;
  });
  CHECK(value == 42);
  CHECK(text == "itself");
  CHECK(after_own_cancel == 1);
}

TEST_CASE("join_all gives every result or the first failure", "[conformance][nursery][gather]") {
  std::string text, joined;
  std::vector<int> squares;
  ramie::run(with_workers(2), [&] {
    gate never;
    const auto [number, name, nothing] = ramie::join_all([] { return 6; }, [] { return std::string("six"); }, [] {});
    joined = name + std::to_string(number);
    std::vector<std::function<int()>> work;
    for (int i = 0; i < 10; ++i) work.emplace_back([i] { return i * i; });
    squares = ramie::join_all(work);
    try {
      (void)ramie::join_all([&] { test::wait_at(never); }, []() -> int { throw std::runtime_error("one of them"); });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
  });
  CHECK(joined == "six6");
  CHECK(squares == std::vector<int>{0, 1, 4, 9, 16, 25, 36, 49, 64, 81});
  CHECK(text == "one of them");
}

TEST_CASE("try_join_all lets everybody finish", "[conformance][nursery][gather]") {
  int sum = 0, failures = 0;
  std::string text;
  ramie::run(with_workers(2), [&] {
    auto [good, bad] = ramie::try_join_all(
        [] {
          for (int i = 0; i < 10; ++i) ramie::yield();
          return 1;
        },
        []() -> int { throw std::runtime_error("mine alone"); });
    sum += good.value();
    failures += !bad.has_value();
    try {
      (void)bad.value();
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    std::vector<std::function<int()>> work;
    for (int i = 0; i < 10; ++i) {
      work.emplace_back([i] { return i % 2 == 0 ? i : throw std::runtime_error("odd"); });
    }
    for (auto& o : ramie::try_join_all(work)) {
      if (o) sum += o.value();
      failures += o.failure() != nullptr;
    }
  });
  CHECK(sum == 1 + 0 + 2 + 4 + 6 + 8);
  CHECK(failures == 6);
  CHECK(text == "mine alone");
}

TEST_CASE("race: the first to end wins, the others are cancelled", "[conformance][nursery][gather]") {
  std::string winner, failed;
  bool variant_ok = false, loser_unwound = false;
  int fastest = 0;
  ramie::run(with_workers(1), [&] {
    gate never;
    winner = ramie::race([]() -> std::string { return "hare"; },
                         [&]() -> std::string {
                           try {
                             test::wait_at(never);
                           } catch (const cancelled&) {
                             loser_unwound = true;
                             throw;
                           }
                           return "tortoise";
                         });
    try {
      (void)ramie::race([]() -> int { throw std::runtime_error("a failure is an end"); },
                        [&] {
                          test::wait_at(never);
                          return 1;
                        });
    } catch (const std::runtime_error& e) {
      failed = e.what();
    }
    const auto either = ramie::race([] { return 1; },
                                    [&] {
                                      test::wait_at(never);
                                      return std::string();
                                    });
    static_assert(std::is_same_v<std::remove_const_t<decltype(either)>, std::variant<int, std::string>>);
    variant_ok = std::get<int>(either) == 1;
    std::vector<std::function<int()>> field;
    for (int i = 0; i < 5; ++i) {
      field.emplace_back([&, i] {
        if (i != 3) test::wait_at(never);
        return i;
      });
    }
    fastest = ramie::race(field);
    CHECK_THROWS_AS(ramie::race(std::vector<std::function<int()>>()), ramie::usage_error);
  });
  CHECK(winner == "hare");
  CHECK(loser_unwound);
  CHECK(failed == "a failure is an end");
  CHECK(variant_ok);
  CHECK(fastest == 3);
}

TEST_CASE("an unstarted child that can get no stack fails like any other", "[conformance][nursery][failure]") {
  if (test::sanitized || test::under_valgrind()) return;
  std::string text;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    nursery n;
    gate never;
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    rlimit tight = before;
    tight.rlim_cur = 1;  // no further mapping
    n.spawn({.stack_size = 64 * 1024 * 1024}, [] {});
    ::setrlimit(RLIMIT_AS, &tight);
    try {
      n.join();
    } catch (const ramie::stack_exhausted& e) {
      text = e.what();
    }
    ::setrlimit(RLIMIT_AS, &before);
  });
  CHECK(text.find("no stack for a fiber") != std::string::npos);
}

}  // namespace conformance_nursery_failing
