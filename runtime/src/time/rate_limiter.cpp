// SPDX-License-Identifier: BSL-1.0
// Nothing is taken before it is there. Who wants tokens has the front, or waits in line for it; who has the front waits
// for the time at which its tokens are there, takes them, and passes the front on. So a waiter that is cancelled has
// nothing to give back, and those behind it move up by themselves.
//
// Exact: the level is counted in parts of a token such that each nanosecond adds `rate` of them and a token is `per` in
// nanoseconds of them. Nothing is rounded but the wait, up to the next nanosecond. And nothing is lost by that, nor by
// a wake-up that comes late: what the front waits for is room beyond the brim, so after it has taken that, the level is
// what it would be had it been there in time.
#include <ramie/rate_limiter.hpp>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>

#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/wait.hpp>
#include <ramie/time.hpp>

namespace ramie::detail {

namespace {
const wait_reason waits_in_line{"rate limiter"};
}

class token_bucket final : public waitable {
 public:
  token_bucket(std::uint64_t rate, std::uint64_t burst, std::chrono::nanoseconds per)
      : rate_(rate), burst_(burst), token_(static_cast<std::uint64_t>(per.count())) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (rate == 0 || burst == 0 || per <= std::chrono::nanoseconds::zero()) {
      throw usage_error("ramie: a rate_limiter needs a rate, a burst and a time that are not zero.");
    }
    if (burst > most / 2 / token_ || rate > most) {
      throw usage_error("ramie: a rate_limiter whose burst takes longer than the clock can tell. Use a smaller one.");
    }
    full_ = burst * token_;
    level_ = full_;
  }

  void must_fit(std::uint64_t n) const {
    if (n != 0 && n <= burst_) return;
    throw usage_error("ramie: " + std::to_string(n) + " tokens of a rate_limiter that holds " + std::to_string(burst_) +
                      ". Take at least 1 and no more than it holds.");
  }

  [[nodiscard]] bool take_at_once(std::uint64_t n) noexcept {
    std::lock_guard hold(lock_);
    return !front_taken_ && take(n);
  }

  // With the front.
  void take_in_time(std::uint64_t n) {
    for (time_point there;; sleep_until(there)) {
      std::lock_guard hold(lock_);
      if (take(n)) return;
      awaited_ = n * token_;
      const auto missing = time_for(n * token_ - level_);
      there = missing < time_point::max() - filled_at_ ? filled_at_ + missing : time_point::max();
    }
  }

  // To the first in line, if there is one.
  void pass_front_on() noexcept {
    fiber* next = nullptr;
    {
      std::lock_guard hold(lock_);
      awaited_ = 0;
      level_ = std::min(level_, full_);
      if (waiter* const node = line_.claim_first()) {
        node->outcome = 1;
        next = node->who;
      } else {
        front_taken_ = false;
      }
    }
    if (next != nullptr) complete(*next);
  }

  // The wait for the front.
  bool try_complete(waiter&) override {
    std::lock_guard hold(lock_);
    return take_front();
  }
  bool publish(waiter& node) override {
    std::lock_guard hold(lock_);
    if (take_front()) return false;
    line_.add(node);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    std::lock_guard hold(lock_);
    line_.remove(node);
  }

 private:
  using time_point = std::chrono::steady_clock::time_point;

  // With the lock, all of them.
  bool take_front() noexcept {
    if (front_taken_) return false;
    return front_taken_ = true;
  }
  [[nodiscard]] bool take(std::uint64_t n) noexcept {
    fill(now());
    if (level_ < n * token_) return false;
    level_ -= n * token_;
    return true;
  }
  void fill(time_point at) noexcept {
    const auto passed = at - filled_at_;
    filled_at_ = at;
    if (passed <= passed.zero()) return;  // less: it was another clock's
    const std::uint64_t room = full_ + awaited_ - level_;
    level_ += passed >= time_for(room) ? room : static_cast<std::uint64_t>(passed.count()) * rate_;
  }
  [[nodiscard]] std::chrono::nanoseconds time_for(std::uint64_t parts) const noexcept {
    return std::chrono::nanoseconds((parts + rate_ - 1) / rate_);
  }

  const std::uint64_t rate_;   // parts a nanosecond
  const std::uint64_t burst_;  // tokens
  const std::uint64_t token_;  // parts
  std::uint64_t full_ = 0;     // parts
  platform::spin_lock lock_;
  std::uint64_t level_ = 0;  // parts, at
  time_point filled_at_{};
  std::uint64_t awaited_ = 0;  // parts: by the front
  bool front_taken_ = false;
  wait_list line_;
};

}  // namespace ramie::detail

namespace ramie::inline v0 {

rate_limiter::rate_limiter(std::uint64_t rate, std::uint64_t burst, std::chrono::nanoseconds per)
    : bucket_(std::make_unique<detail::token_bucket>(rate, burst, per)) {}
rate_limiter::~rate_limiter() = default;

void rate_limiter::acquire(std::uint64_t n) {
  bucket_->must_fit(n);
  detail::whereabouts at = detail::look_around();
  detail::begin_operation(at);
  if (bucket_->take_at_once(n)) return;
  detail::waiter node;
  (void)detail::fiber_wait(*bucket_, node, detail::waits_in_line);
  const struct front {
    detail::token_bucket& of;
    ~front() { of.pass_front_on(); }
  } mine{*bucket_};
  bucket_->take_in_time(n);
}

bool rate_limiter::try_acquire(std::uint64_t n) {
  bucket_->must_fit(n);
  return bucket_->take_at_once(n);
}

}  // namespace ramie::inline v0
