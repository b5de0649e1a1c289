// SPDX-License-Identifier: BSL-1.0
// Joining runs work: J1–J7 of join.hpp, tenancy, fairness.
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_joining {

using ramie::nursery;
using test::with_workers;
using test::runtime_internal::gate;

// An address on the stack: near the joiner's if a child runs above it, far away if it has another stack.
[[gnu::noinline]] std::uintptr_t here() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}
// A system call: thread-locals may be read once and kept across a switch (docs/hazards.md).
long this_thread_number() {
  return ::syscall(SYS_gettid);
}
bool above(std::uintptr_t child, std::uintptr_t joiner) {
  return child < joiner && joiner - child < 16 * 1024;
}

TEST_CASE("a join calls its unstarted children in place, youngest first", "[conformance][nursery][join]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  test::journal<int> order;
  std::atomic<int> in_place{0};
  std::uint64_t switches = 99;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    nursery n;
    const auto joiner = here();
    for (int i = 0; i < 5; ++i) {
      n.spawn([&, i] {
        order.add(i);
        in_place.fetch_add(above(here(), joiner));
      });
    }
    const auto before = rt.stats().total.switches;
    n.join();
    switches = rt.stats().total.switches - before;
  });
  CHECK(order.entries() == std::vector<int>{4, 3, 2, 1, 0});
  CHECK(in_place.load() == 5);
  CHECK(switches == 0);
}

TEST_CASE("grandchildren run in place too", "[conformance][nursery][join]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  std::atomic<int> in_place{0};
  ramie::run(with_workers(1), [&] {
    nursery n;
    const auto joiner = here();
    n.spawn([&] {
      n.spawn([&] { in_place.fetch_add(above(here(), joiner)); });
      nursery inner;
      inner.spawn([&] { in_place.fetch_add(above(here(), joiner)); });
      inner.join();
    });
    n.join();
  });
  CHECK(in_place.load() == 2);
}

TEST_CASE("a child that parks in place goes on with the joiner below it", "[conformance][nursery][join]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    int joined = 0;
    std::atomic<int> woken{0};
    ramie::runtime rt(with_workers(workers));
    rt.run([&] {
      gate door;
      nursery others;
      auto opener = others.spawn([&] {
        while (woken.load() == 0) ramie::yield();
        door.open();
      });
      nursery n;
      n.spawn([&] {
        woken.store(1);
        test::wait_at(door);
        woken.store(2);
      });
      n.join();
      joined = woken.load();
      others.join();
    });
    CHECK(joined == 2);
  }
}

// In place on one worker, parked, resumed by another worker, finished there: the join below goes on there too.
TEST_CASE("a child parked in place is resumed and finished by another worker", "[conformance][nursery][join]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  int in_place = 0, moved = 0, joiner_moved = 0;
  auto o = with_workers(2);
  o.elastic = false;  // on a slow machine a third worker would come, for both are held, and start the child elsewhere
  for (int round = 0; round < 50; ++round) {
    ramie::runtime rt(o);
    long before = 0, after = 0, joiner_after = 0;
    rt.run([&] {
      gate door;
      std::atomic<bool> helper_runs{false}, go{false};
      std::uint64_t parks_before = 0;
      nursery helpers;
      // It keeps its worker to itself until the child has parked; whoever it wakes then is next there.
      helpers.spawn([&] {
        helper_runs.store(true);
        while (!go.load()) std::this_thread::yield();
        while (rt.stats().total.parks == parks_before) std::this_thread::yield();
        door.open();
      });
      while (!helper_runs.load()) std::this_thread::yield();  // on the other worker: this one is held here
      nursery n;
      const auto joiner = here();
      n.spawn([&] {
        in_place += above(here(), joiner);
        before = this_thread_number();
        parks_before = rt.stats().total.parks;
        go.store(true);
        test::wait_at(door);
        after = this_thread_number();
      });
      n.join();
      joiner_after = this_thread_number();
      helpers.join();
    });
    moved += before != after;
    joiner_moved += after == joiner_after;
  }
  CHECK(in_place == 50);
  CHECK(moved > 0);
  CHECK(joiner_moved == 50);
}

