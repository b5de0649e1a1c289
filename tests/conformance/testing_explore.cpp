// SPDX-License-Identifier: BSL-1.0
// explore: what it must find, what it must leave alone, and that a seed is all it takes to see it again.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/census.hpp>
#include <support/crew.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_testing_explore {

using namespace std::chrono_literals;
using namespace ramie::testing;

using program = std::function<void()>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

explore_options asking(unsigned schedules, strategy how = strategy::mixed) {
  explore_options o;
  o.schedules = schedules;
  o.how = how;
  o.failure = on_failure::returns;
  return o;
}

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

void must_pass(const program& correct, unsigned schedules = static_cast<unsigned>(test::scaled(300, 40))) {
  for (const auto how : {strategy::random_walk, strategy::pct}) {
    const auto report = explore(asking(schedules, how), correct);
    INFO(report.failure << " seed " << report.seed);
    CHECK_FALSE(report.failed);
    CHECK(report.schedules == schedules);
    CHECK(report.failure == "");
  }
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

TEST_CASE("explore raises no false alarm", "[conformance][testing][explore]") {
  must_pass([] {  // a mutex of a channel
    shared_int balance{0};
    ramie::channel<int> lock(1);
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] {
        lock.send(1);
        const int before = balance.load();
        ramie::yield();
        balance.store(before + 1);
        (void)lock.recv();
      });
    }
    n.join();
    check(balance.load() == 3);
  });
  must_pass([] {  // a pipeline that is closed
    ramie::channel<int> a(0), b(2);
    ramie::nursery n;
    n.spawn([=]() mutable {
      for (int i = 1; i <= 5; ++i) a.send(i);
      a.close();
    });
    n.spawn([=]() mutable {
      for (int v : a) b.send(v * v);
      b.close();
    });
    int sum = 0;
    for (int v : b) sum += v;
    n.join();
    check(sum == 55);
  });
  must_pass([] {  // waiting in a loop of yields for somebody of low priority
    shared_int there{0};
    ramie::nursery n;
    n.spawn([&] { there = 1; });
    while (there.load() == 0) ramie::yield();
    n.join();
  });
  must_pass([] {  // two that keep each other busy until a third comes
    ramie::channel<int> ping(0), pong(0);
    shared_int stop{0};
    ramie::nursery n;
    n.spawn([&] {
      while (ping.recv()) pong.send(1);
    });
    n.spawn([&] {
      while (stop.load() == 0) {
        ping.send(1);
        (void)pong.recv();
      }
      ping.close();
    });
    n.spawn([&] { stop = 1; });
    n.join();
  });
}

TEST_CASE("cancellation and failures that are handled are no failure", "[conformance][testing][explore]") {
  must_pass(
      [] {
        ramie::channel<int> never(0);
        bool caught = false;
        try {
          ramie::nursery n;
          n.spawn([=]() mutable { (void)never.recv(); });
          n.spawn([] { throw std::runtime_error("expected"); });
          n.join();
        } catch (const std::runtime_error&) {
          caught = true;
        }
        check(caught);
        ramie::nursery n;
        n.spawn([=]() mutable { (void)never.recv(); });
        n.cancel("enough");
        n.join();
      },
      100);
}

TEST_CASE("time under explore passes by itself", "[conformance][testing][explore]") {
  must_pass(
      [] {
        const auto began = ramie::now();
        ramie::channel<int> c(0);
        ramie::nursery n;
        n.spawn([=]() mutable {
          ramie::channel<int> never(0);
          check(!ramie::with_timeout(1h, [&] { (void)never.recv(); }));
          c.send(1);
        });
        check(c.recv().has_value());
        check(ramie::now() - began == 1h);
        n.join();
      },
      50);
}

