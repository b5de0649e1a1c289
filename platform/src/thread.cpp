// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/thread.hpp>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <system_error>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

thread start_thread(void (*run)(void*), void* of) {
  if (faults::strikes(fault::thread)) throw std::system_error(EAGAIN, std::generic_category());
  return thread([run, of] { run(of); });
}

void wake_on_time() noexcept {
#if defined(__linux__)
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

}  // namespace ramie::platform
