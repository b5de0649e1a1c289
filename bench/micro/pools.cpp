// SPDX-License-Identifier: BSL-1.0
// Frames and stacks: from a worker's cache, from the pool, from the system.
#include "micro.hpp"

#include <ramie/platform/stack_pool.hpp>
#include "runtime/src/task/frame_pool.hpp"

namespace {

using namespace ramie::runtime_internal;
namespace platform = ramie::platform;
using micro::doNotOptimizeAway;

void never_run(platform::arrival) {}

void frames(micro::Bench& bench) {
  frame_pool pool;
  frame_cache cache;
  bench.run("frame cache: take, give", [&] { cache.give(cache.take(pool), pool); });
  cache.give_all(pool);
  bench.run("frame pool: take one, give one", [&] { pool.give_batch(pool.take_one(), 1); });
  bench.run("frame pool: take a batch, give it", [&] {
    std::uint32_t count = 0;
    fiber* const first = pool.take_batch(count);
    pool.give_batch(first, count);
  });
}

void stacks(micro::Bench& bench) {
  const auto usual = platform::stack_class_for(64 * 1024);
  platform::stack_pool warm(never_run);
  bench.run("stack: take hot, give back", [&] { warm.give_back(warm.take(usual)); });
  platform::stack_pool cold(never_run, platform::guard_kind::automatic, 0);
  bench.run("stack: take trimmed, give back, trim", [&] {
    cold.give_back(cold.take(usual));
    doNotOptimizeAway(cold.trim(1));
  });
  constexpr int fresh = 256;
  bench.batch(fresh).run("stack: first use (guard, first touch, and at last unmap)", [&] {
    platform::stack_pool pool(never_run);
    platform::stack_block* taken[fresh];
    for (auto& stack : taken) stack = pool.take(usual);
    for (auto* const stack : taken) pool.give_back(stack);
  });
}

}  // namespace

void micro::pools(Bench& bench) {
  frames(bench);
  stacks(bench);
}
