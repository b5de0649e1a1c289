// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/context.hpp>

#include <cxxabi.h>

namespace ramie::platform {

void anchor_this_thread(thread_anchor& anchor) noexcept {
  // The Itanium ABI leaves __cxa_eh_globals opaque but fixes its layout: caughtExceptions, then
  // uncaughtExceptions. libstdc++ and libc++abi agree.
  anchor.exceptions.set(reinterpret_cast<exception_globals*>(abi::__cxa_get_globals()));
  anchor.identity = annotate::this_thread();
  anchor.float_controls.set(float_controls());
}

}  // namespace ramie::platform
