// SPDX-License-Identifier: BSL-1.0
// A time at which a scope is cancelled, or a wait is ended. The owner of the scope adds the entry and must remove it
// before the scope is closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <ramie/source_location.hpp>

#include <ramie/platform/atomic.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

class cancel_scope;

struct deadline_entry {
  std::chrono::steady_clock::time_point when;
  cancel_scope* target = nullptr;  // null: the entry is a wake_up
  source_location where{};
  std::size_t at = none;  // in the timekeeper's heap

  static constexpr std::size_t none = ~std::size_t{0};
};

struct wake_up : deadline_entry {
  explicit wake_up(std::chrono::steady_clock::time_point at_time) noexcept { when = at_time; }
  waker who;                           // of the wait, under the timekeeper's lock
  platform::atomic<bool> rang{false};  // the time has come
};

// In the scope's runtime. A time that has passed cancels at once. add throws std::bad_alloc or
// std::system_error; remove may be called whether the entry is in or not.
void add_deadline(deadline_entry& entry);
void remove_deadline(deadline_entry& entry) noexcept;

}  // namespace ramie::detail
