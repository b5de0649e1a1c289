// SPDX-License-Identifier: BSL-1.0
// The one way to say until when: transfers, connects, and waits for a peer, a partner or an object of another fiber
// take a `deadline`, and a point in time or a duration from now is one. Calls that take none (opening a file, blocking,
// a join) can be cancelled at a deadline, by with_timeout.
//
//   stream.read_some(buffer, 5s);           // within five seconds from now
//   const ramie::deadline until = 5s;       // the same for several calls: each gets what is left
//   stream.read_some(head, until);
//   stream.read_some(body, until);
//
// Fibers go by the clock of their runtime (`options.clock`), plain threads by std::chrono::steady_clock.
#pragma once

#include <chrono>

#include <ramie/clock.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// A value; copies are the same moment. No function of it waits or is a cancellation point. Any fiber or thread.
class deadline {
 public:
  // Never.
  constexpr deadline() noexcept = default;
  // At that time, or just after it if the clock is finer; time_point::max(), and what is too late for the clock, is
  // never; what is too early for it has passed.
  template <class Duration>
  constexpr deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> when) noexcept  // NOLINT: implicit
      : when_(when >= std::chrono::floor<Duration>(std::chrono::steady_clock::time_point::max())
                  ? std::chrono::steady_clock::time_point::max()
              : when <= std::chrono::ceil<Duration>(std::chrono::steady_clock::time_point::min())
                  ? std::chrono::steady_clock::time_point::min()
                  : std::chrono::ceil<std::chrono::steady_clock::duration>(when)) {}
  // So long after now, by the caller's clock; a duration too long for the clock is never, zero or less has passed.
  template <class Rep, class Period>
  deadline(std::chrono::duration<Rep, Period> from_now) noexcept  // NOLINT: implicit
      : when_(::ramie::runtime_internal::time_after(from_now)) {}

  // The moment; time_point::max() if it never comes.
  [[nodiscard]] constexpr std::chrono::steady_clock::time_point when() const noexcept { return when_; }
  // Whether it never comes: a wait with it has no limit.
  [[nodiscard]] constexpr bool is_never() const noexcept {
    return when_ == std::chrono::steady_clock::time_point::max();
  }
  // Whether it has come, by the caller's clock.
  [[nodiscard]] bool expired() const noexcept { return remaining() == std::chrono::steady_clock::duration::zero(); }
  // How long it is until then, by the caller's clock. Zero if it has expired; duration::max() if it never does.
  [[nodiscard]] std::chrono::steady_clock::duration remaining() const noexcept;

  // The earlier one is less.
  [[nodiscard]] friend constexpr auto operator<=>(const deadline&, const deadline&) noexcept = default;

 private:
  std::chrono::steady_clock::time_point when_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace ramie::inline v0
