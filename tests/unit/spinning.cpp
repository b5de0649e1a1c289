// SPDX-License-Identifier: BSL-1.0
// Whether a thread that waits should spin.
#include "runtime/src/sched/spinning.hpp"
#include <support/test.hpp>

namespace unit_spinning {

using namespace ramie::runtime_internal;

// How many waits go by without a spin.
std::uint32_t left_out(spin_forecast& forecast) {
  std::uint32_t count = 0;
  while (!forecast.is_worthwhile()) ++count;
  return count;
}

TEST_CASE("a spin in vain is left out, twice as often each time, up to a limit", "[unit][spinning]") {
  spin_forecast forecast;
  CHECK(left_out(forecast) == 0);  // nothing is known yet
  for (const std::uint32_t expected : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u, 64u}) {
    forecast.did_not_pay();
    CHECK(left_out(forecast) == expected);
  }
  CHECK(most_spins_left_out == 64);
}

TEST_CASE("a spin that pays is made again, and the next one in vain is left out once", "[unit][spinning]") {
  spin_forecast forecast;
  for (int i = 0; i < 5; ++i) forecast.did_not_pay();
  CHECK(left_out(forecast) == 16);
  for (int i = 0; i < 3; ++i) {
    forecast.paid();
    CHECK(left_out(forecast) == 0);
  }
  forecast.did_not_pay();
  CHECK(left_out(forecast) == 1);
}

TEST_CASE("workers that are awake need a processor each, those that sleep none", "[unit][spinning]") {
  idle_set workers(4);
  for (std::uint32_t i = 0; i < 3; ++i) {
    workers.add_worker();
    workers.announce_sleep(i, false);
  }
  const spare_processors spare(workers, 2);
  CHECK(spare.suffice_for(2));
  CHECK_FALSE(spare.suffice_for(3));
  REQUIRE(workers.cancel_sleep(1));
  CHECK(workers.load().awake() == 1);
  CHECK(spare.suffice_for(1));
  CHECK_FALSE(spare.suffice_for(2));
  REQUIRE(workers.cancel_sleep(0));
  REQUIRE(workers.cancel_sleep(2));
  CHECK(spare.suffice_for(0) == false);
  workers.remove_worker();
  CHECK(spare.suffice_for(0));
  CHECK_FALSE(spare.suffice_for(1));
}

}  // namespace unit_spinning
