// SPDX-License-Identifier: BSL-1.0
// Waits for a task: for its end, or until a time. Whoever tells of the end of a former task in the same block may come late.
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "nursery/src/core.hpp"

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_task_waiting {

using namespace ramie::runtime_internal;
using test::with_workers;
using namespace std::chrono_literals;

// What the end of a task does when somebody has waited for it, here of a task that is not the one in the block any more.
void tell_late(const ready_source& of) {
  auto& home = *static_cast<ramie::nursery_internal::nursery_core*>(of.home);
  wake_batch wakes;
  std::lock_guard hold(home.waiters_lock);
  home.waiters.claim_if([&](const waiter& node) { return static_cast<const keyed_waiter&>(node).key == of.what; }, wakes);
}

TEST_CASE("a wait for a task ends with the task, though it is woken by mistake", "[conformance][nursery]") {
  bool early = false, by_select = false;
  int got = 0;
  ramie::run(with_workers(1), [&] {
    const ramie::channel<int> gate(0);
    ramie::nursery n;
    auto awaited = n.spawn([gate] { return *gate.recv(); });
    n.spawn([&] { by_select = ramie::select(ramie::on_ready(awaited, [] {})) == 0; });
    auto getter = n.spawn([&] {
      awaited.wait();
      early = !awaited.done();
      got = awaited.get();
    });
    for (int i = 0; i < 3; ++i) {
      ramie::yield();
      tell_late(ramie::runtime_internal::ready_access::source_of(awaited));
      ramie::yield();
      early = early || getter.done() || by_select;
    }
    gate.send(7);
    n.join();
  });
  CHECK(!early);
  CHECK(by_select);
  CHECK(got == 7);
}

TEST_CASE("a wait for a task ends at its deadline, and the task goes on", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    test::findings found;
    ramie::testing::virtual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    ramie::run(o, [&] {
      static int target = 0;
      const ramie::channel<int> gate(0);
      ramie::nursery n;
      auto value = n.spawn([gate] { return std::make_unique<int>(*gate.recv()); });
      auto reference = n.spawn([gate]() -> int& { return (void)gate.recv(), target; });
      auto nothing = n.spawn([gate] { (void)gate.recv(); });
      const auto begin = ramie::now();
      const std::optional<std::unique_ptr<int>> none = value.get_for(5ms);
      EXPECT(found, !none.has_value(), value.valid(), !value.done());
      EXPECT(found, !reference.get_until(begin + 7ms).has_value());
      EXPECT(found, !nothing.get_for(1ms), !nothing.wait_for(1ms), !nothing.wait_until(begin + 10ms));
      EXPECT(found, ramie::now() >= begin + 10ms, ramie::now() < begin + 1s);
      for (int i = 0; i < 3; ++i) gate.send(i);
      const auto got = value.get_for(1h);
      EXPECT(found, got.has_value());
      const std::optional<std::reference_wrapper<int>> same = reference.get_until(ramie::deadline());
      EXPECT(found, same.has_value(), &same->get() == &target);
      EXPECT(found, nothing.wait_for(1h), nothing.get_for(0s), nothing.get_until(begin));
      n.join();
      EXPECT(found, ramie::now() < begin + 1min);
    });
    CHECK(found.wrong() == "");
  }
}

TEST_CASE("a timed get gives failures and cancellations like get", "[conformance][nursery]") {
  test::findings found;
  ramie::run(with_workers(2), [&] {
    ramie::nursery n;
    auto failing = n.spawn([] { throw std::runtime_error("no"); });
    try {
      EXPECT(found, !failing.get_for(1h));
    } catch (const std::runtime_error& e) {
      EXPECT(found, std::string(e.what()) == "no");
    } catch (const ramie::cancelled&) {  // its failure has cancelled us, too
    }
    try {
      n.join();
    } catch (const std::runtime_error&) {
    }
  });
  CHECK(found.wrong() == "");
  std::string said;
  ramie::run(with_workers(1), [&] {
    ramie::task<int> none;
    try {
      (void)none.get_for(1ms);
    } catch (const ramie::usage_error& e) {
      said = e.what();
    }
  });
  CHECK(said.starts_with("ramie: task::wait_until: "));
}

TEST_CASE("a plain thread waits for a task until a time", "[conformance][nursery]") {
  bool early = true, late = false;
  ramie::run(with_workers(2), [&] {
    const ramie::channel<int> gate(0);
    ramie::nursery n;
    auto t = n.spawn([&] { (void)gate.recv(); });
    ramie::blocking([&] { early = t.wait_for(1ms); });
    gate.send(1);
    ramie::blocking([&] { late = t.wait_for(1h); });
    n.join();
  });
  CHECK_FALSE(early);
  CHECK(late);
}

// A callable whose overloads tell how it was called.
struct overloaded {
  int operator()(int) && { return 1; }
  int operator()(int) & { return 2; }
  int operator()(int, int) { return 3; }
};
struct thing {
  int value;
  int plus(int more) const { return value + more; }
};

TEST_CASE("spawn takes callables of all kinds, with up to eight arguments, and knows where it was called",
          "[conformance][nursery]") {
  test::findings found;
  ramie::run(with_workers(1), [&] {
    ramie::nursery n;
    static thing kept{5};
    auto sum = [](auto... v) { return (0 + ... + v); };
    EXPECT(found, n.spawn(sum, 1, 2, 3, 4).get() == 10);
    EXPECT(found, n.spawn(sum, 1, 2, 3, 4, 5, 6, 7, 8).get() == 36);
    EXPECT(found, n.spawn({}, sum, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10).get() == 55);
    EXPECT(found, n.spawn(overloaded(), 1).get() == 1, n.spawn(overloaded(), 1, 2).get() == 3);
    EXPECT(found, n.spawn(&thing::plus, thing{3}, 4).get() == 7, n.spawn(&thing::value, &kept).get() == 5);
    // The site is told by the failure that a child leaves behind.
    const auto fails = [](auto...) { throw std::runtime_error("no"); };
    unsigned line = 0;
    ramie::nursery bad;
    bad.spawn(fails, 1, 2, 3, 4, 5, 6, 7, 8), line = __LINE__;
    try {
      bad.join();
    } catch (const std::runtime_error&) {
    }
    const auto all = bad.failures();
    EXPECT(found, all.size() == 1, all[0].who.find("task_waiting.cpp:" + std::to_string(line)) != std::string::npos);
    n.join();
  });
  CHECK(found.wrong() == "");
}

// The site of a child is told to the others that its failure cancels.
TEST_CASE("functions that run together know where they were called", "[conformance][nursery]") {
  test::findings found;
  ramie::run(with_workers(1), [&] {
    std::string heard;
    const auto hears = [&] {
      try {
        ramie::sleep_for(1h);
      } catch (const ramie::cancelled& c) {
        heard = c.describe();
        throw;
      }
    };
    const auto fails = [] {
      ramie::yield();
      throw std::runtime_error("no");
    };
    const auto heard_at = [&](auto call, unsigned line) {
      heard.clear();
      try {
        (void)call();
      } catch (const std::runtime_error&) {
      }
      return heard.find("spawned at " + std::string(__FILE__) + ":" + std::to_string(line)) != std::string::npos;
    };
    EXPECT(found, heard_at([&] { return ramie::join_all(hears, fails); }, __LINE__));
    EXPECT(found, heard_at([&] { return ramie::race(hears, hears, fails); }, __LINE__));
  });
  CHECK(found.wrong() == "");
}

}  // namespace conformance_task_waiting
