// SPDX-License-Identifier: BSL-1.0
// The end of a program that cannot go on: misuse that would corrupt, or corruption found. Always on.
#pragma once

namespace ramie::platform {

// Prints "ramie: fatal: <message>" to standard error and aborts. The message says what went wrong
// and, after a full stop, what to do. Async-signal-safe but for the formatting of its arguments.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] void fatal(const char* format, ...) noexcept;

}  // namespace ramie::platform
