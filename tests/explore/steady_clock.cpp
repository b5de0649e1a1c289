// SPDX-License-Identifier: BSL-1.0
// The machine's time in the model: explorer.hpp.
#include <ramie/platform/clock.hpp>

#include "execution.hpp"

namespace ramie::platform {

time_point steady_clock::now() const noexcept {
  return time_point(std::chrono::microseconds(explore::now.time()));
}

const steady_clock& steady_clock::instance() noexcept {
  static const steady_clock the_clock;
  return the_clock;
}

}  // namespace ramie::platform
