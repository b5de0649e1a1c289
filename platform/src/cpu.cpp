// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/cpu.hpp>

#include <sched.h>

#include <algorithm>
#include <thread>

namespace ramie::platform {

unsigned usable_cpus() noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return std::max(1u, static_cast<unsigned>(CPU_COUNT(&allowed)));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

int current_cpu() noexcept {
  return ::sched_getcpu();
}

}  // namespace ramie::platform
