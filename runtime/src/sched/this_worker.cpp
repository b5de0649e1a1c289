// SPDX-License-Identifier: BSL-1.0
// The only thread-local that fibers read, and the only way to it. It belongs to the thread, whichever
// fiber asks, so ThreadSanitizer, which takes fibers for threads, must not watch it.
#include <ramie/platform/annotate.hpp>

#include "worker.hpp"

namespace ramie::detail {

namespace {
[[gnu::tls_model("initial-exec")]] constinit thread_local worker* the_worker = nullptr;
}

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker* this_worker() noexcept {
  return platform::launder_address(the_worker);
}

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY worker_desk* this_desk() noexcept {
  return platform::launder_address(the_worker);
}

RAMIE_NOINLINE RAMIE_SWITCHES_IDENTITY void set_this_worker(worker* w) noexcept {
  the_worker = platform::launder_address(w);
}

}  // namespace ramie::detail
