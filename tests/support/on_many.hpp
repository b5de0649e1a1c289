// SPDX-License-Identifier: BSL-1.0
// The same test as the root fiber of several runtimes: worker counts, with and without chaos, with time that passes by
// itself.
#pragma once

#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace test {

enum class chaos : bool { without, with_and_without };
enum class time_is : bool { real, virtual_clock };

// f(found) on 1, 2 and 4 workers.
template <class F>
void on_many(F f, chaos how = chaos::with_and_without, time_is whose = time_is::real) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    for (const bool chaotic : {false, true}) {
      if (chaotic && how == chaos::without) continue;
      ramie::testing::virtual_clock clock;
      auto o = with_workers(workers);
      if (whose == time_is::virtual_clock) o.clock = &clock;
      if (chaotic) o.chaos = ramie::chaos_mode{workers + 3};
      findings found;
      ramie::run(o, [&] { f(found); });
      INFO("workers " << workers << ", chaos " << chaotic);
      CHECK(found.wrong() == "");
    }
  }
}

// The same with a virtual_clock.
template <class F>
void in_virtual_time(F f, chaos how = chaos::with_and_without) {
  on_many(f, how, time_is::virtual_clock);
}

}  // namespace test
