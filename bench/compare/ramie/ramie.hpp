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

inline ramie::options with_small_stacks(unsigned workers) {
  auto o = with(workers);
  o.stack_size = 16 * 1024;  // as Boost.Fiber's
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
result watch_in_turns(unsigned workers, const sizes&);
// waiting.cpp
result parked(unsigned workers, const sizes&);
result wake(unsigned workers, const sizes&);
result idle(unsigned workers, const sizes&);
// time.cpp
result sleepers(unsigned workers, const sizes&);
// locks.cpp
result mutex_shared(unsigned workers, const sizes&);
result mutex_alone(unsigned workers, const sizes&);
result semaphore_alone(unsigned workers, const sizes&);
result notify_in_turns(unsigned workers, const sizes&);
result once_get(unsigned workers, const sizes&);
// blocking.cpp
result blocking_call(unsigned workers, const sizes&);
// files.cpp
result file_reads(unsigned workers, const sizes&);
// net.cpp: a server
result echo(unsigned workers, const sizes&);

}  // namespace compare
