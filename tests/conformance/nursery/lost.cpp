// SPDX-License-Identifier: BSL-1.0
// A failure is received once, or reported once: whichever way the owner of a nursery goes on, and in what is built on
// nurseries.
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/finally.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_lost {

using ramie::cancelled;
using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

// What f() throws, as text.
template <class F>
std::string thrown_by(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  } catch (const cancelled& c) {
    return "cancelled (" + std::string(to_string(c.kind())) + ")";
  } catch (int) {
    return "a number";
  }
  return "nothing";
}

// The texts of the failures that were reported.
std::vector<std::string> lost(const test::reports& reported) {
  std::vector<std::string> all;
  for (const auto& r : reported.taken()) all.push_back(r.text);
  return all;
}

// A nursery one of whose children fails ("behind it"); its owner is cut short and calls on_cut(nursery, cancelled) in
// the catch block.
template <class OnCut>
void cut_short(OnCut on_cut) {
  gate never;
  nursery n;
  n.spawn([] { throw std::runtime_error("behind it"); });
  try {
    test::wait_at(never);
  } catch (const cancelled& c) {
    on_cut(n, c);
  }
}

const std::vector<std::string> none;
const std::vector<std::string> once{"behind it"};

TEST_CASE("a failure is lost when the owner throws something else", "[conformance][nursery][failure]") {
  struct way {
    const char* name;
    std::function<void()> run;  // as the function of run()
    std::string thrown;
    std::vector<std::string> reported;
  };
  const way ways[] = {
      {"the cancellation goes on", [] { cut_short([](nursery&, const cancelled&) { throw; }); }, "behind it", none},
      {"something else is thrown",
       [] { cut_short([](nursery&, const cancelled&) { throw std::logic_error("something else"); }); },
       "something else", once},
      {"something that is no exception class", [] { cut_short([](nursery&, const cancelled&) { throw 1; }); },
       "a number", once},
      {"something else, after the block",
       [] {
         gate never;
         nursery n;
         n.spawn([] { throw std::runtime_error("behind it"); });
         try {
           test::wait_at(never);
         } catch (const cancelled&) {
         }
         throw std::logic_error("something else");
       },
       "something else", once},
      {"a copy goes on", [] { cut_short([](nursery&, cancelled c) { throw c; }); }, "behind it", none},
      {"the failure itself is rethrown",
       [] { cut_short([](nursery&, const cancelled& c) { std::rethrow_exception(c.cause()); }); }, "behind it", none},
      {"asked for, then something else",
       [] {
         cut_short([](nursery&, const cancelled& c) {
           throw std::logic_error(c.cause() != nullptr ? "something else" : "no cause");
         });
       },
       "something else", none},
      {"described, then something else",
       [] { cut_short([](nursery&, const cancelled& c) { throw std::logic_error(c.describe().substr(0, 9)); }); },
       "cancelled", none},
      {"read, then something else",
       [] {
         cut_short([](nursery& n, const cancelled&) {
           throw std::logic_error(n.failures().size() == 1 ? "something else" : "no failure");
         });
       },
       "something else", none},
      {"swallowed", [] { cut_short([](nursery&, const cancelled&) {}); }, "nothing", once},
      {"swallowed, then joined", [] { cut_short([](nursery& n, const cancelled&) { n.join(); }); }, "behind it", none},
      {"kept, and thrown later",
       [] {
         std::exception_ptr kept;
         cut_short([&](nursery&, const cancelled&) { kept = std::current_exception(); });
         std::rethrow_exception(kept);
       },
       "behind it", none},
      {"kept while something else is thrown, and thrown later",
       [] {
         std::exception_ptr kept;
         try {
           cut_short([&](nursery&, const cancelled&) {
             kept = std::current_exception();
             throw std::logic_error("something else");
           });
         } catch (const std::logic_error&) {
         }
         std::rethrow_exception(kept);
       },
       "behind it", none},
      {"kept while something else is thrown, and dropped",
       [] {
         std::exception_ptr kept;
         cut_short([&](nursery&, const cancelled&) {
           kept = std::current_exception();
           throw std::logic_error("something else");
         });
       },
       "something else", once},
      {"nested in something else, and dropped with it",
       [] {
         try {
           cut_short([](nursery&, const cancelled&) { std::throw_with_nested(std::logic_error("something else")); });
         } catch (const std::logic_error&) {
         }
       },
       "nothing", once},
      {"caught outside and asked",
       [] {
         try {
           cut_short([](nursery&, const cancelled&) { throw; });
         } catch (const cancelled& c) {
           (void)c.cause();
         }
       },
       "nothing", none},
      {"caught outside and dropped",
       [] {
         try {
           cut_short([](nursery&, const cancelled&) { throw; });
         } catch (const cancelled&) {
         }
       },
       "nothing", once},
      {"cut while it joins another nursery",
       [] {
         gate never;
         nursery outer;
         outer.spawn([&] {
           const ramie::shield stays;
           test::wait_at(never);
         });
         struct opens_it {
           gate& door;
           ~opens_it() { door.open(); }
         } const at_the_end{never};
         nursery inner;
         inner.spawn([] { throw std::runtime_error("behind it"); });
         outer.join();
       },
       "behind it", none},
      {"told twice, the first one goes on",
       [] {
         std::exception_ptr first;
         cut_short([&](nursery&, const cancelled&) {
           first = std::current_exception();
           try {
             ramie::yield();
           } catch (const cancelled&) {
           }
           std::rethrow_exception(first);
         });
       },
       "behind it", none},
  };
  for (const way& w : ways) {
    for (const unsigned workers : {1u, 2u}) {
      const test::reports reported;
      const std::string thrown = thrown_by([&] { ramie::run(with_workers(workers), w.run); });
      auto failures = reported.taken();
      std::erase_if(failures, [](const auto& r) { return r.kind != ramie::report_kind::lost_failure; });
      INFO(w.name << ", workers " << workers);
      CHECK(thrown == w.thrown);
      REQUIRE(failures.size() == w.reported.size());
      for (std::size_t i = 0; i < failures.size(); ++i) {
        CHECK(failures[i].text == w.reported[i]);
        CHECK(failures[i].who.find("nursery/lost.cpp") != std::string::npos);
      }
    }
  }
}

