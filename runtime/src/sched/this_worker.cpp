// SPDX-License-Identifier: BSL-1.0
// The only thread-local of the runtime, and the only way to it.
#include <ramie/platform/compiler.hpp>

#include "worker.hpp"

namespace ramie::detail {

namespace {
[[gnu::tls_model("initial-exec")]] thread_local worker* the_worker = nullptr;
}

RAMIE_NOINLINE worker* this_worker() noexcept { return platform::launder_address(the_worker); }

RAMIE_NOINLINE void set_this_worker(worker* w) noexcept { the_worker = platform::launder_address(w); }

}  // namespace ramie::detail
