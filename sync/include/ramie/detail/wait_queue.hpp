// SPDX-License-Identifier: BSL-1.0
// What all classes of sync/ are made of: the queue of waiters with the small lock over it, what happens when an object
// is destroyed too early, and checks of counts. The operations of the queue are in sync/src/wait_queue.hpp; here are
// the fields, so that an object can be a constant-initialised static. Not part of the API.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/atomic.hpp>
#include <ramie/detail/ready_source.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

using sync_time = std::chrono::steady_clock::time_point;
inline constexpr sync_time never = sync_time::max();

struct wait_queue {
  atomic<bool> busy{false};
  waiter* first = nullptr;  // under `busy`, like the rest
  waiter* last = nullptr;
  std::uint64_t places = 0;  // given to waiters so far
};

// Ends the program with a message, in builds with checks.
[[gnu::cold]] void destroyed_in_use(const char* object, const char* that) noexcept;

// The base of every public class. Core has a `name`, and in_use() says what forbids its destruction, or null.
template <class Core>
class sync_object {
 public:
  sync_object(const sync_object&) = delete;
  sync_object& operator=(const sync_object&) = delete;

 protected:
  constexpr sync_object() noexcept = default;
  template <class... Fields>
  explicit constexpr sync_object(std::in_place_t, Fields... fields) noexcept : core_{fields..., {}} {}
  ~sync_object() {
    if (const char* const that = core_.in_use()) [[unlikely]]
      destroyed_in_use(Core::name, that);
  }

  Core core_;
};

// Throws usage_error: "ramie: <function>: a count of <count>. <what_to_do>"
[[noreturn, gnu::cold]] void refuse_count(const char* function, std::int64_t count, const char* what_to_do);

// Counts are below 2^62, so that one may be added to another and shifted by one bit.
inline constexpr std::int64_t max_count = (std::int64_t{1} << 62) - 1;

[[nodiscard]] constexpr std::uint64_t checked_count(std::int64_t count, std::int64_t least, const char* function,
                                                    const char* what_to_do) {
  if (count < least || count > max_count) refuse_count(function, count, what_to_do);
  return static_cast<std::uint64_t>(count);
}
// Any integer as a signed one; what is too big for that is refused like max_count + 1.
template <std::integral Count>
[[nodiscard]] constexpr std::int64_t signed_count(Count count) noexcept {
  if constexpr (std::unsigned_integral<Count> && sizeof(Count) >= sizeof(std::int64_t)) {
    if (count > static_cast<std::uint64_t>(max_count)) return max_count + 1;
  }
  return static_cast<std::int64_t>(count);
}

}  // namespace ramie::sync_internal
