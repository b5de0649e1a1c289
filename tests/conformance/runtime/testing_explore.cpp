// SPDX-License-Identifier: BSL-1.0
// explore: what it must find, and that a seed is all it takes to see it again.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/reports.hpp>
#include <support/exploring.hpp>
#include <support/test.hpp>

namespace conformance_testing_explore {

using namespace std::chrono_literals;
using namespace ramie::testing;
using test::asking;
using test::contains;

using program = std::function<void()>;

// Found by every strategy within so many schedules, and again by its seed, step by step.
explore_report must_find(const program& bug, unsigned within) {
  explore_report last;
  for (const auto how : {strategy::random_walk, strategy::pct, strategy::mixed}) {
    const auto o = asking(within, how);
    last = explore(o, bug);
    INFO("strategy " << static_cast<int>(how));
    CHECK(last.failed);
    const auto again = replay(last.seed, bug, o);
    CHECK(again.failed);
    CHECK(again.failure == last.failure);
    CHECK(again.trace == last.trace);
    CHECK(again.steps == last.steps);
  }
  // And it takes a search: other schedules know nothing of it.
  bool passes = false;
  for (std::uint64_t seed = 1; seed <= 200 && !passes; ++seed) passes = !replay(seed, bug, asking(1)).failed;
  CHECK(passes);
  return last;
}

// What fibers share here is shared by threads, too, as far as ThreadSanitizer is concerned: hence atomics, used so that
// they protect nothing.
using shared_int = std::atomic<int>;

void lost_update() {
  shared_int balance{0};
  ramie::nursery n;
  for (int i = 0; i < 2; ++i) {
    n.spawn([&] {
      const int before = balance.load();
      ramie::yield();
      balance.store(before + 1);
    });
  }
  n.join();
  check(balance.load() == 2, "an update was lost");
}

// Two locks made of channels, taken in opposite order.
void lock_order() {
  ramie::channel<int> a(1), b(1);
  const auto take_both = [](ramie::channel<int> first, ramie::channel<int> second) {
    first.send(1);
    second.send(1);
    (void)second.recv();
    (void)first.recv();
  };
  ramie::nursery n;
  n.spawn({.name = "forwards"}, [=] { take_both(a, b); });
  n.spawn({.name = "backwards"}, [=] { take_both(b, a); });
  n.join();
}

// Whoever is told to stop first forgets to close.
void missed_close() {
  ramie::channel<int> work(1), stop(1);
  ramie::nursery n;
  n.spawn({.name = "producer"}, [=]() mutable {
    for (int i = 0; i < 3; ++i) {
      bool stopped = false;
      ramie::select(ramie::on_recv(stop, [&](auto&&...) { stopped = true; }),
                    ramie::on_send(work, i, [](auto&&...) {}));
      if (stopped) return;
    }
    work.close();
  });
  n.spawn({.name = "consumer"}, [=]() mutable {
    for (int v : work) (void)v;
  });
  n.spawn([=]() mutable { stop.send(1); });
  n.join();
}

void order_of_select() {
  ramie::channel<int> data(1), done(1);
  int seen = 0;
  ramie::nursery n;
  n.spawn([=]() mutable {
    data.send(1);
    done.send(1);
  });
  bool over = false;
  while (!over) {
    ramie::select(ramie::on_recv(data, [&](auto&&...) { ++seen; }),
                  ramie::on_recv(done, [&](auto&&...) { over = true; }));
  }
  n.join();
  check(seen == 1, "done overtook the data");
}

// Right only if the spawner goes on before the child, or the other way round.
void order_of_spawn() {
  shared_int ready{0}, seen{-1};
  ramie::nursery n;
  n.spawn([&] { seen = ready.load(); });
  ready = 1;
  n.join();
  check(seen == 1, "the child was faster");
}

// The waker goes on after its send before the receiver has run, or not.
void order_of_wake() {
  shared_int flag{0}, seen{-1};
  ramie::channel<int> go(0);
  ramie::nursery n;
  n.spawn([&] {
    (void)go.recv();
    seen = flag.load();
  });
  go.send(1);
  flag = 1;
  n.join();
  check(seen == 1, "the receiver was faster");
}

TEST_CASE("explore finds a lost update", "[conformance][testing][explore]") {
  const auto found = must_find(lost_update, 50);
  CHECK(contains(found.failure, "an update was lost"));
  CHECK(contains(found.failure, "testing_explore.cpp:"));
}

TEST_CASE("explore finds a deadlock and names who waits for what", "[conformance][testing][explore]") {
  const auto found = must_find(lock_order, 100);
  CHECK(contains(found.failure, "deadlock"));
  CHECK(contains(found.failure, "'forwards'"));
  CHECK(contains(found.failure, "'backwards'"));
  CHECK(contains(found.failure, "waits: channel send"));
  CHECK(contains(found.failure, "waits: join"));
}

TEST_CASE("explore finds a missed close", "[conformance][testing][explore]") {
  const auto found = must_find(missed_close, 100);
  CHECK(contains(found.failure, "'consumer'"));
  CHECK(contains(found.failure, "waits: channel recv"));
  CHECK_FALSE(contains(found.failure, "'producer'"));
}

TEST_CASE("explore finds what depends on the order of a select, a spawn, a wake", "[conformance][testing][explore]") {
  CHECK(contains(must_find(order_of_select, 100).failure, "done overtook the data"));
  CHECK(contains(must_find(order_of_spawn, 50).failure, "the child was faster"));
  CHECK(contains(must_find(order_of_wake, 50).failure, "the receiver was faster"));
}

TEST_CASE("explore finds a livelock", "[conformance][testing][explore]") {
  auto o = asking(20);
  o.max_steps = 2000;
  const program stuck = [] {
    shared_int a{0};
    ramie::nursery n;
    n.spawn([&] {
      while (a.load() == 0) ramie::yield();
    });
    n.spawn([&] {
      while (a.load() == 0) ramie::yield();
    });
    n.join();
  };
  const auto found = explore(o, stuck);
  CHECK(found.failed);
  CHECK(found.schedules == 1);
  CHECK(contains(found.failure, "livelock"));
  CHECK(contains(found.failure, "2000 steps"));
}

TEST_CASE("a loop of channel operations is a livelock, too", "[conformance][testing][explore]") {
  auto o = asking(2);
  o.max_steps = 2000;
  const auto found = explore(o, [] {
    ramie::channel<int> c(1);
    for (;;) {
      c.send(1);
      (void)c.recv();
    }
  });
  CHECK(found.failed);
  CHECK(contains(found.failure, "livelock"));
}

TEST_CASE("the same seed is the same schedule, others are others", "[conformance][testing][explore]") {
  const program varied = [] {
    ramie::channel<int> a(1), b(0);
    ramie::nursery n;
    for (int i = 0; i < 4; ++i) {
      n.spawn([=]() mutable {
        for (int k = 0; k < 3; ++k) {
          ramie::select(ramie::on_send(a, k, [](auto&&...) {}), ramie::on_recv(b, [](auto&&...) {}),
                        ramie::on_timeout(1ms, [] {}));
          ramie::yield();
          ramie::select(ramie::on_recv(a, [](auto&&...) {}), ramie::on_send(b, k, [](auto&&...) {}),
                        ramie::on_timeout(1ms, [] {}));
        }
      });
    }
    n.join();
  };
  std::vector<std::vector<std::uint32_t>> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto first = replay(seed, varied);
    const auto second = replay(seed, varied);
    CHECK(first.seed == seed);
    CHECK(first.trace == second.trace);
    CHECK(first.steps == second.steps);
    CHECK(first.trace.size() > 10);
    traces.push_back(first.trace);
  }
  std::sort(traces.begin(), traces.end());
  const auto distinct = std::unique(traces.begin(), traces.end()) - traces.begin();
  CHECK(distinct >= 18);
}

