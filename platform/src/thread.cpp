// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/thread.hpp>

#include <cerrno>
#include <system_error>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

thread start_thread(void (*run)(void*), void* of) {
  if (faults::strikes(fault::thread)) throw std::system_error(EAGAIN, std::generic_category());
  return thread([run, of] { run(of); });
}

}  // namespace ramie::platform
