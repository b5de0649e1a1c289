// SPDX-License-Identifier: BSL-1.0
// A counting semaphore for tests: a permit goes to the longest waiter by claim, hand over, complete. It keeps
// its own accounts, so that a lost or doubled wake shows as an imbalance.
#pragma once

#include <atomic>
#include <mutex>

#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace test {

class permits final : public ramie::runtime_internal::waitable {
 public:
  void take() {
    static const ramie::runtime_internal::wait_reason why{"permits"};
    ramie::runtime_internal::waiter node;
    (void)ramie::runtime_internal::fiber_wait(*this, node, why);
    taken_.fetch_add(1, std::memory_order_relaxed);
  }
  void pass() noexcept {
    ramie::runtime_internal::fiber* partner = nullptr;
    {
      std::lock_guard hold(lock_);
      ++passed_;
      if (ramie::runtime_internal::waiter* const node = waiters_.claim_first()) {
        node->outcome = 1;
        partner = node->who;
      } else {
        ++there_;
      }
    }
    if (partner != nullptr) complete(*partner);
  }

  bool try_complete(ramie::runtime_internal::waiter&) override {
    std::lock_guard hold(lock_);
    return take_one();
  }
  bool publish(ramie::runtime_internal::waiter& node) override {
    std::lock_guard hold(lock_);
    if (take_one()) return false;
    waiters_.add(node);
    return true;
  }
  void unpublish(ramie::runtime_internal::waiter& node) noexcept override {
    std::lock_guard hold(lock_);
    waiters_.remove(node);
  }

  // Nobody waits, and every permit passed was taken exactly once or is still there.
  [[nodiscard]] bool balanced() {
    std::lock_guard hold(lock_);
    return passed_ == taken_.load() + there_ && waiters_.empty();
  }

 private:
  bool take_one() noexcept {
    if (there_ == 0) return false;
    --there_;
    return true;
  }
  ramie::platform::spin_lock lock_;
  long there_ = 0;
  long passed_ = 0;
  std::atomic<long> taken_{0};
  ramie::runtime_internal::wait_list waiters_;
};

}  // namespace test
