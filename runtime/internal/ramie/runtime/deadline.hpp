// SPDX-License-Identifier: BSL-1.0
// A time at which a scope is cancelled, or a wait is ended. The owner of the scope adds the entry and must remove it
// before the scope is closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ramie/source_location.hpp>

#include <ramie/platform/atomic.hpp>
#include <ramie/runtime/timer_heap.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

class cancel_scope;

// Lives with its owner, who alone adds and removes it. In between it is the timekeeper's, under the lock of its shard.
struct deadline_entry : exact_node {
  deadline_entry() noexcept = default;
  deadline_entry(std::chrono::steady_clock::time_point at_time, cancel_scope* scope, source_location site) noexcept
      : target(scope), where(site) {
    when = at_time;
  }

  enum class place : std::uint8_t { nowhere, heap, wheel, cancelling };

  cancel_scope* target = nullptr;  // null: the entry is a wake_up
  source_location where{};
  std::uint16_t shard = in_none;  // the owner's: where it was added
  place at = place::nowhere;

  static constexpr std::uint16_t in_none = 0xffff;
};

struct wake_up : deadline_entry {
  explicit wake_up(std::chrono::steady_clock::time_point at_time) noexcept { when = at_time; }
  waker who;                           // of the wait
  platform::atomic<bool> rang{false};  // the time has come, and the timekeeper is done with the entry
};

// In the scope's runtime. A time that has passed cancels at once. add throws std::bad_alloc or
// std::system_error; remove may be called whether the entry is in or not.
void add_deadline(deadline_entry& entry);
void remove_deadline(deadline_entry& entry) noexcept;

}  // namespace ramie::detail
