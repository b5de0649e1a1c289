// SPDX-License-Identifier: BSL-1.0
// The processors of the model: one for each thread, on whatever machine it is explored.
#include <ramie/platform/cpu.hpp>

#include "execution.hpp"

namespace ramie::platform {

unsigned usable_cpus() noexcept {
  return explore::view::threads;
}

int current_cpu() noexcept {
  return static_cast<int>(explore::now.current);
}

}  // namespace ramie::platform
