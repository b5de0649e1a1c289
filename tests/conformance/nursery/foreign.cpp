// SPDX-License-Identifier: BSL-1.0
// Whose cancellation a `cancelled` is: that of a scope around the fiber ends it as cancelled, that of any other scope
// is a failure like any other exception.
#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_foreign {

using namespace std::chrono_literals;
using ramie::cancel_kind;
using ramie::cancelled;
using ramie::nursery;
using test::findings;
using test::with_workers;
using test::runtime_internal::gate;

// A `cancelled` whose scope is gone: by n.cancel(text).
std::exception_ptr made_elsewhere(const char* text) {
  try {
    nursery n;
    n.cancel(text);
    ramie::check_cancelled();
  } catch (const cancelled&) {
    return std::current_exception();
  }
  return nullptr;
}
std::optional<cancelled> as_cancelled(const std::exception_ptr& what) {
  try {
    if (what != nullptr) std::rethrow_exception(what);
  } catch (const cancelled& c) {
    return c;
  } catch (...) {
  }
  return std::nullopt;
}

// The ways a fiber comes by the cancellation of a scope that it is not in. Each calls its way out.
struct foreign {
  const char* name;
  void (*end_by_it)();
};
const foreign ways[] = {
    {"its own nursery was cancelled, and cut its body",
     [] {
       gate never;
       nursery n;
       n.spawn([&n] { n.cancel("elsewhere"); });
       test::wait_at(never);
     }},
    {"its own nursery's time was up",
     [] {
       nursery n;
       n.cancel_after(0s);
       ramie::check_cancelled();
     }},
    {"a channel was closed by a producer that was cancelled",
     [] {
       ramie::channel<int> numbers(0);
       nursery n;
       n.spawn([numbers, &n]() mutable {
         try {
           n.cancel("elsewhere");
           ramie::check_cancelled();
         } catch (...) {
           numbers.close(std::current_exception());
           throw;
         }
       });
       n.join();
       (void)numbers.recv();
     }},
    {"the task it asked was cancelled",
     [] {
       gate never;
       nursery n;
       auto t = n.spawn([&] { test::wait_at(never); });
       n.cancel("elsewhere");
       n.join();
       t.get();
     }},
    {"a join rethrows it",
     [] {
       nursery n;
       n.spawn([] { std::rethrow_exception(made_elsewhere("elsewhere")); });
       n.join();
     }},
};

TEST_CASE("a fiber that ends by another scope's cancellation has failed", "[conformance][nursery][failure]") {
  for (const foreign& way : ways) {
    for (const unsigned workers : {1u, 2u}) {
      test::reports reported;
      bool thrown = false, sibling_told = false, after = false;
      ramie::run(with_workers(workers), [&] {
        gate never;
        std::atomic<bool> waiting{false};
        nursery n;
        n.spawn([&] {
          try {
            waiting.store(true);
            test::wait_at(never);
          } catch (const cancelled& c) {
            sibling_told = c.kind() == cancel_kind::sibling_failure && as_cancelled(c.cause()).has_value();
            throw;
          }
        });
        while (!waiting.load()) ramie::yield();
        auto t = n.spawn([&] { way.end_by_it(); });
        {
          const ramie::shield not_by_its_failure;
          t.wait();
        }
        if (!n.closing()) never.open();
        try {
          n.join();
        } catch (const cancelled& c) {
          thrown = !n.owns(c) && !c.is_own();
        }
        ramie::check_cancelled();
        after = true;
      });
      INFO(way.name << ", workers " << workers);
      CHECK(thrown);
      CHECK(sibling_told);
      CHECK(after);
      CHECK(reported.taken().empty());
    }
  }
}

TEST_CASE("another scope's cancellation that nobody receives is reported", "[conformance][nursery][failure]") {
  for (const foreign& way : ways) {
    test::reports reported;
    ramie::run(with_workers(1), [&] {
      nursery n;
      n.spawn({.name = "vanishes"}, [&] { way.end_by_it(); });
      const ramie::shield until_it_has_ended;
      while (n.live_fibers() != 0) ramie::yield();
    });
    INFO(way.name);
    REQUIRE(reported.taken().size() == 1);
    CHECK(reported.taken()[0].kind == ramie::report_kind::lost_failure);
    CHECK(reported.taken()[0].who.find("'vanishes'") != std::string::npos);
    CHECK(reported.taken()[0].text.find("cancelled (") == 0);
  }
}

