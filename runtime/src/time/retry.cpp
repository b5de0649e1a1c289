// SPDX-License-Identifier: BSL-1.0
#include <ramie/retry.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>

#include <ramie/error.hpp>

namespace ramie::detail {

namespace {

// splitmix64: the streams of seeds that follow each other have nothing in common.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Another one each time, in this process and in the next.
std::uint64_t any_seed() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const auto time = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(time) ^ calls.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
}

void must(bool holds, const char* otherwise) {
  if (!holds) throw usage_error(otherwise);
}

}  // namespace

backoff_plan::backoff_plan(const retry_policy& policy)
    : policy_(policy),
      pause_(static_cast<double>(policy.first_delay.count())),
      random_(policy.seed != 0 ? policy.seed : any_seed()) {
  using std::chrono::nanoseconds;
  must(policy.attempts != 0, "ramie: retry with no attempts. Use at least 1.");
  must(policy.first_delay >= nanoseconds::zero() && policy.longest_delay >= nanoseconds::zero(),
       "ramie: retry with a negative delay.");
  must(policy.factor >= 1 && std::isfinite(policy.factor), "ramie: retry with a factor below 1, or that is no number.");
  must(policy.spread.part() >= 0 && policy.spread.part() <= 1, "ramie: retry with a jitter that is not from 0 to 1.");
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
  return static_cast<double>(next_random(random_) >> 11) * 0x1p-53;
}

}  // namespace ramie::detail
