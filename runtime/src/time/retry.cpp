// SPDX-License-Identifier: BSL-1.0
#include <ramie/retry.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>

#include <ramie/error.hpp>
#include <ramie/platform/random.hpp>

namespace ramie::runtime_internal {

namespace {

// A different one for each call, in this process and in the next.
std::uint64_t fresh_seed() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const auto time = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(time) ^ calls.fetch_add(platform::splitmix_increment, std::memory_order_relaxed);
}

void must(bool holds, const char* otherwise) {
  if (!holds) throw usage_error(otherwise);
}

}  // namespace

backoff_plan::backoff_plan(const retry_policy& policy)
    : policy_(policy),
      pause_(static_cast<double>(policy.first_delay.count())),
      random_(policy.seed != 0 ? policy.seed : fresh_seed()) {
  using std::chrono::nanoseconds;
  must(policy.attempts != 0, "ramie: retry: policy.attempts is 0. Use at least 1.");
  must(policy.first_delay >= nanoseconds::zero() && policy.longest_delay >= nanoseconds::zero(),
       "ramie: retry: a delay of the policy is negative. Use 0 or more.");
  must(policy.factor >= 1 && std::isfinite(policy.factor),
       "ramie: retry: policy.factor is below 1, or no number. Use 1 or more.");
  must(policy.spread.part() >= 0 && policy.spread.part() <= 1,
       "ramie: retry: policy.spread has a ratio outside 0 to 1. Use one inside.");
}

std::chrono::nanoseconds backoff_plan::next_pause() noexcept {
  const auto longest = static_cast<double>(policy_.longest_delay.count());
  const double pause = std::min(pause_, longest);
  pause_ = std::min(pause * policy_.factor, longest);
  double spread = pause;
  switch (policy_.spread.how()) {
    case jitter::kind::none: break;
    case jitter::kind::full: spread = pause * chance(); break;
    case jitter::kind::ratio: spread = pause * (1 + policy_.spread.part() * (2 * chance() - 1)); break;
  }
  if (spread >= longest) return policy_.longest_delay;  // also what a double can't tell from it
  return std::chrono::nanoseconds(std::llround(spread));
}

double backoff_plan::chance() noexcept {
  return static_cast<double>(platform::splitmix_of(random_ += platform::splitmix_increment) >> 11) * 0x1p-53;
}

}  // namespace ramie::runtime_internal