TEST_CASE("another scope's cancellation comes out of run, join_all and get as it is",
          "[conformance][nursery][failure]") {
  for (const foreign& way : ways) {
    int came = 0;
    const auto once = [&came](auto f) {
      try {
        f();
      } catch (const cancelled&) {
        ++came;
      }
    };
    once([&] { ramie::run(with_workers(1), [&] { way.end_by_it(); }); });
    ramie::run(with_workers(1), [&] {
      once([&] { (void)ramie::join_all([&] { way.end_by_it(); }, [] {}); });
      once([&] { (void)ramie::race([&] { way.end_by_it(); }); });
      const auto [bad, good] = ramie::try_join_all([&] { way.end_by_it(); },
                                                   [] {
                                                     for (int i = 0; i < 20; ++i) ramie::yield();
                                                   });
      came += as_cancelled(bad.failure()).has_value() && good.has_value();
      nursery n;
      auto t = n.spawn([&] { way.end_by_it(); });
      const ramie::shield not_by_its_failure;
      once([&] { t.get(); });
    });
    INFO(way.name);
    CHECK(came == 5);
  }
}

TEST_CASE("a failure behind another scope's cancellation is what counts", "[conformance][nursery][failure]") {
  std::vector<std::string> said;
  ramie::run(with_workers(1), [&] {
    gate never;
    const auto cut_by_its_child = [&] {
      nursery n;
      n.spawn([] { throw std::runtime_error("behind it"); });
      test::wait_at(never);
    };
    auto [one] = ramie::try_join_all(cut_by_its_child);
    try {
      (void)one.value();
    } catch (const std::runtime_error& e) {
      said.emplace_back(e.what());
    }
    try {
      ramie::race(cut_by_its_child, [&] { test::wait_at(never); });
    } catch (const std::runtime_error& e) {
      said.emplace_back(e.what());
    }
  });
  CHECK(said == std::vector<std::string>{"behind it", "behind it"});
}

// What has become of a child that ends by the cancellation of `outer`, as its nursery sees it.
TEST_CASE("the cancellation of a scope around it ends a fiber as cancelled", "[conformance][nursery][cancel]") {
  test::reports reported;
  int cancelled_children = 0;
  ramie::run(with_workers(1), [&] {
    nursery outer;
    outer.spawn([&] {
      nursery inner;
      auto t = inner.spawn([&] {
        outer.cancel();
        ramie::check_cancelled();
      });
      try {
        inner.join();
      } catch (const cancelled& c) {
        cancelled_children += outer.owns(c) && inner.failures().empty();
        throw;
      }
    });
    outer.join();
    cancelled_children += outer.failures().empty();
  });
  CHECK(cancelled_children == 2);
  CHECK(reported.taken().empty());
}

// A fiber under a shield is not cancelled from outside it; so it can't end by that.
TEST_CASE("a cancellation from outside a shield is a failure inside it", "[conformance][nursery][shield]") {
  test::reports reported;
  bool failed_inside = false, unwound_outside = false;
  ramie::run(with_workers(1), [&] {
    nursery outer;
    outer.spawn([&] {
      std::exception_ptr from_outside;
      outer.cancel();
      try {
        ramie::check_cancelled();
      } catch (const cancelled&) {
        from_outside = std::current_exception();
      }
      try {
        const ramie::shield shielded;
        nursery inner;
        inner.spawn([&] { std::rethrow_exception(from_outside); });
        inner.join();
      } catch (const cancelled& c) {
        failed_inside = outer.owns(c);
        throw;
      }
    });
    outer.join();
    unwound_outside = outer.failures().empty();
  });
  CHECK(failed_inside);
  CHECK(unwound_outside);
  CHECK(reported.taken().empty());
}

TEST_CASE("who asks for a cancelled task and is cancelled, too, ends by its own cancellation",
          "[conformance][nursery][cancel]") {
  test::reports reported;
  bool own = false;
  ramie::run(with_workers(1), [&] {
    gate never;
    nursery n;
    nursery others;
    auto t = others.spawn([&] { test::wait_at(never); });
    others.cancel();
    others.join();
    nursery askers;
    askers.spawn([&] {
      askers.cancel();
      try {
        t.get();
      } catch (const cancelled& c) {
        own = askers.owns(c) && c.is_own();
        throw;
      }
    });
    askers.join();
  });
  CHECK(own);
  CHECK(reported.taken().empty());
}

// Numbers --------------------------------------------------------------------------------------------

