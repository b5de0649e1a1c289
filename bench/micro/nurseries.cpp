// SPDX-License-Identifier: BSL-1.0
// Nurseries on one worker, by a fiber that is alone with it.
#include "micro.hpp"

#include <ramie/ramie.hpp>

#include "one_worker.hpp"

void micro::nurseries(Bench& bench) {
  ramie::run(one_worker(), [&] {
    bench.run("open, close", [] { ramie::nursery n; });
    bench.run("open, spawn one, join", [] {
      ramie::nursery n;
      n.spawn([] {});
      n.join();
    });
    bench.run("open, spawn one, get", [] {
      ramie::nursery n;
      doNotOptimizeAway(n.spawn([] { return 1; }).get());
    });
    constexpr int many = 100;
    bench.batch(many).run("spawn 100, join, each", [] {
      ramie::nursery n;
      for (int i = 0; i < many; ++i) n.spawn([] {});
      n.join();
    });
  });
}
