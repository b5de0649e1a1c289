// SPDX-License-Identifier: BSL-1.0
// wait_all_blocked and the clock that advances by itself.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/on_many.hpp>
#include <support/test.hpp>

namespace conformance_testing_quiescence {

using namespace std::chrono_literals;
using ramie::testing::virtual_clock;
using ramie::testing::wait_all_blocked;
using test::findings;
using test::on_many;
using test::with_workers;

TEST_CASE("wait_all_blocked returns when all others wait", "[conformance][testing][quiescence]") {
  on_many([](findings& found) {
    for (int round = 0; round < test::scaled(20, 3); ++round) {
      std::atomic<int> waiting{0}, through{0};
      ramie::channel<int> never(0);
      ramie::nursery n;
      const int fibers = 20;
      for (int i = 0; i < fibers; ++i) {
        n.spawn([&, i] {
          for (int k = 0; k < i % 7; ++k) ramie::yield();
          ramie::nursery inner;
          inner.spawn([&] {
            ramie::yield();
            waiting.fetch_add(1);
            (void)never.recv();
            through.fetch_add(1);
          });
          inner.join();
        });
      }
      wait_all_blocked();
      EXPECT(found, waiting.load() == fibers, through.load() == 0);
      never.close();
      wait_all_blocked();
      EXPECT(found, through.load() == fibers);
      n.join();
    }
  });
}

TEST_CASE("wait_all_blocked alone returns at once", "[conformance][testing][quiescence]") {
  on_many([](findings&) {
    for (int i = 0; i < 50; ++i) wait_all_blocked();
  });
  ramie::runtime rt(with_workers(2));
  wait_all_blocked(rt);  // no worker has started yet
  rt.run([] {});
  wait_all_blocked(rt);
}

TEST_CASE("fibers that wait for quiescence are let go one by one, in order", "[conformance][testing][quiescence]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    test::journal<int> order;
    std::atomic<int> awake{0}, most{0};
    ramie::run(with_workers(workers), [&] {
      ramie::nursery n;
      for (int i = 0; i < 5; ++i) {
        n.spawn([&, i] {
          wait_all_blocked();
          order.add(i);
          const int now = awake.fetch_add(1) + 1;
          if (now > most.load()) most = now;
          for (int k = 0; k < 10; ++k) ramie::yield();  // not still
          awake.fetch_sub(1);
        });
        wait_all_blocked();  // among them: this one comes last, so the one just spawned has ended
      }
      n.join();
    });
    CHECK(order.entries() == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(most == 1);
  }
}

TEST_CASE("a joiner that is covered by a child counts as blocked", "[conformance][testing][quiescence]") {
  for (const unsigned workers : {1u, 2u}) {
    ramie::runtime rt(with_workers(workers));
    ramie::channel<int> door(0);
    std::atomic<int> deep{0};
    std::thread caller([&] {
      rt.run([&] {
        ramie::nursery a;
        a.spawn([&] {
          ramie::nursery b;
          b.spawn([&] {
            ++deep;
            (void)door.recv();
          });
          b.join();
        });
        a.join();
      });
    });
    test::until([&] { return deep.load() == 1; });
    wait_all_blocked(rt);
    CHECK(deep == 1);
    door.close();
    caller.join();
  }
}

TEST_CASE("plain threads may wait for quiescence, several at once", "[conformance][testing][quiescence]") {
  for (const bool chaos : {false, true}) {
    auto o = with_workers(2);
    if (chaos) o.chaos = ramie::chaos_mode{4};
    ramie::runtime rt(o);
    ramie::channel<int> in(0), out(64);
    std::thread caller([&] {
      rt.run([&] {
        while (auto v = in.recv()) {
          for (int k = 0; k < 5; ++k) ramie::yield();
          out.send(*v);
        }
      });
    });
    std::atomic<int> wrong{0};
    for (int i = 0; i < test::scaled(200, 20); ++i) {
      in.send(i);
      std::thread other;
      if (i % 10 == 0) other = std::thread([&] { wait_all_blocked(rt); });
      wait_all_blocked(rt);
      if (out.size() != 1 || *out.recv() != i) ++wrong;
      if (other.joinable()) other.join();
    }
    CHECK(wrong == 0);
    in.close();
    caller.join();
  }
}

TEST_CASE("a fiber may wait for the quiescence of another runtime", "[conformance][testing][quiescence]") {
  ramie::runtime watched(with_workers(2));
  ramie::channel<int> in(0), out(8);
  std::thread caller([&] {
    watched.run([&] {
      while (auto v = in.recv()) out.send(*v);
    });
  });
  std::size_t seen = 0;
  ramie::run(with_workers(1), [&] {
    for (int i = 0; i < 5; ++i) in.send(i);
    wait_all_blocked(watched);
    seen = out.size();
  });
  CHECK(seen == 5);
  in.close();
  caller.join();
}

TEST_CASE("wait_all_blocked is a cancellation point", "[conformance][testing][quiescence]") {
  on_many([](findings& found) {
    std::atomic<bool> stop{false};
    std::atomic<int> ended{0};
    ramie::nursery busy;
    busy.spawn([&] {
      while (!stop.load()) ramie::yield();  // never still
    });
    {
      ramie::nursery n;
      n.spawn([&] {
        try {
          wait_all_blocked();
        } catch (const ramie::cancelled&) {
          ++ended;
          throw;
        }
      });
      for (int i = 0; i < 20; ++i) ramie::yield();
      n.cancel("enough");
      n.join();
    }
    stop = true;
    busy.join();
    wait_all_blocked();  // the one that left is not in the way
    EXPECT(found, ended.load() <= 1);
  });
}

TEST_CASE("wait_all_blocked on a plain thread wants to know of which runtime", "[conformance][testing][quiescence]") {
  CHECK_THROWS_AS(wait_all_blocked(), ramie::usage_error);
}

TEST_CASE("a fiber that waits for a time counts as blocked", "[conformance][testing][quiescence]") {
  test::as_fiber([](findings& found, ramie::manual_clock& clock) {
    ramie::nursery n;
    ramie::channel<int> never(0);
    bool timed_out = false;
    n.spawn([&] { timed_out = !ramie::with_timeout(1h, [&] { (void)never.recv(); }); });
    wait_all_blocked();
    found.expect(!timed_out);
    clock.advance(1h);
    wait_all_blocked();
    found.expect(timed_out);
    n.join();
  });
}

TEST_CASE("a virtual clock passes the time when all wait", "[conformance][testing][clock]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    for (const bool chaos : {false, true}) {
      virtual_clock clock;
      auto o = with_workers(workers);
      o.clock = &clock;
      if (chaos) o.chaos = ramie::chaos_mode{workers + 10};
      test::journal<int> order;
      const auto began = clock.now();
      ramie::run(o, [&] {
        ramie::nursery n;
        for (const int hours : {30, 10, 20}) {
          n.spawn([&order, hours] {
            ramie::channel<int> never(0);
            (void)ramie::with_timeout(std::chrono::hours(hours), [&] { (void)never.recv(); });
            order.add(hours);
          });
        }
        n.join();
      });
      CHECK(order.entries() == std::vector<int>{10, 20, 30});
      CHECK(clock.now() - began == 30h);
    }
  }
}