TEST_CASE("a cancellation that was kept is not that of a later scope in the same place",
          "[conformance][nursery][cancel]") {
  std::vector<std::string> said;
  std::vector<std::uint64_t> numbers;
  ramie::run(with_workers(1), [&] {
    std::exception_ptr kept;
    const auto rethrow = [&kept] {
      if (kept != nullptr) std::rethrow_exception(kept);
      try {
        ramie::check_cancelled();
      } catch (const cancelled&) {
        kept = std::current_exception();
        throw;
      }
    };
    const auto twice = [&](const char* name, auto scope) {
      kept = nullptr;
      for (int round = 0; round < 2; ++round) {
        try {
          scope();
          said.push_back(std::string(name) + " is over");
        } catch (const cancelled&) {
          said.push_back(std::string(name) + " did not catch it");
        }
        numbers.push_back(as_cancelled(kept)->number());
      }
    };
    twice("timeout", [&] { (void)ramie::with_timeout(0s, rethrow); });
    twice("nursery", [&] {
      ramie::with_nursery([&](nursery& n) {
        n.cancel();
        rethrow();
      });
    });
    twice("quiet timeout", [&] { (void)ramie::with_timeout(kept == nullptr ? 0s : 1h, rethrow); });
  });
  CHECK(said == std::vector<std::string>{"timeout is over", "timeout did not catch it", "nursery is over",
                                         "nursery did not catch it", "quiet timeout is over",
                                         "quiet timeout did not catch it"});
  REQUIRE(numbers.size() == 6);
  CHECK(numbers[0] == numbers[1]);
  CHECK(numbers[1] < numbers[2]);
  CHECK(numbers[3] < numbers[4]);
}

// It is not cancelled itself, and must not go by the number of the one before.
TEST_CASE("a nursery in the place of a cancelled one does not catch what was kept of that",
          "[conformance][nursery][cancel]") {
  bool caught_inside = true, came_out = false;
  ramie::run(with_workers(1), [&] {
    const std::exception_ptr kept = made_elsewhere("elsewhere");
    try {
      ramie::with_nursery([&](nursery& n) {
        caught_inside = n.owns(*as_cancelled(kept));
        std::rethrow_exception(kept);
      });
    } catch (const cancelled&) {
      came_out = true;
    }
  });
  CHECK_FALSE(caught_inside);
  CHECK(came_out);
}

// What is told ---------------------------------------------------------------------------------------

TEST_CASE("a cancellation names a thread only if it was one", "[conformance][nursery][cancel]") {
  const std::string thread = "by a plain thread", fiber = "by fiber #";
  std::vector<std::string> by_fiber, by_thread, by_nobody;
  const auto text_in = [](nursery& n) -> std::string {
    try {
      ramie::check_cancelled();
    } catch (const cancelled& c) {
      return n.owns(c) ? c.describe() : "not its own";
    }
    return "not cancelled";
  };
  ramie::run(with_workers(1), [&] {
    {
      nursery n;
      n.cancel("by hand");
      by_fiber.push_back(text_in(n));
    }
    {
      std::stop_source stop;
      nursery n;
      n.cancel_on(stop.get_token());
      stop.request_stop();
      by_fiber.push_back(text_in(n));
    }
    {
      nursery n;
      n.cancel_after(0s);
      by_nobody.push_back(text_in(n));
    }
    {
      std::stop_source stop;  // asked on the thread that keeps the time
      nursery others;
      others.spawn([&] {
        while (!stop.stop_requested()) {  // the time may have come before the fiber sleeps: then it is the fiber that asks
          ramie::with_nursery([&](nursery& timed) {
            std::stop_callback passed_on(timed.get_stop_token(), [&] {
              if (ramie::runtime_internal::current_fiber() == nullptr) stop.request_stop();
            });
            timed.cancel_after(1ms);
            ramie::sleep_for(1h);
          });
        }
      });
      nursery n;
      n.cancel_on(stop.get_token());
      try {
        ramie::sleep_for(1h);
      } catch (const cancelled& c) {
        by_nobody.push_back(c.describe());
      }
    }
    {
      nursery n;
      std::thread([&] { n.cancel("from there"); }).join();
      by_thread.push_back(text_in(n));
    }
    {
      std::stop_source stop;
      nursery n;
      n.cancel_on(stop.get_token());
      std::thread([&] { stop.request_stop(); }).join();
      by_thread.push_back(text_in(n));
    }
  });
  for (const bool inside : {true, false}) {
    ramie::runtime rt(with_workers(1));
    try {
      rt.run([&] {
        if (inside) {
          rt.shutdown();
        } else {
          std::thread([&] { rt.shutdown(); }).join();
        }
        ramie::check_cancelled();
      });
    } catch (const cancelled& c) {
      (inside ? by_fiber : by_thread).push_back(c.describe());
    }
  }
  CHECK(by_fiber.size() == 3);
  CHECK(by_thread.size() == 3);
  for (const auto& text : by_fiber) {
    INFO(text);
    CHECK(text.find(fiber) != std::string::npos);
    CHECK(text.find(thread) == std::string::npos);
  }
  for (const auto& text : by_thread) {
    INFO(text);
    CHECK(text.find(thread) != std::string::npos);
  }
  for (const auto& text : by_nobody) {
    INFO(text);
    CHECK(text.find(", by ") == std::string::npos);
  }
}

}  // namespace conformance_nursery_foreign
