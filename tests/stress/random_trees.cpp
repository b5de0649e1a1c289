// SPDX-License-Identifier: BSL-1.0
// Random trees of nurseries that spawn, park, throw, cancel, shield and time out, over seeds and worker counts, with
// an oracle: every closure, result and scope-lifetime object is destroyed exactly once, nothing runs after its
// nursery has ended, all stacks come back; frames are counted by the runtime when it ends.
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/permits.hpp>
#include <support/reports.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_random_trees {

using namespace std::chrono_literals;
using ramie::nursery;

test::random_test this_test("trees of nurseries");

struct forest {
  test::census closures, results, objects, nurseries;
  std::atomic<long> budget;  // children still to be made
  std::atomic<int> outlived{0};
  test::permits bag;
  ramie::manual_clock clock;
  explicit forest(long children) : budget(children) {}
};

// Set while its nursery lives; a child that sees it unset has outlived its nursery.
struct plot {
  std::atomic<bool> alive{true};
  ~plot() { alive.store(false); }
};

void grow(forest& f, std::uint64_t seed, int depth);

void step(forest& f, test::dice& random, nursery& home, int depth) {
  switch (random() % 14) {
    case 0: f.bag.take(); break;
    case 1: f.bag.pass(); break;
    case 2: ramie::yield(); break;
    case 3: {
      ramie::shield guard;
      f.bag.pass();
      f.bag.take();
      break;
    }
    case 4: (void)ramie::with_timeout(std::chrono::milliseconds(random() % 50), [&] { f.bag.take(); }); break;
    case 5: f.clock.advance(std::chrono::milliseconds(random() % 10)); break;
    case 6:
      if (depth > 0) grow(f, random(), depth - 1);
      break;
    case 7:
      if (depth > 0) {
        ramie::shield guard;
        grow(f, random(), depth - 1);
      }
      break;
    case 8:
      if (random() % 8 == 0) throw std::runtime_error("weather");
      break;
    case 9:
      if (random() % 8 == 0) home.cancel("pruned");
      break;
    case 10: home.make<test::citizen>(f.objects); break;
    case 11:
      if (random() % 4 == 0) {
        try {
          ramie::yield();
        } catch (const ramie::cancelled&) {  // swallowed: it comes again
        }
      }
      break;
    default: ramie::check_cancelled(); break;
  }
}

void branch(forest& f, plot& ground, nursery& home, std::uint64_t seed, int depth) {
  test::dice random(seed);
  for (int i = static_cast<int>(random() % 6); i >= 0; --i) {
    if (!ground.alive.load()) f.outlived.fetch_add(1);
    step(f, random, home, depth);
    if (random() % 5 == 0 && f.budget.fetch_sub(1) > 0) {
      home.spawn([&f, &ground, &home, s = random(), depth, c = test::citizen(f.closures)] {
        branch(f, ground, home, s, depth);
      });
    }
  }
}

// A nursery that is joined, left by return or left by an exception.
void grow(forest& f, std::uint64_t seed, int depth) {
  const test::citizen counted(f.nurseries);
  test::dice random(seed);
  plot ground;
  std::vector<ramie::task<test::citizen>> kept;
  nursery n;
  if (random() % 4 == 0) n.cancel_after(std::chrono::milliseconds(random() % 30));
  for (int i = static_cast<int>(random() % 8); i >= 0 && f.budget.fetch_sub(1) > 0; --i) {
    auto t = n.spawn([&f, &ground, &n, s = random(), depth, c = test::citizen(f.closures)] {
      branch(f, ground, n, s, depth);
      return test::citizen(f.results);
    });
    if (random() % 2 == 0) kept.push_back(std::move(t));
  }
  branch(f, ground, n, random(), depth);
  if (!kept.empty() && random() % 2 == 0) (void)kept.front().get();
  if (random() % 4 == 0) return;
  if (random() % 4 == 0) kept.clear();
  if (random() % 8 == 0) (void)n.shutdown(std::chrono::milliseconds(random() % 20));
  n.join();
}

struct harvest {
  long alive, outlived, grown;
  bool stacks_back;  // but for those that workers keep: the one they are on, and their spares
};

harvest random_forest(const test::setting& how) {
  forest f(test::scaled(400, 100));
  auto o = how.options();
  o.clock = &f.clock;
  ramie::runtime rt(o);
  rt.run([&] {
    // Somebody passes permits and time, so that every wait ends.
    nursery weather;
    std::atomic<bool> over{false};
    weather.spawn([&] {
      while (!over.load()) {
        f.bag.pass();
        f.clock.advance(1ms);
        ramie::yield();
      }
    });
    for (int tree = 0; tree < 4; ++tree) {
      try {
        grow(f, how.seed * 100 + static_cast<std::uint64_t>(tree), 4);
      } catch (const std::runtime_error&) {
      } catch (const ramie::cancelled&) {  // its own nursery's, without a cause
      }
    }
    over.store(true);
    weather.join();
  });
  const long alive = f.closures.alive() + f.results.alive() + f.objects.alive() + f.nurseries.alive();
  const auto stats = rt.stats();
  const bool stacks_back = stats.stacks_in_use <= stats.workers.size() * (ramie::runtime_internal::stack_cache_limit + 1);
  return {alive, f.outlived.load(), f.nurseries.made.load() + f.closures.made.load(), stacks_back};
}

TEST_CASE("random trees of nurseries leave nothing behind", "[stress][nursery]") {
  const test::reports quiet;
  long grown = 0;
  this_test.for_each_seed(test::scaled(40, 6), 2'000, [&](const test::setting& how) {
    const harvest h = random_forest(how);
    INFO(how);
    REQUIRE(h.alive == 0);
    REQUIRE(h.outlived == 0);
    REQUIRE(h.stacks_back);
    grown += h.grown;
  });
  CHECK(grown > 20 * static_cast<long>(this_test.programs()));
}

}  // namespace stress_random_trees
