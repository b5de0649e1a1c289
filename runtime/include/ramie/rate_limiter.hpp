// SPDX-License-Identifier: BSL-1.0
// Limits how often something is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <ramie/deadline.hpp>
#include <ramie/version.hpp>

namespace ramie::runtime_internal {
class token_bucket;
}

namespace ramie::inline v0 {

// A bucket of tokens that is full to begin with, holds `burst`, and gains `rate` of them every `per`, evenly. Its
// time is now(), the clock of the caller's runtime; all callers should have the same clock.
//
// Any number of fibers and plain threads, of any runtime, may use it at once. It must outlive their calls.
class rate_limiter {
 public:
  // Throws usage_error unless all are positive and `burst` times `per` is no more than nanoseconds can tell, 146 years;
  // std::bad_alloc.
  explicit rate_limiter(std::uint64_t rate, std::uint64_t burst = 1,
                        std::chrono::nanoseconds per = std::chrono::seconds(1));
  ~rate_limiter();
  rate_limiter(const rate_limiter&) = delete;
  rate_limiter& operator=(const rate_limiter&) = delete;

  // Takes n tokens, 1 to `burst`; waits until the bucket holds them and all earlier callers have theirs. A cancellation
  // point: a caller that is cancelled has taken nothing, and those behind it move up. Throws usage_error for another n,
  // and std::bad_alloc or std::system_error if there is no timer for the wait: nothing is taken then, either.
  void acquire(std::uint64_t n = 1);

  // Like acquire, but waits no longer than `until`. False: too late, and none was taken. It asks at least once. A
  // cancellation point. Throws what acquire() throws.
  [[nodiscard]] bool try_acquire_until(deadline until, std::uint64_t n = 1);
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> limit, std::uint64_t n = 1) {
    return try_acquire_until(limit, n);
  }

  // Like acquire, but only if it need not wait: the bucket holds the tokens, and no caller waits. Not a cancellation
  // point. Throws usage_error for an n that acquire() would refuse.
  [[nodiscard]] bool try_acquire(std::uint64_t n = 1);

 private:
  std::unique_ptr<::ramie::runtime_internal::token_bucket> bucket_;
};

}  // namespace ramie::inline v0
