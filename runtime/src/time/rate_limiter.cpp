// SPDX-License-Identifier: BSL-1.0
// A token is never taken before it is in the bucket. One caller at a time is the front; the others wait in line to
// become it. The front sleeps until the bucket holds its tokens, takes them, and makes the next in line the front. So a
// waiter that is cancelled has nothing to give back, and those behind it move up by themselves.
//
// Exact: the level is counted in parts of a token such that each nanosecond adds `rate` parts, and a token is as many
// parts as `per` has nanoseconds. Only the front's sleep is rounded, up to the next nanosecond. Nothing is lost by
// that, nor by a late wake-up: while the front waits, the bucket may fill beyond `burst` by what the front will take,
// so after it has taken that, the level is the same as if it had come in time.
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

namespace ramie::runtime_internal {

namespace {
const wait_reason waits_in_line{"rate limiter"};
}

class token_bucket final : public waitable {
  using time_point = std::chrono::steady_clock::time_point;

 public:
  token_bucket(std::uint64_t rate, std::uint64_t burst, std::chrono::nanoseconds per)
      : rate_(rate), burst_(burst), token_(static_cast<std::uint64_t>(per.count())) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (rate == 0 || burst == 0 || per <= std::chrono::nanoseconds::zero()) {
      throw usage_error(
          "ramie: rate_limiter::rate_limiter: rate, burst and time must be above zero. Give at least 1 of each.");
    }
    if (burst > most / 2 / token_ || rate > most) {
      throw usage_error(
          "ramie: rate_limiter::rate_limiter: the burst takes longer than the clock can tell. Use a smaller one.");
    }
    full_ = burst * token_;
    level_ = full_;
  }

  void must_fit(std::uint64_t n, const char* function) const {
    if (n != 0 && n <= burst_) return;
    throw usage_error(std::string("ramie: ") + function + ": " + std::to_string(n) + " tokens of at most " +
                      std::to_string(burst_) + ". Take at least 1 and no more than it holds.");
  }

  [[nodiscard]] bool take_at_once(std::uint64_t n) noexcept {
    std::lock_guard hold(lock_);
    return !front_taken_ && take(n);
  }

  // By the front. False: the time has come, and none was taken.
  [[nodiscard]] bool take_in_time(std::uint64_t n, time_point until) {
    for (time_point there;; sleep_until(std::min(there, until))) {
      std::lock_guard hold(lock_);
      if (take(n)) return true;
      if (filled_at_ >= until) return false;
      awaited_ = n * token_;
      const auto missing = time_for(n * token_ - level_);
      there = missing < time_point::max() - filled_at_ ? filled_at_ + missing : time_point::max();
    }
  }

  // The first in line becomes the front, if there is one.
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
  // All with the lock.
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
    if (passed <= passed.zero()) return;  // negative: the last caller had another clock
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
  std::uint64_t awaited_ = 0;  // parts that the front waits for
  bool front_taken_ = false;
  wait_list line_;
};

namespace {

// The number fits. Whether the tokens were there in time.
bool acquire_until(token_bucket& from, deadline until, std::uint64_t n) {
  call_context at = current_context();
  begin_operation(at);
  if (from.take_at_once(n)) return true;
  waiter node;
  if (fiber_wait_until(from, node, waits_in_line, until.when()) == wait_result::timed_out) return false;
  const struct front {
    token_bucket& of;
    ~front() { of.pass_front_on(); }
  } mine{from};
  return from.take_in_time(n, until.when());
}

}  // namespace

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

rate_limiter::rate_limiter(std::uint64_t rate, std::uint64_t burst, std::chrono::nanoseconds per)
    : bucket_(std::make_unique<runtime_internal::token_bucket>(rate, burst, per)) {}
rate_limiter::~rate_limiter() = default;

void rate_limiter::acquire(std::uint64_t n) {
  bucket_->must_fit(n, "rate_limiter::acquire");
  (void)runtime_internal::acquire_until(*bucket_, {}, n);
}

bool rate_limiter::try_acquire_until(deadline until, std::uint64_t n) {
  bucket_->must_fit(n, "rate_limiter::try_acquire_until");
  return runtime_internal::acquire_until(*bucket_, until, n);
}

bool rate_limiter::try_acquire(std::uint64_t n) {
  bucket_->must_fit(n, "rate_limiter::try_acquire");
  return bucket_->take_at_once(n);
}

}  // namespace ramie::inline v0
