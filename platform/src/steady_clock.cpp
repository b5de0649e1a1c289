// SPDX-License-Identifier: BSL-1.0
// The machine's time. The explorer has its own (tests/explore/steady_clock.cpp).
#include <ramie/platform/clock.hpp>

namespace ramie::platform {

time_point steady_clock::now() const noexcept {
  return std::chrono::steady_clock::now();
}

const steady_clock& steady_clock::instance() noexcept {
  static const steady_clock the_clock;
  return the_clock;
}

}  // namespace ramie::platform
