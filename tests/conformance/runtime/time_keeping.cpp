// SPDX-License-Identifier: BSL-1.0
// Deadlines by the machine's clock, whoever runs or sleeps: here they must come at all, not early, and once. One that
// not even the keeper keeps hangs its test. That they are not late is shown where no machine can be slow: who looks,
// and when, in monitor.cpp; by the model's clock in ../explore/keepers.cpp. The rest is for benchmarks.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace conformance_time_keeping {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using ramie::nursery;
using test::with_workers;

TEST_CASE("sleepers are woken when it is time, none of them early", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    std::atomic<int> early{0}, woken{0};
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < 200; ++i) {
        n.spawn([&, i] {
          test::dice dice(static_cast<std::uint64_t>(i) + 1);
          for (int k = 0; k < 5; ++k) {
            // Near ones and some beyond the exact timers' reach.
            const auto time = std::chrono::microseconds(dice.below(dice.one_in(3) ? 9'000 : 700));
            const auto start = clock::now();
            ramie::sleep_for(time);
            early.fetch_add(clock::now() < start + time);
            woken.fetch_add(1);
          }
        });
      }
      n.join();
    });
    CHECK(early.load() == 0);
    CHECK(woken.load() == 1000);
  }
}

TEST_CASE("a new earliest deadline is kept though everybody sleeps for a later one", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u}) {
    bool slept = false;
    ramie::runtime rt(with_workers(workers));
    rt.run([&] {
      nursery n;
      ramie::channel<int> bell(0);
      n.spawn([] { ramie::sleep_for(1h); });
      n.spawn([&] {
        (void)bell.recv();
        ramie::sleep_for(2ms);
        ramie::sleep_for(20ms);
        slept = true;
        n.cancel();
      });
      std::thread outside([&] {
        ramie::testing::wait_all_blocked(rt);
        bell.send(1);
      });
      n.join();
      outside.join();
    });
    CHECK(slept);
  }
}

TEST_CASE("a fiber that holds its worker does not keep others from their deadlines", "[conformance][time]") {
  const auto hogged = [](ramie::options o) {
    std::atomic<bool> over{false};
    ramie::run(o, [&] {
      nursery n;
      n.spawn([&] {
        ramie::sleep_for(3ms);
        over.store(true);
      });
      n.spawn([&] {
        ramie::yield();  // the other one sleeps by now, on this worker's shard perhaps
        while (!over.load()) std::this_thread::yield();
      });
      n.join();
    });
    return over.load();
  };
  SECTION("the other worker, or the keeper, looks") {
    auto two = with_workers(2);
    two.elastic = false;
    for (int i = 0; i < 10; ++i) CHECK(hogged(two));
  }
  SECTION("a worker is added") {
    CHECK(hogged(test::one_elastic_worker()));
  }
}

TEST_CASE("fibers that never wait see to it that others' deadlines are kept", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u}) {
    auto o = with_workers(workers);
    o.elastic = false;
    std::atomic<bool> over{false};
    std::atomic<int> timed_out{0};
    ramie::run(o, [&] {
      ramie::channel<int> idle(0), busy(1);
      nursery n;
      n.spawn([&] {
        for (int i = 0; i < 3; ++i) timed_out.fetch_add(idle.recv_for(1ms).status() == ramie::channel_status::timed_out);
        over.store(true);
      });
      n.spawn([&] {
        while (!over.load()) ramie::yield();
      });
      n.spawn([&] {
        while (!over.load()) {
          (void)busy.try_send(1);
          (void)busy.try_recv();
          ramie::yield();
        }
      });
      n.join();
    });
    CHECK(timed_out.load() == 3);
  }
}

TEST_CASE("a scope is cancelled by the machine's clock, asleep or not", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u}) {
    int cut_short = 0;
    bool in_time = false;
    ramie::run(with_workers(workers), [&] {
      cut_short += !ramie::with_timeout(1ms, [] { ramie::sleep_for(1h); });
      cut_short += !ramie::with_timeout(6ms, [] { ramie::sleep_until(clock::time_point::max()); });
      cut_short += !ramie::with_timeout(1ms, [] {
        for (;;) ramie::yield();
      });
      in_time = ramie::with_timeout(1h, [] { ramie::sleep_for(1ms); });
    });
    CHECK(cut_short == 3);
    CHECK(in_time);
  }
}

TEST_CASE("many timeouts that are never needed leave nothing behind", "[conformance][time]") {
  for (const unsigned workers : {1u, 2u}) {
    long sum = 0;
    ramie::run(with_workers(workers), [&] {
      ramie::channel<int> c(1);
      nursery n;
      n.spawn([&] {
        for (int i = 0; i < 20'000; ++i) {
          (void)ramie::with_timeout(1h, [&] { c.send(i); });
        }
        c.close();
      });
      for (;;) {
        auto got = c.recv_for(1h);
        if (!got) break;
        sum += *got;
      }
      n.join();
    });
    CHECK(sum == 20'000L * 19'999 / 2);
  }
}

TEST_CASE("workers that retire leave their deadlines to the others", "[conformance][time]") {
  auto o = with_workers(2);
  o.chaos = ramie::chaos_mode{7};  // workers come and go
  std::atomic<int> woken{0};
  ramie::run(o, [&] {
    nursery n;
    for (int i = 0; i < 100; ++i) {
      n.spawn([&, i] {
        ramie::sleep_for(std::chrono::microseconds(100 * i));
        woken.fetch_add(1);
      });
    }
    n.join();
  });
  CHECK(woken.load() == 100);
}

}  // namespace conformance_time_keeping