// Counterexample 1 of the design: the child waits for what the joiner does after the timeout. In place it would
// sit above the joiner, and neither could go on.
TEST_CASE("a join inside with_timeout does not bury the joiner", "[conformance][nursery][join]") {
  for (const unsigned workers : {1u, 2u}) {
    ramie::manual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    bool in_time = true, child_done = false;
    ramie::run(o, [&] {
      gate after_timeout;
      nursery helpers;
      std::atomic<bool> over{false};
      helpers.spawn([&] {
        while (!over.load()) {
          clock.advance(std::chrono::milliseconds(100));
          ramie::yield();
        }
      });
      nursery n;
      auto child = n.spawn([&] {
        test::wait_at(after_timeout);
        return true;
      });
      in_time = ramie::with_timeout(std::chrono::seconds(1), [&] { n.join(); });
      over.store(true);
      after_timeout.open();
      child_done = child.get();
      n.join();  // the timed-out join left the nursery open
      helpers.join();
    });
    CHECK_FALSE(in_time);
    CHECK(child_done);
  }
}

// Counterexample 2: get() on a task of an outer nursery. In place, the sibling above would wait for the getter.
TEST_CASE("get() does not run its task above the getter", "[conformance][nursery][join]") {
  for (const unsigned workers : {1u, 2u}) {
    int got = 0;
    ramie::run(with_workers(workers), [&] {
      gate from_getter;
      nursery outer;
      auto sibling = outer.spawn([&] {
        test::wait_at(from_getter);
        return 5;
      });
      outer.spawn([&] {
        nursery inner;
        inner.spawn([&] {
          ramie::yield();
          from_getter.open();
        });
        got = sibling.get();  // parks: inner's child and the sibling run elsewhere
        inner.join();
      });
      outer.join();
    });
    CHECK(got == 5);
  }
}

TEST_CASE("get() hands over to the task that was spawned last", "[conformance][nursery][join]") {
  test::journal<int> order;
  ramie::run(with_workers(1), [&] {
    nursery n;
    for (int i = 0; i < 3; ++i) n.spawn([&, i] { order.add(i); });
    n.spawn([&] { order.add(9); }).get();
    order.add(100);
    n.join();
  });
  CHECK(order.entries().front() == 9);
}

// J2 for a shield and for another nursery: the join parks, and everything ends.
TEST_CASE("a join from inside an inner scope parks", "[conformance][nursery][join]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  std::atomic<int> in_place{0}, ran{0};
  ramie::run(with_workers(1), [&] {
    const auto joiner = here();
    const auto child = [&] {
      in_place.fetch_add(above(here(), joiner));
      ran.fetch_add(1);
    };
    {
      nursery n;
      n.spawn(child);
      ramie::shield s;
      n.join();
    }
    nursery outer;
    outer.spawn(child);
    nursery inner;
    outer.join();
  });
  CHECK(ran.load() == 2);
  CHECK(in_place.load() == 0);
}

// J6: strangers at the young end are handed over to, not run above the joiner.
TEST_CASE("a stranger at the young end is handed over to", "[conformance][nursery][join]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  int in_place = 99;
  std::atomic<int> above_joiner{0}, ran{0};
  ramie::run(with_workers(1), [&] {
    nursery outer;
    const auto joiner = here();
    nursery inner;
    inner.spawn([&] { ran.fetch_add(1); });
    outer.spawn([&] {
      above_joiner.fetch_add(above(here(), joiner));
      ran.fetch_add(1);
    });
    inner.join();
    in_place = above_joiner.load();
    outer.join();
  });
  CHECK(ran.load() == 2);
  CHECK(in_place == 0);
}

