// SPDX-License-Identifier: BSL-1.0
// Signals that tests send to their own process.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <support/test.hpp>

namespace test {

// To the process; under ThreadSanitizer, which keeps signals back from threads that wait in a system call it does not
// know, to the thread itself.
inline void send_signal(int number) {
  (void)(thread_sanitized ? ::raise(number) : ::kill(::getpid(), number));
}

}  // namespace test
