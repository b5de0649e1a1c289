// SPDX-License-Identifier: BSL-1.0
// The machine's time in the model: a microsecond a step, the same in every run.
#include <ramie/platform/clock.hpp>

#include "execution.hpp"

namespace ramie::platform {

time_point steady_clock::now() const noexcept {
  return time_point(std::chrono::microseconds(explore::now.steps));
}

const steady_clock& steady_clock::instance() noexcept {
  static const steady_clock the_clock;
  return the_clock;
}

}  // namespace ramie::platform
