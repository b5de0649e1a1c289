// SPDX-License-Identifier: BSL-1.0
// ramie's side of bench/compare.
//
// One worker is really one (not elastic); more are as a user gets them by default. Fork-join opens a nursery at every
// level and computes one half itself: joins run unstarted children in place.
#pragma once

#include <compare/program.hpp>
#include <ramie/ramie.hpp>

namespace compare {

inline ramie::options with(unsigned workers) {
  ramie::options o;
  o.workers = workers;
  o.elastic = workers > 1;
  return o;
}

// fork_join.cpp
result yields(unsigned workers, const sizes&);
result spawn_join(unsigned workers, const sizes&);
result spawn_all(unsigned workers, const sizes&);
result fib(unsigned workers, const sizes&);
result skynet_join(unsigned workers, const sizes&);
// channels.cpp
result skynet_channels(unsigned workers, const sizes&);
result ping_pong(unsigned workers, const sizes&);
result stream(unsigned workers, const sizes&);
result ring(unsigned workers, const sizes&);
result sieve(unsigned workers, const sizes&);
// waiting.cpp
result parked(unsigned workers, const sizes&);
result wake(unsigned workers, const sizes&);
result idle(unsigned workers, const sizes&);

}  // namespace compare
