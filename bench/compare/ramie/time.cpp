// SPDX-License-Identifier: BSL-1.0
// Fibers that sleep.
#include <compare/ramie/ramie.hpp>
#include <compare/sleeps.hpp>

namespace compare {

result sleepers(unsigned workers, const sizes& s) {
  const long fibers = s["fibers"], sleeps = s["sleeps"], in_a_row = s["in_a_row"];
  const result r = ramie::run(with_small_stacks(workers), [=] {
    sleep_log log(fibers, sleeps);
    ramie::nursery n;
    for (long i = 0; i < fibers; ++i) {
      n.spawn([&log, i] { log.live(i, [](auto time) { ramie::sleep_for(time); }); });
      if (i % in_a_row == in_a_row - 1) ramie::yield();
    }
    n.join();
    return log.found();
  });
  require(r.extra.back().second == 0, "a sleep that ended early");
  return r;
}

}  // namespace compare
