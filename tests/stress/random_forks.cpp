// SPDX-License-Identifier: BSL-1.0
// Random computations that divide themselves, by parallel_invoke and parallel_for in any depth, whose calls wait, throw,
// time out, open nurseries and scopes, are cancelled from outside and alone, and set fiber-locals; over seeds and worker
// counts, with an oracle: each call is made once when the function returns, at most once when it throws, and none is
// under way by then; the runtime has started or discarded each fiber that it has counted as spawned.
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/permits.hpp>
#include <support/random.hpp>
#include <support/reports.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_random_forks {

using namespace std::chrono_literals;
using ramie::nursery;

test::random_test this_test("divided computations");

ramie::fiber_local<int, ramie::inherit::yes> heirloom;

struct world {
  test::census calls;
  std::atomic<long> budget;  // calls still to be offered
  std::atomic<int> doubled{0}, lost{0}, outlived{0};
  std::atomic<long> divided{0};
  test::permits bag;
  ramie::manual_clock clock;
  explicit world(long calls_in_all) : budget(calls_in_all) {}
};

void compute(world& w, std::uint64_t seed, int depth);

// The calls of one parallel_invoke or parallel_for.
class accounts {
 public:
  accounts(world& of, std::size_t calls) : world_(of), begun_(calls) {}
  void call(std::size_t which, std::uint64_t seed, int depth) {
    const presence here(under_way_);
    const test::citizen counted(world_.calls);
    if (begun_[which].fetch_add(1) != 0) world_.doubled.fetch_add(1);
    compute(world_, seed + which, depth);
  }
  void close(bool returned) {
    if (under_way_.load() != 0) world_.outlived.fetch_add(1);
    for (const auto& each : begun_) {
      if (returned && each.load() == 0) world_.lost.fetch_add(1);
    }
    if (returned) world_.divided.fetch_add(static_cast<long>(begun_.size()));
  }

 private:
  struct presence {
    std::atomic<int>& count;
    explicit presence(std::atomic<int>& c) : count(c) { count.fetch_add(1); }
    ~presence() { count.fetch_sub(1); }
  };
  world& world_;
  std::vector<std::atomic<int>> begun_;
  std::atomic<int> under_way_{0};
};

void divide(world& w, test::dice& random, int depth) {
  const auto seed = random();
  const auto kind = random() % 4;
  const std::size_t count = kind == 3 ? random() % 24 : kind == 2 ? random() % 5 : 2 + kind;
  if (w.budget.fetch_sub(static_cast<long>(count)) <= 0) return;
  accounts all(w, count);
  const auto call = [&](std::size_t i) { return [&all, seed, depth, i] { all.call(i, seed, depth); }; };
  try {
    switch (kind) {
      case 0: ramie::parallel_invoke(call(0), call(1)); break;
      case 1: ramie::parallel_invoke(call(0), call(1), call(2)); break;
      case 2: {
        std::vector<std::function<void()>> calls;
        for (std::size_t i = 0; i < count; ++i) calls.emplace_back(call(i));
        ramie::parallel_invoke(calls);
        break;
      }
      default: ramie::parallel_for(count, [&](std::size_t i) { all.call(i, seed, depth); }); break;
    }
  } catch (...) {
    all.close(false);
    throw;
  }
  all.close(true);
}

// Children that compute, some of which are cancelled alone; all are joined here.
void sow(world& w, test::dice& random, int depth) {
  nursery n;
  std::vector<ramie::task<void>> kept;
  if (random() % 4 == 0) n.cancel_after(std::chrono::milliseconds(random() % 30));
  for (auto i = random() % 4; i > 0; --i) {
    auto t = n.spawn([&w, s = random(), depth] { compute(w, s, depth); });
    if (random() % 2 == 0) kept.push_back(std::move(t));
  }
  if (random() % 2 == 0) divide(w, random, depth);
  for (auto& t : kept) {
    if (random() % 2 == 0) t.cancel();
  }
  if (random() % 8 == 0) n.cancel("enough");
  n.join();
}

void step(world& w, test::dice& random, int depth) {
  switch (random() % 16) {
    case 0: w.bag.take(); break;
    case 1: w.bag.pass(); break;
    case 2: ramie::yield(); break;
    case 3: {
      ramie::shield guard;
      if (depth > 0) divide(w, random, depth - 1);
      break;
    }
    case 4:
      (void)ramie::with_timeout(std::chrono::milliseconds(random() % 50), [&] {
        if (depth > 0) divide(w, random, depth - 1);
        w.bag.take();
      });
      break;
    case 5: w.clock.advance(std::chrono::milliseconds(random() % 10)); break;
    case 6:
      if (random() % 8 == 0) throw std::runtime_error("weather");
      break;
    case 7:
      if (random() % 8 == 0) heirloom.set(static_cast<int>(random() % 100));
      break;
    case 8:
    case 9:
      if (depth > 0) sow(w, random, depth - 1);
      break;
    case 10:
      try {  // a failure inside is handled, and while it is, others are made
        if (depth > 0) divide(w, random, depth - 1);
      } catch (const std::runtime_error&) {
        if (depth > 0) divide(w, random, depth - 1);
      }
      break;
    case 11: ramie::check_cancelled(); break;
    default:
      if (depth > 0) divide(w, random, depth - 1);
      break;
  }
}

void compute(world& w, std::uint64_t seed, int depth) {
  test::dice random(seed);
  for (auto i = random() % 4; i > 0; --i) step(w, random, depth);
}

struct result {
  int doubled, lost, outlived;
  long alive, divided;
  bool counted;
};

result random_computation(const test::setting& how) {
  world w(test::scaled(1500, 300));
  auto o = how.options();
  o.clock = &w.clock;
  ramie::runtime rt(o);
  rt.run([&] {
    // Somebody passes permits and time, so that every wait ends.
    nursery weather;
    std::atomic<bool> over{false};
    weather.spawn([&] {
      while (!over.load()) {
        w.bag.pass();
        w.clock.advance(1ms);
        ramie::yield();
      }
    });
    test::dice random(how.seed);
    for (int i = 0; i < 6; ++i) {
      try {
        if (i % 2 == 0) {
          divide(w, random, 6);
        } else {
          sow(w, random, 6);
        }
      } catch (const std::runtime_error&) {
      } catch (const ramie::cancelled&) {  // its own nursery's, without a cause
      }
    }
    over.store(true);
    weather.join();
  });
  const auto total = rt.stats().total;
  return {w.doubled.load(), w.lost.load(), w.outlived.load(), w.calls.alive(), w.divided.load(),
          total.spawned + 1 == total.started + total.discarded};  // run's own fiber came from outside
}

TEST_CASE("random divided computations make each call once", "[stress][nursery][parallel]") {
  const test::reports quiet;
  long divided = 0;
  this_test.for_each_seed(test::scaled(24, 4), 2'000, [&](const test::setting& how) {
    const result r = random_computation(how);
    INFO(how);
    REQUIRE(r.doubled == 0);
    REQUIRE(r.lost == 0);
    REQUIRE(r.outlived == 0);
    REQUIRE(r.alive == 0);
    REQUIRE(r.counted);
    divided += r.divided;
  });
  CHECK(divided > 10 * static_cast<long>(this_test.programs()));
}

}  // namespace stress_random_forks
