// SPDX-License-Identifier: BSL-1.0
// Whether stealing pays, by a clock that the test moves.
#include <chrono>

#include "runtime/src/sched/steal_policy.hpp"
#include <support/test.hpp>

namespace unit_steal_policy {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;

struct thief {
  steal_policy t;
  ramie::platform::time_point now{};

  // Takes `count` fibers, each of which keeps it busy for so long. Whether it was enough to judge.
  bool steals(std::uint32_t count, std::chrono::nanoseconds each) {
    t.on_steal(count, now);
    t.found_something();
    now += count * each;
    return t.has_stolen() && t.on_exhausted(now);
  }
};

TEST_CASE("thefts that do not pay lead to naps, twice as long each time", "[unit][steal_policy]") {
  thief a;
  for (const auto nap : {64us, 128us, 256us, 512us, 1000us, 1000us}) {
    REQUIRE(a.steals(128, 30ns));
    CHECK(a.t.nap_length() == nap);
  }
  SECTION("until a theft pays") {
    REQUIRE(a.steals(stolen_before_judging, worthwhile_theft));
    CHECK(a.t.nap_length() == 0ns);
    REQUIRE(a.steals(128, 30ns));
    CHECK(a.t.nap_length() == shortest_nap);
  }
  SECTION("until it sleeps") {
    a.t.sleeps();
    REQUIRE(a.steals(128, 30ns));
    CHECK(a.t.nap_length() == shortest_nap);
  }
}

TEST_CASE("a few fibers tell nothing, until they are enough", "[unit][steal_policy]") {
  thief a;
  for (std::uint32_t i = 1; i < stolen_before_judging; ++i) CHECK_FALSE(a.steals(1, 30ns));
  CHECK(a.steals(1, 30ns));
  CHECK(a.t.nap_length() == shortest_nap);
  SECTION("and one that was worth it pays for the others") {
    CHECK_FALSE(a.steals(1, 2ms));
    for (std::uint32_t i = 2; i < stolen_before_judging; ++i) CHECK_FALSE(a.steals(1, 30ns));
    CHECK(a.steals(1, 30ns));
    CHECK(a.t.nap_length() == 0ns);
  }
}

TEST_CASE("what is to be judged later is no reason to nap", "[unit][steal_policy]") {
  thief a;
  REQUIRE(a.steals(128, 30ns));
  a.t.judge_later();
  CHECK_FALSE(a.steals(1, 30ns));
  REQUIRE(a.steals(stolen_before_judging, 2 * worthwhile_theft));
  CHECK(a.t.nap_length() == 0ns);
}

TEST_CASE("a wake that finds nothing counts as a theft that does not pay", "[unit][steal_policy]") {
  thief a;
  CHECK_FALSE(a.t.not_needed(0));
  a.t.woken();
  a.t.found_something();
  CHECK_FALSE(a.t.not_needed(0));
  a.t.woken();
  REQUIRE(a.t.not_needed(0));
  CHECK(a.t.nap_length() == shortest_nap);
}

TEST_CASE("a worker naps on while the others get on", "[unit][steal_policy]") {
  thief a;
  CHECK_FALSE(a.t.not_needed(7));  // it has no reason to nap at all
  CHECK_FALSE(a.t.not_needed(8));
  a.t.woken();
  REQUIRE(a.t.not_needed(9));
  CHECK(a.t.nap_length() == shortest_nap);
  REQUIRE(a.t.not_needed(10));
  CHECK(a.t.nap_length() == 2 * shortest_nap);
  CHECK_FALSE(a.t.not_needed(10));  // they do not: it sleeps, and can be woken
}

}  // namespace unit_steal_policy
