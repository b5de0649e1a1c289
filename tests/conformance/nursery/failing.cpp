// SPDX-License-Identifier: BSL-1.0
// Failure, and the functions built on nurseries.
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
#include <support/fiber_group.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_failing {

using namespace std::chrono_literals;
using ramie::cancel_kind;
using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

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
    std::atomic<int> waiting{0}, unwound{0};
    int live = -1;
    const auto text = thrown_by(
        [&] {
          gate never;
          nursery n;
          for (int i = 0; i < 20; ++i) {
            n.spawn([&] {
              waiting.fetch_add(1);
              try {
                test::wait_at(never);
              } catch (const cancelled& c) {
                unwound.fetch_add(c.kind() == cancel_kind::sibling_failure);
                throw;
              }
            });
          }
          while (waiting.load() != 20) ramie::yield();
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
    CHECK(unwound.load() == 20);
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
  CHECK(reported.taken()[0].who.find("nursery/failing.cpp") != std::string::npos);
}

// Asked for its text it has been recorded as a failure, but does not cancel its nursery until another has.
struct slow_to_say final : std::exception {
  mutable bool asked = false;
  [[nodiscard]] const char* what() const noexcept override {
    for (; !asked; asked = ramie::stop_requested()) {
      const ramie::shield here;
      ramie::yield();
    }
    return "recorded first";
  }
};

TEST_CASE("of two failures at once, the one that did not cancel is reported", "[conformance][nursery][failure]") {
  test::reports reported;
  const auto text = thrown_by(
      [] {
        gate never;
        nursery n;
        n.spawn([] { throw slow_to_say(); });
        n.spawn([] { throw std::runtime_error("cancelled first"); });
        test::wait_at(never);
      },
      1);
  CHECK(text == "cancelled first");
  REQUIRE(reported.taken().size() == 1);
  CHECK(reported.taken()[0].text == "recorded first");
}

TEST_CASE("the destructor cancels and joins", "[conformance][nursery][failure]") {
  for (const unsigned workers : {1u, 2u}) {
    test::census closures;
    std::atomic<int> waiting{0}, unwound{0};
    const auto text = thrown_by(
        [&] {
          gate never;
          nursery n;
          for (int i = 0; i < 50; ++i) {
            n.spawn([&, c = test::citizen(closures)] {
              waiting.fetch_add(1);
              try {
                test::wait_at(never);
              } catch (const cancelled&) {
                unwound.fetch_add(1);
                throw;
              }
            });
          }
          while (waiting.load() == 0) ramie::yield();  // the others may not have started
          throw std::logic_error("on the way out");
        },
        workers);
    CHECK(text == "on the way out");
    CHECK(closures.alive() == 0);
    CHECK(unwound.load() > 0);
    CHECK(unwound.load() == waiting.load());
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

TEST_CASE("join_all of a function that cancels itself", "[conformance][nursery][gather]") {
  int thrown = 0;
  ramie::run(with_workers(1), [&] {
    const auto cancels_itself = [] {
      nursery n;
      n.cancel();
      ramie::check_cancelled();
      return 1;
    };
    try {
      (void)ramie::join_all(cancels_itself, [] { return 2; });
    } catch (const cancelled&) {
      ++thrown;
    }
    auto [by_itself] = ramie::try_join_all(cancels_itself);
    try {
      (void)by_itself.value();
    } catch (const cancelled&) {
      ++thrown;
    }
  });
  CHECK(thrown == 2);
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
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind need that address space");
  std::string text;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    nursery n;
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
