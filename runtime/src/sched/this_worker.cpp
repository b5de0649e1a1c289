// SPDX-License-Identifier: BSL-1.0
// The thread-local behind this_worker_local(). It belongs to the thread, whichever fiber asks, so ThreadSanitizer,
// which takes fibers for threads, must not watch it.
#include <ramie/platform/annotate.hpp>

#include "helper_thread.hpp"
#include "worker.hpp"

namespace ramie::runtime_internal {
namespace {
constinit worker_local no_worker{worker_local::of_no_worker{}};
}
}  // namespace ramie::runtime_internal

constinit thread_local ramie::runtime_internal::worker_local* ramie_this_worker_local = nullptr;
constinit thread_local ramie::runtime_internal::worker_local* ramie_this_worker_local_or_none =
    &ramie::runtime_internal::no_worker;

namespace ramie::runtime_internal {

constinit thread_local const void* helper_of = nullptr;

#if !defined(__x86_64__) || !defined(__linux__)
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker_local* this_worker_local() noexcept {
  return platform::launder_address(ramie_this_worker_local);
}
RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker_local& this_worker_local_or_none() noexcept {
  return *platform::launder_address(ramie_this_worker_local_or_none);
}
#endif

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY void set_this_worker(worker* w) noexcept {
  ramie_this_worker_local = platform::launder_address(w);
  ramie_this_worker_local_or_none = w != nullptr ? ramie_this_worker_local : &no_worker;
}

}  // namespace ramie::runtime_internal
