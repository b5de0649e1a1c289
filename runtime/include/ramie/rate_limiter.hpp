// SPDX-License-Identifier: BSL-1.0
// No more than so many per second.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <ramie/version.hpp>

namespace ramie::detail {
class token_bucket;
}

namespace ramie::inline v0 {

// A bucket of tokens that is full to begin with, holds `burst`, and gains `rate` of them every `per`, evenly. It goes
// by now(): by the clock of the runtime of those who use it. All of them should have the same clock.
//
// Any number of fibers and plain threads, of any runtime, may use one at once. It must outlive their calls.
class rate_limiter {
 public:
  // Throws usage_error unless all are positive and `burst` times `per` is no more than nanoseconds can tell, 146 years;
  // std::bad_alloc.
  explicit rate_limiter(std::uint64_t rate, std::uint64_t burst = 1,
                        std::chrono::nanoseconds per = std::chrono::seconds(1));
  ~rate_limiter();
  rate_limiter(const rate_limiter&) = delete;
  rate_limiter& operator=(const rate_limiter&) = delete;

  // Takes n tokens, 1 to `burst`; waits until they are there and all who came before have theirs. A cancellation point:
  // who is cancelled has taken nothing, and those behind move up. Throws usage_error for another n, and std::bad_alloc
  // or std::system_error if the time can't be kept: nothing is taken then, either.
  void acquire(std::uint64_t n = 1);

  // The same if it can be done at once: the tokens are there, and nobody waits. Not a cancellation point.
  [[nodiscard]] bool try_acquire(std::uint64_t n = 1);

 private:
  std::unique_ptr<::ramie::detail::token_bucket> bucket_;
};

}  // namespace ramie::inline v0
