// SPDX-License-Identifier: BSL-1.0
// Calls that block their threads until a test lets them go.
#pragma once

#include <condition_variable>
#include <mutex>

#include <ramie/this_fiber.hpp>

namespace test {

class held_calls {
 public:
  // On whatever thread: blocks it.
  void call() {
    std::unique_lock hold(mutex_);
    ++inside_;
    released_.wait(hold, [this] { return let_go_ != 0; });
    --let_go_;
    --inside_;
  }
  void let_go(int many) {
    {
      std::lock_guard hold(mutex_);
      let_go_ += many;
    }
    released_.notify_all();
  }
  // How many are being held.
  [[nodiscard]] int inside() {
    std::lock_guard hold(mutex_);
    return inside_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  int inside_ = 0;
  int let_go_ = 0;
};

}  // namespace test
