// SPDX-License-Identifier: BSL-1.0
// Handles of tasks: who may hold them, wait by them and let go of them.
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_task_handles {

using ramie::nursery;
using ramie::usage_error;
using test::with_workers;

TEST_CASE("results are destroyed once, whoever lets go last", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    test::census results;
    ramie::run(with_workers(workers), [&] {
      for (int round = 0; round < test::scaled(200, 20); ++round) {
        nursery n;
        std::vector<ramie::task<test::citizen>> kept;
        for (int i = 0; i < 20; ++i) {
          auto t = n.spawn([&, i] {
            if (i % 2 == 0) ramie::yield();
            return test::citizen(results);
          });
          if (i % 3 == 0) kept.push_back(std::move(t));  // others are dropped before, while or after they run
          if (i % 5 == 0) ramie::yield();
        }
        if (round % 2 == 0) kept.clear();
        n.join();
        if (round % 4 == 1) (void)kept.front().get();
      }
    });
    CHECK(results.made.load() > 0);
    CHECK(results.alive() == 0);
  }
}

TEST_CASE("a task used after its nursery has died is a detected misuse", "[conformance][nursery][misuse]") {
  ramie::runtime rt(with_workers(1));
  ramie::task<std::string> orphan;
  rt.run([&] {
    {
      nursery n;
      orphan = n.spawn([] { return std::string("too late"); });
      n.join();
    }
    CHECK_THROWS_AS(orphan.get(), usage_error);
    nursery again;  // very likely in the same memory
    auto fresh = again.spawn([] { return std::string("fresh"); });
    CHECK_THROWS_AS(orphan.get(), usage_error);
    CHECK_THROWS_AS(orphan.done(), usage_error);
    orphan.reset();
    CHECK(fresh.get() == "fresh");
    again.join();
    orphan = std::move(fresh);
  });
  CHECK_THROWS_AS(orphan.get(), usage_error);
}

TEST_CASE("a handle may be dropped by anybody at any time", "[conformance][nursery]") {
  test::census results;
  for (int round = 0; round < test::scaled(200, 20); ++round) {
    std::atomic<int> stage{0};
    ramie::task<test::citizen> handle;
    std::thread outside([&] {
      while (stage.load() == 0) std::this_thread::yield();
      handle.reset();
    });
    ramie::run(with_workers(2), [&] {
      nursery n;
      handle = n.spawn([&] {
        ramie::yield();
        return test::citizen(results);
      });
      stage.store(1);
      n.join();
    });
    outside.join();
  }
  CHECK(results.alive() == 0);
}

TEST_CASE("a plain thread may wait for a task", "[conformance][nursery]") {
  ramie::run(with_workers(2), [] {
    test::runtime_internal::gate door;
    nursery n;
    auto t = n.spawn([&] {
      test::wait_at(door);
      return 5;
    });
    std::atomic<int> got{0};
    std::thread outside([&] { got.store(t.get()); });
    while (!door.is_open()) door.open();
    while (got.load() == 0) ramie::yield();
    n.join();
    outside.join();
    CHECK(got.load() == 5);
  });
}

TEST_CASE("any number may wait for one task", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> seen{0};
    ramie::run(with_workers(workers), [&] {
      test::runtime_internal::gate door;
      nursery n;
      auto awaited = n.spawn([&] { test::wait_at(door); });
      nursery waiting;
      for (int i = 0; i < 20; ++i) {
        waiting.spawn([&] {
          awaited.wait();
          seen.fetch_add(1);
        });
      }
      waiting.spawn([&] {
        for (int i = 0; i < 10; ++i) ramie::yield();
        door.open();
      });
      waiting.join();
      awaited.wait();
      n.join();
    });
    CHECK(seen.load() == 20);
  }
}

}  // namespace conformance_nursery_task_handles
