// SPDX-License-Identifier: BSL-1.0
// The thread parker on the standard library alone. See thread_parker.hpp for the contract.
#pragma once

#include <condition_variable>
#include <mutex>

#include <ramie/platform/clock.hpp>

namespace ramie::platform {

class portable_parker {
 public:
  void park() noexcept {
    std::unique_lock hold(mutex_);
    wake_.wait(hold, [this] { return token_; });
    token_ = false;
  }

  [[nodiscard]] bool park_until(time_point deadline) noexcept {
    std::unique_lock hold(mutex_);
    if (!wake_.wait_until(hold, deadline, [this] { return token_; })) return false;
    token_ = false;
    return true;
  }

  [[nodiscard]] bool has_token() const noexcept {
    std::lock_guard hold(mutex_);
    return token_;
  }

  // Notifies under the mutex: the owner can't leave park() and destroy us before we are done.
  void unpark() noexcept {
    std::lock_guard hold(mutex_);
    token_ = true;
    wake_.notify_one();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool token_ = false;
};

}  // namespace ramie::platform
