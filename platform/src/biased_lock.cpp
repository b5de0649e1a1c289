// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/biased_lock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>

namespace ramie::platform {

namespace {

// How long a party that asks waits for the answer: longer than a lease takes, not much longer than the system call.
#if defined(RAMIE_SMALL_SIZES)
class ask_timeout {
 public:
  [[nodiscard]] bool passed() noexcept { return checks_++ >= 1; }

 private:
  int checks_ = 0;
};
struct wait_watch {
  explicit wait_watch(const lock_user*) noexcept {}
  void in_vain() noexcept {}
};
#else
class ask_timeout {
 public:
  [[nodiscard]] bool passed() const noexcept {
    for (int i = 0; i < 16; ++i) cpu_pause();
    return steady_clock::instance().now() >= end_;
  }

 private:
  time_point end_ = steady_clock::instance().now() + std::chrono::microseconds(8);
};

// Adds its lifetime to what the party has waited, if it was another party's use of the lock that it waited for.
class wait_watch {
 public:
  explicit wait_watch(const lock_user* me) noexcept : me_(me) {}
  wait_watch(const wait_watch&) = delete;
  wait_watch& operator=(const wait_watch&) = delete;
  // It was not: the other party had a grant and did not use the lock.
  void in_vain() noexcept { in_vain_ = true; }
  ~wait_watch() {
    const int weight = faults::strikes(fault::granted_lock) ? 1000 : in_vain_ ? 0 : 1;
    if (me_ == nullptr || weight == 0) return;
    me_->waited_ns += weight * nanoseconds(steady_clock::instance().now() - since_).count();
  }

 private:
  const lock_user* const me_;
  bool in_vain_ = false;
  const time_point since_ = steady_clock::instance().now();
};
#endif

}  // namespace

#if defined(RAMIE_SMALL_SIZES)
bool lock_family::may_grant() noexcept {
  return true;
}
void lock_family::had_to_revoke() noexcept {}
#else
bool lock_family::may_grant() noexcept {
  if (left_.load(std::memory_order_relaxed) == 0 && !next_period(steady_clock::instance().now())) return false;
  left_.store(left_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return true;
}

void lock_family::had_to_revoke() noexcept {
  const auto rate = std::max(1u, rate_.load(std::memory_order_relaxed) / 2);
  rate_.store(rate, std::memory_order_relaxed);
  if (left_.load(std::memory_order_relaxed) > rate) left_.store(rate, std::memory_order_relaxed);
  peaceful_.store(false, std::memory_order_relaxed);
}
#endif

bool lock_family::next_period(std::chrono::steady_clock::time_point now) noexcept {
  if (now < period_ends_.load(std::memory_order_relaxed)) return false;
  period_ends_.store(now + period, std::memory_order_relaxed);
  auto rate = rate_.load(std::memory_order_relaxed);
  if (peaceful_.load(std::memory_order_relaxed)) rate = std::min(most_grants, 2 * rate);
  rate_.store(rate, std::memory_order_relaxed);
  left_.store(rate, std::memory_order_relaxed);
  peaceful_.store(true, std::memory_order_relaxed);
  return true;
}

std::uint64_t lock_user::new_id() noexcept {
  static std::atomic<std::uint64_t> given{0};
  return given.fetch_add(1, std::memory_order_relaxed) + 1;
}

void biased_lock::taken_twice() noexcept {
  fatal("a lock is taken twice by one thread: moving or destroying a channel's element uses that channel, or waits.");
}

// Whether the granted party has given up its grant.
bool biased_lock::ask() noexcept {
  asked_.store(true, std::memory_order_relaxed);  // 1
  for (ask_timeout limit; !limit.passed();) {
    if (granted_.load(std::memory_order_acquire) == 0) return true;  // 2
  }
  return false;
}

void biased_lock::revoke(const lock_user* me) noexcept {
  if (me != nullptr) me->family->had_to_revoke();
  granted_.store(0, std::memory_order_relaxed);  // 1
  heavy_fence();                                 // 2
  if (wanted_ < longest_run) wanted_ *= 2;
}

// Returns holding the spin lock, with no grant. Whether the party that had one has passed it on.
bool biased_lock::wait_for_others(const lock_user* me, bool contended) noexcept {
  wait_watch waiting(me);
  if (contended) spin_.lock();
  if (granted_.load(std::memory_order_relaxed) == 0) return false;
  const bool passed_on = ask();
  if (passed_on) {
    wanted_ = std::max(first_run, wanted_ / 2);
  } else {
    waiting.in_vain();
    revoke(me);
  }
  // Step 3 of both lists: once we are in, no other party touches the lock, which may be destroyed after us.
  for (backoff turn; inside_[granted_cell_].load(std::memory_order_acquire);) turn.wait();
  asked_.store(false, std::memory_order_relaxed);
  return passed_on;
}

// Returns holding the spin lock, with no grant.
void biased_lock::lock_spin(const lock_user* me) noexcept {
  const bool contended = !spin_.try_lock();
  bool passed_on = false;
  if (contended || granted_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    passed_on = wait_for_others(me, contended);
  const auto id = me != nullptr ? me->id : 0;
  passed_on_ = passed_on;
  if (passed_on) {
    run_ = wanted_;
  } else if (contended) {
    run_ += contended_weight;
  } else {
    run_ = id == last_ ? run_ + 1 : 1;
  }
  last_ = id;
}

// Holding the spin lock, about to leave.
void biased_lock::grant(const lock_user* me) noexcept {
  run_ = 0;
  if (!asymmetric() || me == nullptr || me->cell >= cells || (family_ != nullptr && family_ != me->family)) return;
  if (!passed_on_ && !me->family->may_grant()) return;
  family_ = me->family;
  granted_cell_ = me->cell;
  lease_left_ = lease;
  granted_.store(me->id, std::memory_order_release);
}

}  // namespace ramie::platform
