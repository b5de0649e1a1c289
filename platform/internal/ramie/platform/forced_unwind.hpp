// SPDX-License-Identifier: BSL-1.0
// What a catch clause sees when a thread is ended from within: pthread_exit and pthread_cancel unwind its stack by force.
// A handler that does not let it go on ends the program.
#pragma once

#include <cxxabi.h>

#include <cstddef>

namespace ramie::platform {

#if defined(__GLIBCXX__)
using forced_unwind = abi::__forced_unwind;
#else
struct forced_unwind {};  // nobody throws one
#endif

}  // namespace ramie::platform
