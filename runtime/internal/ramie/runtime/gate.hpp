// SPDX-License-Identifier: BSL-1.0
// A door that opens once and stays open: the smallest waitable, and the pattern for the others.
//
// The opener's last access is the unlock; a waiter that sees it open takes the lock once before it
// returns, so the gate may be destroyed as soon as wait() has returned.
#pragma once

#include <mutex>

#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

class gate final : public waitable {
 public:
  // A cancellation point unless `may_cancel` is `no`.
  void wait(const wait_reason& why, cancellable may_cancel = cancellable::throws) {
    waiter node;
    (void)fiber_wait(*this, node, why, may_cancel);
  }

  // Any thread. Idempotent. Every waiter goes on.
  void open() noexcept {
    wake_batch wakes;
    std::lock_guard hold(lock_);
    open_ = true;
    waiters_.claim_all(wakes);
  }

  bool try_complete(waiter&) override { return is_open(); }
  bool publish(waiter& node) override {
    std::lock_guard hold(lock_);
    if (open_) return false;
    waiters_.add(node);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    std::lock_guard hold(lock_);
    waiters_.remove(node);
  }

  [[nodiscard]] bool is_open() noexcept {
    std::lock_guard hold(lock_);
    return open_;
  }

 private:
  platform::spin_lock lock_;
  bool open_ = false;
  wait_list waiters_;
};

}  // namespace ramie::runtime_internal