TEST_CASE("wait_all_blocked under explore, and before its clock", "[conformance][testing][explore]") {
  must_pass(
      [] {
        shared_int waiting{0};
        ramie::channel<int> never(0);
        ramie::nursery n;
        for (int i = 0; i < 3; ++i) {
          n.spawn([&] {
            ramie::yield();
            ++waiting;
            (void)never.recv_for(10s);
          });
        }
        const auto began = ramie::now();
        wait_all_blocked();
        check(waiting.load() == 3);
        check(ramie::now() == began);
        n.join();
      },
      100);
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

// The getter comes from outside the nursery's tree: it may be woken and not have run yet when the nursery ends.
void getter_outlives_nursery() {
  ramie::nursery outer;
  std::optional<ramie::task<int>> task;
  ramie::channel<int> ready(1);
  outer.spawn([&task, ready]() mutable {
    (void)ready.recv();
    try {
      (void)task->get();
    } catch (const ramie::usage_error&) {  // it came too late
    }
  });
  outer.spawn([&task, ready]() mutable {
    ramie::nursery inner;
    ramie::channel<int> hold(0);
    task.emplace(inner.spawn([hold]() mutable { return hold.recv().value_or(0); }));
    (void)ready.send(1);
    for (int i = 0; i < 3; ++i) ramie::yield();
    (void)hold.send(1);
    inner.join();
  });
  outer.join();
}

TEST_CASE("a nursery that ends lets those pass who still look at its tasks", "[conformance][testing][explore]") {
  const auto found = explore(asking(50), getter_outlives_nursery);
  INFO(found.failure);
  CHECK(!found.failed);
  ramie::run(test::with_workers(1), getter_outlives_nursery);  // hung, as long as it kept the worker to itself
}

TEST_CASE("a stop callback may come to another scope that is being stopped", "[conformance][testing][explore]") {
  const auto found = explore(asking(100), [] {
    ramie::channel<int> told(4);
    ramie::nursery listener;
    listener.spawn([told]() mutable {
      while (told.recv()) {
      }
    });
    {
      ramie::nursery outer;
      for (int i = 0; i < 2; ++i) {
        outer.spawn([told]() mutable {
          ramie::nursery n;
          const auto tell = [told]() mutable { (void)told.try_send(1); };
          std::stop_callback callback(n.get_stop_token(), tell);
          (void)ramie::channel<int>(0).recv();
        });
      }
      for (int i = 0; i < 6; ++i) ramie::yield();
      outer.cancel("enough");
      outer.join();
    }
    told.close();
    listener.join();
  });
  INFO(found.failure);
  CHECK(!found.failed);
}

TEST_CASE("what the test throws is the failure, and is kept", "[conformance][testing][explore]") {
  const auto found = explore(asking(5), [] {
    ramie::nursery n;
    n.spawn([] { throw std::domain_error("no such thing"); });
    n.join();
  });
  CHECK(found.failed);
  CHECK(found.schedules == 1);
  CHECK(contains(found.failure, "no such thing"));
  CHECK_THROWS_AS(std::rethrow_exception(found.cause), std::domain_error);
  CHECK_THROWS_AS(explore([] { throw 7; }), explore_failure);
}

TEST_CASE("a check that fails counts even if its exception is caught", "[conformance][testing][explore]") {
  const auto found = explore(asking(5), [] {
    try {
      check(false, "hushed up");
    } catch (const check_failed&) {
    }
  });
  CHECK(found.failed);
  CHECK(contains(found.failure, "hushed up"));
}

TEST_CASE("check outside explore throws and nothing else", "[conformance][testing][explore]") {
  check(true, "fine");
  CHECK_THROWS_AS(check(false, "wrong"), check_failed);
  CHECK_THROWS_AS(ramie::run([] { check(false); }), check_failed);
}

TEST_CASE("after a deadlock all fibers are unwound", "[conformance][testing][explore]") {
  test::census all;
  std::atomic<int> as_deadlock{0};
  const program stuck = [&] {
    ramie::channel<int> never(0);
    test::citizen root(all);
    ramie::nursery n;
    for (int i = 0; i < 5; ++i) {
      n.spawn([&, mine = test::citizen(all)] {
        test::citizen local(all);
        try {
          (void)never.recv();
        } catch (const ramie::cancelled& c) {
          if (c.kind() == ramie::cancel_kind::deadlock) ++as_deadlock;
          throw;
        }
      });
    }
    n.join();
  };
  const auto found = explore(asking(3), stuck);
  CHECK(found.failed);
  CHECK(as_deadlock == 5);
  CHECK(all.alive() == 0);
  CHECK(all.made > 0);

  auto o = asking(10);
  o.deadlock = on_deadlock::unwinds;
  const auto meant = explore(o, stuck);
  CHECK_FALSE(meant.failed);
  CHECK(meant.schedules == 10);
  CHECK(as_deadlock == 55);
  CHECK(all.alive() == 0);
}

TEST_CASE("explore inside a fiber, or of nothing, is misuse", "[conformance][testing][explore]") {
  CHECK_THROWS_AS(ramie::run([] { explore([] {}); }), ramie::usage_error);
  const auto nested = explore(asking(1), [] { explore([] {}); });
  CHECK(contains(nested.failure, "inside a fiber"));
  CHECK_THROWS_AS(std::rethrow_exception(nested.cause), ramie::usage_error);
  const auto refused = [](auto change) {
    explore_options o;
    change(o);
    CHECK_THROWS_AS(explore(o, [] {}), ramie::usage_error);
  };
  refused([](explore_options& o) { o.schedules = 0; });
  refused([](explore_options& o) { o.max_steps = 0; });
  refused([](explore_options& o) { o.change_points = 0; });
  refused([](explore_options& o) { o.change_points = 65; });
}

TEST_CASE("explore runs what it is given as often as it says", "[conformance][testing][explore]") {
  int calls = 0;
  auto o = asking(25);
  o.seed = 1000;
  const auto report = explore(o, [&] { return ++calls; });  // a result is ignored
  CHECK(calls == 25);
  CHECK(report.schedules == 25);
  CHECK(report.seed == 1024);
}

TEST_CASE("a test that holds a std::mutex over spawns and wakes can be explored without switches there",
          "[conformance][testing][explore]") {
  auto o = asking(100);
  o.wake_switches = false;
  const auto report = explore(o, [] {
    std::mutex mutex;
    ramie::channel<int> c(2);
    ramie::nursery n;
    n.spawn([&] {
      for (int i = 0; i < 2; ++i) (void)c.recv();
      std::lock_guard hold(mutex);
    });
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        std::lock_guard hold(mutex);
        (void)c.try_send(1);
        n.spawn([] {});
      });
    }
    n.join();
  });
  CHECK_FALSE(report.failed);
}

TEST_CASE("a livelock with many fibers is unwound, however few the steps", "[conformance][testing][explore]") {
  auto o = asking(4);
  o.max_steps = 20;
  test::census all;
  const auto report = explore(o, [&] {
    ramie::nursery n;
    for (int i = 0; i < 50; ++i) {
      n.spawn([&] {
        test::citizen here(all);
        ramie::nursery inner;
        inner.spawn([] {
          for (;;) ramie::yield();
        });
        inner.join();
      });
    }
    n.join();
  });
  CHECK(report.failed);
  CHECK(contains(report.failure, "livelock"));
  CHECK(all.alive() == 0);
}

TEST_CASE("many fibers under explore", "[conformance][testing][explore]") {
  const int fibers = test::scaled(500, 50);
  const auto report = explore(asking(4), [&] {
    shared_int ran{0};
    ramie::nursery n;
    for (int i = 0; i < fibers; ++i) {
      n.spawn([&] {
        ramie::yield();
        ++ran;
      });
    }
    n.join();
    check(ran.load() == fibers);
  });
  CHECK_FALSE(report.failed);
}

}  // namespace conformance_testing_explore
