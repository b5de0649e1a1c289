// SPDX-License-Identifier: BSL-1.0
// What a catch clause sees when a thread is ended by pthread_exit or pthread_cancel, which unwind its stack by force. A
// handler that does not rethrow it ends the program.
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
