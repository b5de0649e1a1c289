// SPDX-License-Identifier: BSL-1.0
// Who waits for a lock or a signal, in order, and the small lock over them. What is done with it is in
// channel/src/sync/line.hpp; here are the fields, so that whatever has one can be a constant-initialised static.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/detail/atomic.hpp>

namespace ramie::detail {

struct waiter;

using sync_time = std::chrono::steady_clock::time_point;

struct line {
  atomic<bool> busy{false};
  waiter* first = nullptr;  // under `busy`, like the rest
  waiter* last = nullptr;
  std::uint64_t places = 0;  // given to waiters so far
};

}  // namespace ramie::detail
