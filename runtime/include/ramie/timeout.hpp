// SPDX-License-Identifier: BSL-1.0
// Bounding how long something may take.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <ramie/source_location.hpp>
#include <type_traits>
#include <utility>

#include <ramie/cancel.hpp>
#include <ramie/deadline.hpp>
#include <ramie/detail/callable.hpp>

namespace ramie::runtime_internal {

// A cancel scope of the calling fiber that is cancelled when its time has come.
class deadline_scope {
 public:
  // `function` is what the user called, for the usage_error on a plain thread.
  deadline_scope(std::chrono::steady_clock::time_point when, source_location where, const char* function);
  ~deadline_scope();
  deadline_scope(const deadline_scope&) = delete;
  deadline_scope& operator=(const deadline_scope&) = delete;
  [[nodiscard]] bool owns(const cancelled& c) const noexcept;

 private:
  struct parts;
  [[nodiscard]] parts& inside() noexcept;
  alignas(std::max_align_t) std::byte storage_[288];
};

// with_deadline and with_timeout.
template <class F>
auto call_until(deadline until, F&& f, source_location where, const char* function) {
  static_assert(std::is_invocable_v<F&>,
                "ramie: with_timeout and with_deadline call f() without arguments, and f can't be called like that.");
  using result = call_keeps_t<F&>;
  deadline_scope scope(until.when(), where, function);
  try {
    if constexpr (std::is_void_v<result>) {
      std::invoke(f);
      return true;
    } else if constexpr (std::is_reference_v<result>) {
      return std::optional(std::ref(std::invoke(f)));
    } else {
      return std::optional<result>(std::invoke(f));
    }
  } catch (const cancelled& c) {
    if (!scope.owns(c)) throw;
  }
  if constexpr (std::is_void_v<result>) {
    return false;
  } else if constexpr (std::is_reference_v<result>) {
    return std::optional<std::reference_wrapper<std::remove_reference_t<result>>>();
  } else {
    return std::optional<result>();
  }
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Runs f() and cancels it when the time has come: its next cancellation point throws `cancelled`, it unwinds,
// and the result is empty. If f returns nevertheless, its value counts, however late. Cancellation from
// outside, and whatever f throws, passes through. Deadlines nest; the nearest one wins.
//
// Returns std::optional of f's result (of std::reference_wrapper for a reference), or, if f returns void,
// whether it got to its end. A cancellation point only as far as f is one. Fibers only: throws usage_error on a
// plain thread, and std::bad_alloc or std::system_error before f is called if the deadline can't be kept.
template <class F>
auto with_deadline(deadline until, F&& f, source_location where = source_location::current()) {
  return runtime_internal::call_until(until, std::forward<F>(f), where, "with_deadline");
}

// The same for a duration from now. A negative or zero one cancels at the first cancellation point.
template <class Rep, class Period, class F>
auto with_timeout(std::chrono::duration<Rep, Period> limit, F&& f, source_location where = source_location::current()) {
  return runtime_internal::call_until(limit, std::forward<F>(f), where, "with_timeout");
}
// For a point in time, or a deadline, there is with_deadline.
template <class F>
auto with_timeout(deadline until, F&& f, source_location where = source_location::current()) = delete;

}  // namespace ramie::inline v0
