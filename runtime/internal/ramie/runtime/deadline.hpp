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

namespace ramie::runtime_internal {

class cancel_scope;

// Lives with its owner, who alone adds and removes it. In between it is the timekeeper's, under the lock of its shard.
struct deadline_entry : timer_node {
  enum class place : std::uint8_t { nowhere, heap, wheel, cancelling };

  place at = place::nowhere;
  bool of_scope = false;               // a scope_deadline, else a wake_up
  platform::atomic<bool> fired{false};  // a wake_up: the time has come, and the timekeeper is done with the entry
  std::uint16_t shard = in_none;       // the owner's: where it was added

  static constexpr std::uint16_t in_none = 0xffff;
};

// On the stack of a fiber that has slept for long, so that a look at it is a miss: one cache line, no more.
struct alignas(64) wake_up : deadline_entry {
  explicit wake_up(std::chrono::steady_clock::time_point at_time) noexcept { when = at_time; }
  waker who;  // of the wait
  // It will be needed soon, with what is around it on its stack: four lines before and behind, measured.
  void prefetch() const noexcept {
    for (int line = -4; line <= 4; ++line) __builtin_prefetch(reinterpret_cast<const char*>(this) + line * 64, 1);
    who.prefetch();
  }
};
static_assert(sizeof(wake_up) == 64);

struct scope_deadline : deadline_entry {
  scope_deadline() noexcept { of_scope = true; }
  // While it is not in.
  void set(std::chrono::steady_clock::time_point at_time, cancel_scope& scope, source_location site) noexcept {
    when = at_time;
    target = &scope;
    where = site;
  }
  cancel_scope* target = nullptr;
  source_location where{};
};

// In the scope's runtime. A time that has passed cancels at once. add throws std::bad_alloc or
// std::system_error; remove may be called whether the entry is in or not.
void add_deadline(scope_deadline& entry);
void remove_deadline(scope_deadline& entry) noexcept;

}  // namespace ramie::runtime_internal
