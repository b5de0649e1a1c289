// SPDX-License-Identifier: BSL-1.0
// A fiber that waits, as seen by another one.
#pragma once

#include <atomic>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>

namespace test {

// Whether f(), called by a fiber of its own that is cancelled while it waits, throws `cancelled`.
template <class F>
[[nodiscard]] bool is_cancelled_while_waiting(F f) {
  std::atomic<bool> cancelled{false};
  ramie::nursery n;
  n.spawn([&] {
    try {
      f();
    } catch (const ramie::cancelled&) {
      cancelled = true;
      throw;
    }
  });
  ramie::testing::wait_all_blocked();
  n.cancel("enough");
  n.join();
  return cancelled;
}

// Calls f() in a fiber of its own and, while it waits, meanwhile(). What f() returned.
template <class F, class G>
[[nodiscard]] auto result_of_waiting(F f, G meanwhile) {
  ramie::nursery n;
  auto ended = n.spawn(f);
  ramie::testing::wait_all_blocked();
  meanwhile();
  auto result = ended.get();
  n.join();
  return result;
}

}  // namespace test
