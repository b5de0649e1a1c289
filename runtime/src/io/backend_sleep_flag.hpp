// SPDX-License-Identifier: BSL-1.0
// Whether a worker sleeps in its I/O backend, where a token of its parker does not end the sleep by itself.
//
//       waker                                  sleeper
//       1. a token                             1. asleep = true
//       2. full fence                          2. full fence
//       3. asleep? then wake the backend       3. is there a token? then don't sleep
//                                              4. sleep in the backend, which keeps a wake that came before
#pragma once

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fence.hpp>

namespace ramie::runtime_internal {

class backend_sleep_flag {
 public:
  // Owner only. take_token() takes the parker's token and returns whether there was one.
  template <class TakeToken, class Sleep>
  void sleep(TakeToken take_token, Sleep sleep_in_backend) noexcept {
    asleep_.store(true, std::memory_order_relaxed);  // 1
    platform::full_fence();                          // 2
    if (!take_token()) sleep_in_backend();               // 3, 4
    asleep_.store(false, std::memory_order_relaxed);
  }
  // Any thread, after it has given the owner's parker a token.
  template <class Wake>
  void wake_if_asleep(Wake wake_backend) noexcept {
    platform::full_fence();                                  // 2
    if (asleep_.load(std::memory_order_relaxed)) wake_backend();  // 3
  }

 private:
  platform::atomic<bool> asleep_{false};
};

}  // namespace ramie::runtime_internal
