// SPDX-License-Identifier: BSL-1.0
// The thread-local behind this_desk(). It belongs to the thread, whichever fiber asks, so ThreadSanitizer, which takes
// fibers for threads, must not watch it.
#include <ramie/platform/annotate.hpp>

#include "helper_thread.hpp"
#include "worker.hpp"

constinit thread_local ramie::detail::worker_desk* ramie_this_desk = nullptr;

namespace ramie::detail {

constinit thread_local const void* helper_of = nullptr;

#if !defined(__x86_64__) || !defined(__linux__)
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker_desk* this_desk() noexcept {
  return platform::launder_address(ramie_this_desk);
}
#endif

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY void set_this_worker(worker* w) noexcept {
  ramie_this_desk = platform::launder_address(w);
}

}  // namespace ramie::detail