TEST_CASE("a failure that was kept is reported when it is dropped", "[conformance][nursery][failure]") {
  const test::reports reported;
  std::size_t inside = 9, after = 9;
  std::string thrown;
  ramie::run(with_workers(1), [&] {
    std::exception_ptr kept;
    thrown = thrown_by([&] {
      cut_short([&](nursery&, const cancelled&) {
        kept = std::current_exception();
        throw std::logic_error("something else");
      });
    });
    inside = lost(reported).size();
    kept = nullptr;
    after = lost(reported).size();
  });
  CHECK(thrown == "something else");
  CHECK(inside == 0);  // somebody has it
  CHECK(after == 1);
}

TEST_CASE("join rethrows the first of several failures", "[conformance][nursery][failure]") {
  for (const unsigned workers : {1u, 2u}) {
    const test::reports reported;
    std::string thrown;
    std::vector<std::string> all;
    ramie::run(with_workers(workers), [&] {
      constexpr std::array order{2u, 0u, 3u, 1u};
      std::array<gate, 4> doors;
      std::array<ramie::task<void>, 4> tasks;
      std::atomic<int> begun{0};
      nursery n;
      for (std::size_t i = 0; i < 4; ++i) {
        tasks[i] = n.spawn([&doors, &begun, i] {
          const ramie::shield to_the_end;
          ++begun;
          test::wait_at(doors[i]);
          throw std::runtime_error(std::to_string(i));
        });
      }
      {
        const ramie::shield not_by_the_first;
        while (begun != 4) ramie::yield();  // one that has not begun when the first fails would never begin
        for (const auto i : order) {
          doors[i].open();
          tasks[i].wait();
        }
      }
      thrown = thrown_by([&] { n.join(); });
      for (const auto& f : n.failures()) all.push_back(thrown_by([&] { std::rethrow_exception(f.what); }));
    });
    CHECK(thrown == "2");
    CHECK(all == std::vector<std::string>{"2", "0", "3", "1"});
    CHECK(reported.taken().empty());
  }
}

// race, join_all, try_join_all ---------------------------------------------------------------------------

// Fails when it is cancelled.
[[noreturn]] void fail_at_the_end(const char* text) {
  gate never;
  try {
    test::wait_at(never);
  } catch (const cancelled&) {
    throw std::runtime_error(text);
  }
  std::abort();
}

