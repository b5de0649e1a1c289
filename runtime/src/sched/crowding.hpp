// SPDX-License-Identifier: BSL-1.0
// Whether the machine has a processor for this worker. A worker that wants to run and can't, because other threads have
// its processor, delays all operations that were begun on it: no other worker is given their completions, and the
// system may let the thread wait for milliseconds. Fewer workers do more then: retreat.hpp.
//
// The system counts how long a thread has run, how long it was runnable without running, and how many times. Some
// waiting is usual: a processor that sleeps takes time to wake up. What goes beyond that, each time, is lost. A worker
// is crowded if it loses an eighth of what it runs, in a window of so much running. Owner only.
#pragma once

#include <algorithm>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/thread_meter.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

class crowding {
 public:
  // The worker is about to look at its operations: whether it should also measure its usage. Not every time, since that
  // costs a system call; but often enough that a long wait stands out among the usual ones.
  [[nodiscard]] bool due() noexcept { return ++turns_ % turns_per_crowding_measurement == 0; }

  // In how many windows in a row it was crowded, if one has just ended; else 0.
  [[nodiscard]] unsigned measure(const platform::thread_usage& now_used, platform::time_point now) noexcept {
    const auto ran = now_used.ran - used_.ran;
    const auto waited = now_used.waited - used_.waited;
    const auto usual = usual_wait * static_cast<std::int64_t>(now_used.times - used_.times);
    used_ = now_used;
    ran_ += ran;
    lost_ += std::max(waited - usual, platform::nanoseconds{0});
    const bool little_to_do = now - begun_ > longest_crowding_window;  // whatever it lost was no loss
    if (ran_ < crowding_window && !little_to_do) return 0;
    in_a_row_ = lost_ * crowding_share >= ran_ && !little_to_do ? in_a_row_ + 1 : 0;
    begun_ = now;
    ran_ = lost_ = {};
    return in_a_row_;
  }

  platform::thread_meter meter;

 private:
  std::uint32_t turns_ = 0;
  platform::thread_usage used_;
  platform::time_point begun_{};
  platform::nanoseconds ran_{}, lost_{};
  unsigned in_a_row_ = 0;
};

}  // namespace ramie::runtime_internal
