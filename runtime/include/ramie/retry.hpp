// SPDX-License-Identifier: BSL-1.0
// Trying again what may fail for a while, with pauses that grow.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include <ramie/cancel.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// How pauses are randomised, so that callers that failed together do not retry together.
class jitter {
 public:
  // The whole pause, every time.
  [[nodiscard]] static constexpr jitter none() noexcept { return jitter(kind::none, 0); }
  // Between zero and the whole pause.
  [[nodiscard]] static constexpr jitter full() noexcept { return jitter(kind::full, 1); }
  // The pause, plus or minus up to that part of it, 0 to 1.
  [[nodiscard]] static constexpr jitter ratio(double part) noexcept { return jitter(kind::ratio, part); }

  // Which of these it is, and of what part.
  enum class kind : std::uint8_t { none, full, ratio };
  [[nodiscard]] constexpr kind how() const noexcept { return kind_; }
  [[nodiscard]] constexpr double part() const noexcept { return part_; }

 private:
  constexpr jitter(kind how, double part) noexcept : kind_(how), part_(part) {}
  kind kind_;
  double part_;
};

// How often and after which pauses retry() tries.
struct retry_policy {
  unsigned attempts = 5;  // in all, at least 1
  // Before the second attempt; before each further one `factor` (at least 1) times as long, up to the longest.
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  double factor = 2;
  std::chrono::nanoseconds longest_delay = std::chrono::seconds(30);
  jitter spread = jitter::full();
  std::uint64_t seed = 0;  // of the jitter; 0: a different one each time
  // Whether such a failure is worth another attempt; empty: every one is. Not asked about `cancelled`.
  std::function<bool(const std::exception_ptr&)> retry_on{};
};

}  // namespace ramie::inline v0

namespace ramie::runtime_internal {

// The pauses of one retry().
class backoff_plan {
 public:
  explicit backoff_plan(const retry_policy& policy);  // throws usage_error
  // Begins an attempt. Whether it is the last.
  [[nodiscard]] bool last_attempt() noexcept { return ++begun_ == policy_.attempts; }
  [[nodiscard]] bool worth_it(const std::exception_ptr& failure) const {
    return !policy_.retry_on || policy_.retry_on(failure);
  }
  [[nodiscard]] std::chrono::nanoseconds next_pause() noexcept;

 private:
  [[nodiscard]] double chance() noexcept;  // random, from 0 to 1

  const retry_policy& policy_;
  unsigned begun_ = 0;
  double pause_;  // nanoseconds
  std::uint64_t random_;
};

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Calls f() until it returns a satisfactory result, and returns that. After a failure, or a result for which
// unsatisfied(result) is true, it pauses and tries again, until the attempts are used up or policy.retry_on says no:
// then the last failure is rethrown, or the last result returned.
//
// A cancellation of the caller is never retried: it passes through. A `cancelled` that is not the caller's own
// (cancelled::is_own()), as of a nursery in f that a child's failure has cut short, is a failure like any other;
// retry_on is asked about the failure behind it. A cancellation point in the pauses, and as far as f is one. Fibers and
// plain threads; pauses are by now(). Throws usage_error for a policy that can't work, before f is called.
template <class F, class Unsatisfied>
auto retry(const retry_policy& policy, F&& f, Unsatisfied&& unsatisfied) -> std::invoke_result_t<F&> {
  using result = std::invoke_result_t<F&>;
  for (::ramie::runtime_internal::backoff_plan plan(policy);; sleep_for(plan.next_pause())) {
    const bool last = plan.last_attempt();
    try {
      if constexpr (std::is_void_v<result>) {
        return static_cast<void>(std::invoke(f));
      } else {
        result value = std::invoke(f);
        if (last || !std::invoke(unsatisfied, std::as_const(value))) return std::forward<result>(value);
      }
    } catch (const cancelled& c) {
      if (c.is_own() || last) throw;
      if (!plan.worth_it(c.cause() != nullptr ? c.cause() : std::current_exception())) throw;
    } catch (...) {
      if (last || !plan.worth_it(std::current_exception())) throw;
    }
  }
}

// The same; every result is satisfactory.
template <class F>
auto retry(const retry_policy& policy, F&& f) -> std::invoke_result_t<F&> {
  return retry(policy, f, [](const auto&) { return false; });
}

}  // namespace ramie::inline v0