TEST_CASE("a loser's failure does not replace the winner's value", "[conformance][nursery][gather]") {
  for (const unsigned workers : {1u, 2u}) {
    const test::reports reported;
    int value = 0, of_range = 0;
    ramie::run(with_workers(workers), [&] {
      std::atomic<int> waiting{0};
      const auto loses = [&]() -> int {
        ++waiting;
        fail_at_the_end("sore loser");
      };
      value = ramie::race(
          [&] {
            while (waiting.load() != 2) ramie::yield();
            return 7;
          },
          loses, loses);
      std::vector<std::function<int()>> field(3, loses);
      field.emplace_back([&] {
        while (waiting.load() != 5) ramie::yield();
        return 8;
      });
      of_range = ramie::race(field);
    });
    CHECK(value == 7);
    CHECK(of_range == 8);
    CHECK(lost(reported) == std::vector<std::string>(5, "sore loser"));
    for (const auto& r : reported.taken()) CHECK(r.who.find("fiber #") == 0);
  }
}

TEST_CASE("who fails first has won the race, and later values are dropped", "[conformance][nursery][gather]") {
  const test::reports reported;
  std::string thrown;
  bool told = false;
  ramie::run(with_workers(1), [&] {
    gate never;
    std::atomic<bool> waiting{false};
    thrown = thrown_by([&] {
      (void)ramie::race(
          [&]() -> int {
            while (!waiting.load()) ramie::yield();
            throw std::runtime_error("first");
          },
          [&]() -> int {
            waiting.store(true);
            try {
              test::wait_at(never);
            } catch (const cancelled& c) {
              told = c.kind() == ramie::cancel_kind::sibling_failure;
            }
            return 1;  // too late
          });
    });
  });
  CHECK(thrown == "first");
  CHECK(told);
  CHECK(reported.taken().empty());
}

TEST_CASE("a winner whose value can't be kept has failed", "[conformance][nursery][gather]") {
  struct heavy {
    bool moves = false;
    heavy() = default;
    heavy(const heavy&) { throw std::runtime_error("too heavy"); }
  };
  const test::reports reported;
  std::string thrown;
  ramie::run(with_workers(1), [&] {
    gate never;
    thrown = thrown_by([&] {
      (void)ramie::race([] { return heavy(); },
                        [&] {
                          test::wait_at(never);
                          return heavy();
                        });
    });
  });
  CHECK(thrown == "too heavy");
  CHECK(reported.taken().empty());
}

TEST_CASE("what fails before a cancellation from outside is rethrown by a race, and reported of outcomes",
          "[conformance][nursery][gather]") {
  for (const int which : {0, 1, 2, 3}) {
    const test::reports reported;
    std::string thrown;
    ramie::run(with_workers(1), [&] {
      nursery outer;
      outer.spawn([&] {
        const auto fails = [&]() -> int { throw std::runtime_error("before"); };
        const auto cancels = [&]() -> int {
          const ramie::shield here;
          for (int i = 0; i < 10; ++i) ramie::yield();
          outer.cancel();
          return 1;
        };
        const std::vector<std::function<int()>> both{fails, cancels};
        thrown = thrown_by([&] {
          if (which == 0) (void)ramie::race(fails, cancels);
          if (which == 1) (void)ramie::join_all(fails, cancels);
          if (which == 2) (void)ramie::try_join_all(fails, cancels);
          if (which == 3) (void)ramie::try_join_all(both);
        });
      });
      outer.join();
    });
    INFO(which);
    CHECK(thrown == (which < 2 ? "before" : "cancelled (requested)"));
    CHECK(lost(reported) == (which < 2 ? none : std::vector<std::string>{"before"}));
  }
}

// The caller is not told of the cancellation, because it unwinds; nor are those that it spawns to clean up.
TEST_CASE("a cancellation from outside takes no results away from one who unwinds", "[conformance][nursery][gather]") {
  int sum = 0;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.cancel("from outside");
    const auto yields = [] {
      ramie::yield();
      return 1;
    };
    try {
      const test::finally at_the_end([&] {
        sum += std::get<0>(ramie::join_all(yields));
        sum += std::get<0>(ramie::try_join_all(yields)).value();
        sum += ramie::race(yields, yields);
        nursery inside;
        sum += inside.spawn(yields).get();
        inside.join();
      });
      throw 1;
    } catch (int) {
    }
  });
  CHECK(sum == 4);
}

}  // namespace conformance_nursery_lost