TEST_CASE("the joiner's exceptions are out of its children's sight", "[conformance][nursery][join]") {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> wrong{0};
    ramie::run(with_workers(workers), [&] {
      try {
        nursery n;
        for (int i = 0; i < 10; ++i) {
          n.spawn([&] {
            if (std::uncaught_exceptions() != 0 || std::current_exception() != nullptr) wrong.fetch_add(1);
            try {
              ramie::shield keep_going;
              ramie::yield();
              throw 1;
            } catch (int) {
              ramie::shield keep_going;
              ramie::yield();
              if (std::current_exception() == nullptr) wrong.fetch_add(1);
            }
          });
        }
        ramie::yield();  // some have started: the cancellation does not reach them before they are through
        throw std::runtime_error("unwinds through the nursery");
      } catch (const std::runtime_error& e) {
        if (std::string(e.what()) != "unwinds through the nursery") wrong.fetch_add(1);
        nursery in_handler;
        in_handler.spawn([&] {
          if (std::current_exception() != nullptr) wrong.fetch_add(1);
        });
        in_handler.join();
        if (std::current_exception() == nullptr) wrong.fetch_add(1);
      }
      if (std::current_exception() != nullptr || std::uncaught_exceptions() != 0) wrong.fetch_add(1);
    });
    CHECK(wrong.load() == 0);
  }
}

TEST_CASE("asking for a task that has ended in a loop lets others have their turn", "[conformance][nursery][join]") {
  auto o = with_workers(1);
  o.elastic = false;
  constexpr int many = 10'000;
  int rounds = 0;
  ramie::run(o, [&] {
    bool had_its_turn = false;
    nursery n;
    auto ended = n.spawn([] {});
    ended.wait();
    n.spawn([&] { had_its_turn = true; });
    for (; !had_its_turn && rounds < many; ++rounds) ended.wait();
    n.join();
  });
  CHECK(rounds < many);
}

// Nobody else could run the other fiber: if no join yielded, all rounds would pass before it has its turn.
TEST_CASE("joining empty nurseries in a loop lets others have their turn", "[conformance][nursery][join]") {
  void (*const ways[])() = {
      [] {
        nursery n;
        n.join();
      },
      [] { ramie::with_nursery([](nursery&) {}); },
      [] {
        nursery n;
        const ramie::shield from_within;
        n.join();
      },
      [] { const nursery without_a_join; },
      [] {
        try {
          throw 1;
        } catch (int) {
          nursery in_a_handler;
          in_a_handler.join();
        }
      },
  };
  constexpr int many = 10'000;
  for (const auto way : ways) {
    auto o = with_workers(1);
    o.elastic = false;
    int rounds = 0;
    ramie::run(o, [&] {
      bool had_its_turn = false;
      nursery n;
      n.spawn([&] { had_its_turn = true; });
      for (; !had_its_turn && rounds < many; ++rounds) way();
      n.join();
    });
    INFO(&way - ways);
    CHECK(rounds <= 129);  // a budget, and one
  }
}

// Fork-joins follow each other until everybody else has had turns: if somebody starves this does not end.
TEST_CASE("a long fork-join starves nobody", "[conformance][nursery][join]") {
  std::atomic<long> turns{0};
  std::atomic<int> old_ones{0}, from_outside{0};
  ramie::runtime rt(with_workers(1));
  std::atomic<bool> begun{false};
  std::thread outside([&] {
    test::until([&] { return begun.load(); });
    test::fiber_group c(rt);
    for (int i = 0; i < 10; ++i) c.spawn([&] { from_outside.fetch_add(1); });
    c.join();
  });
  rt.run([&] {
    std::atomic<bool> over{false};
    nursery n;
    for (int i = 0; i < 20; ++i) n.spawn([&] { old_ones.fetch_add(1); });  // older than the fork-join, unstarted
    n.spawn([&] {
      while (!over.load()) {
        turns.fetch_add(1);
        ramie::yield();
      }
    });
    begun.store(true);
    std::function<void(int)> fork_join = [&](int depth) {
      if (depth == 0) return;
      nursery level;
      for (int i = 0; i < 3; ++i) level.spawn([&, depth] { fork_join(depth - 1); });
      level.join();
    };
    nursery busy;
    while (turns.load() < 10 || old_ones.load() < 20 || from_outside.load() < 10) fork_join(5);
    busy.join();
    over.store(true);
    n.join();
  });
  outside.join();
  CHECK(old_ones.load() == 20);
  CHECK(from_outside.load() == 10);
  CHECK(turns.load() >= 10);
}

}  // namespace conformance_nursery_joining
