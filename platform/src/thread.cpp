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
  constexpr auto what = "ramie: pthread_create";
  if (faults::strikes(fault::thread)) throw std::system_error(EAGAIN, std::system_category(), what);
  try {
    return thread([run, of] { run(of); });
  } catch (const std::system_error& e) {
    throw std::system_error(e.code().value(), std::system_category(), what);
  }
}

void wake_on_time() noexcept {
#if defined(__linux__)
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

}  // namespace ramie::platform
