// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/fence.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>

namespace ramie::platform::detail {

namespace {

// RAMIE_NO_MEMBARRIER in the environment forces the portable fences, for tests and for comparing.
bool register_membarrier() noexcept {
  if (std::getenv("RAMIE_NO_MEMBARRIER") != nullptr || faults::strikes(fault::membarrier)) return false;
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

constinit bool membarrier_granted = false;

void membarrier_all_threads() noexcept {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    fatal("membarrier was granted and then refused (errno %d). Set RAMIE_NO_MEMBARRIER=1 to do without it.", errno);
  }
}

}  // namespace ramie::platform::detail

namespace ramie::platform {

void choose_fences() noexcept {
  static std::once_flag once;
  std::call_once(once, [] { detail::membarrier_granted = detail::register_membarrier(); });
}

}  // namespace ramie::platform
