// SPDX-License-Identifier: BSL-1.0
// Boost.Fiber, as both tables measure it.
#pragma once

#include <boost/fiber/all.hpp>
#include <vector>

#include <support/rows.hpp>

namespace bench {

// Spawn `at_once` empty fibers on pooled stacks, join them, again and again.
inline double boost_spawn(int at_once, long total) {
  namespace fibers = boost::fibers;
  fibers::pooled_fixedsize_stack stacks(16 * 1024);
  std::vector<fibers::fiber> all;
  const auto start = stopwatch::now();
  for (long done = 0; done < total; done += at_once) {
    all.clear();
    for (int i = 0; i < at_once; ++i) all.emplace_back(std::allocator_arg, stacks, [] {});
    for (auto& f : all) f.join();
  }
  return ns_each(total, start);
}

}  // namespace bench
