// SPDX-License-Identifier: BSL-1.0
// Random programs of fibers and threads that park, wake, yield, spawn and cancel, over seeds and worker
// counts, with an oracle: every permit passed is taken exactly once, every fiber ends exactly once.
#include <thread>
#include <vector>

#include <support/fiber_group.hpp>
#include <support/permits.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_random_programs {

using namespace ramie::runtime_internal;
using test::fiber_group;

test::random_test this_test("programs of the core");

struct outcome {
  bool balanced = true;
  int ended = 0;
  int spawned = 0;
};

outcome random_program(const test::setting& how) {
  ramie::runtime rt(how.options());
  outcome result;
  std::vector<test::permits> bags(4);
  std::atomic<bool> stop{false};
  std::thread outside([&] {  // a plain thread joins in
    test::dice random(how.seed * 31);
    while (!stop.load()) {
      bags[random() % bags.size()].pass();
      std::this_thread::yield();  // workers in chaos yield too: it would have the processor to itself
    }
  });
  rt.run([&] {
    test::dice random(how.seed);
    for (int round = 0; round < 4; ++round) {
      cancel_scope scope;
      fiber_group c(scope);
      const int fibers = test::scaled(200, 40);
      for (int i = 0; i < fibers; ++i) {
        c.spawn([&, s = random()] {
          test::dice mine(s);
          for (int step = 0; step < 20; ++step) {
            test::permits& b = bags[mine() % bags.size()];
            switch (mine() % 5) {
              case 0: b.take(); break;
              case 1: b.pass(); break;
              case 2: ramie::yield(); break;
              case 3: {
                ramie::shield guard;
                b.pass();
                b.take();
                break;
              }
              default: c.spawn([&b] { b.pass(); }); break;
            }
          }
        });
      }
      for (std::uint64_t k = random() % 50; k > 0; --k) ramie::yield();
      if (random() % 2 == 0) scope.cancel({ramie::cancel_kind::requested, {}, {}, 0});
      c.join();
      result.ended += c.ran() + c.cancelled() + c.discarded(discard_cause::cancelled);
      result.spawned += fibers;
    }
  });
  stop = true;
  outside.join();
  for (auto& b : bags) result.balanced = result.balanced && b.balanced();
  return result;
}

TEST_CASE("random programs lose no wake and no fiber", "[stress]") {
  this_test.for_each_seed(test::scaled(8, 2), 200, [](const test::setting& how) {
    INFO(how);
    const auto got = random_program(how);
    REQUIRE(got.balanced);
    REQUIRE(got.ended >= got.spawned);
  });
}

}  // namespace stress_random_programs