TEST_CASE("a failure says how to replay it, and the environment does", "[conformance][testing][explore]") {
  std::string text;
  std::uint64_t seed = 0;
  try {
    explore(lost_update);
  } catch (const explore_failure& e) {
    text = e.what();
    seed = e.report().seed;
    CHECK(e.report().failed);
    CHECK(e.report().schedules == seed);
  }
  CHECK(contains(text, "an update was lost"));
  CHECK(contains(text, "RAMIE_EXPLORE_SEED=" + std::to_string(seed)));
  const auto direct = replay(seed, lost_update, asking(1));
  ::setenv("RAMIE_EXPLORE_SEED", std::to_string(seed).c_str(), 1);
  const auto by_environment = explore(asking(1000), lost_update);
  const auto another = replay(seed + 1, lost_update, asking(1));  // says itself which one
  ::setenv("RAMIE_EXPLORE_SEED", "seven", 1);
  CHECK_THROWS_AS(explore(lost_update), ramie::usage_error);
  ::unsetenv("RAMIE_EXPLORE_SEED");
  CHECK(by_environment.failed);
  CHECK(by_environment.schedules == 1);
  CHECK(by_environment.seed == seed);
  CHECK(by_environment.trace == direct.trace);
  CHECK(another.seed == seed + 1);
}

}  // namespace conformance_testing_explore