TEST_CASE("a virtual clock stands still while a fiber can run", "[conformance][testing][clock]") {
  virtual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  bool too_late = true;
  std::chrono::nanoseconds passed{};
  ramie::run(o, [&] {
    const auto began = ramie::now();
    too_late = !ramie::with_timeout(1ns, [&] {
      ramie::nursery n;
      for (int i = 0; i < 10; ++i) {
        n.spawn([] {
          for (int k = 0; k < 50; ++k) ramie::yield();
        });
      }
      n.join();
    });
    passed = ramie::now() - began;
  });
  CHECK(!too_late);
  CHECK(passed == 0ns);
}

TEST_CASE("those who wait for quiescence come before the clock", "[conformance][testing][clock]") {
  virtual_clock clock;
  auto o = with_workers(2);
  o.clock = &clock;
  std::chrono::nanoseconds at{-1};
  ramie::run(o, [&] {
    ramie::nursery n;
    const auto began = ramie::now();
    n.spawn([] {
      ramie::channel<int> never(0);
      (void)never.recv_for(5s);
    });
    wait_all_blocked();
    at = ramie::now() - began;
    n.join();
  });
  CHECK(at == 0s);
  CHECK(clock.now().time_since_epoch() == 5s);
}

TEST_CASE("a virtual clock can be advanced by hand, and serves one runtime at a time",
          "[conformance][testing][clock]") {
  virtual_clock clock;
  clock.advance(2s);
  auto o = with_workers(1);
  o.clock = &clock;
  {
    ramie::runtime first(o);
    CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
    CHECK(first.run([] { return ramie::now().time_since_epoch(); }) == 2s);
  }
  ramie::run(o, [] { (void)ramie::with_timeout(1s, [] { (void)ramie::channel<int>(0).recv(); }); });
  CHECK(clock.now().time_since_epoch() == 3s);
}

TEST_CASE("a deadline that ends nothing does not stop a virtual clock", "[conformance][testing][clock]") {
  for (const unsigned workers : {1u, 2u}) {
    virtual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    ramie::run(o, [] {
      (void)ramie::with_timeout(1h, [] {
        ramie::shield unharmed;
        ramie::channel<int> never(0);
        (void)never.recv_for(2h);
      });
    });
    CHECK(clock.now().time_since_epoch() == 2h);
  }
}

TEST_CASE("a deadline that comes at a standstill may call stop callbacks that wake", "[conformance][testing][clock]") {
  virtual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  const bool told = ramie::run(o, [] {
    ramie::channel<int> note(1);
    ramie::nursery n;
    n.cancel_at(ramie::now() + 1h);
    std::stop_callback tell(n.get_stop_token(), [&note] { (void)note.try_send(1); });
    ramie::shield unharmed;
    return note.recv().has_value();
  });
  CHECK(told);
}

}  // namespace conformance_testing_quiescence
