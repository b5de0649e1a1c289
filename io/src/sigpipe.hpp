// SPDX-License-Identifier: BSL-1.0
// A write to a pipe or socket without a reader is an error, not the end of the process.
#pragma once

namespace ramie::io_internal {

// Sets SIGPIPE to be ignored, unless the program has a handler: writes to pipes without a reader are errors from here
// on and do not end the process. Idempotent. Any thread.
void ignore_sigpipe() noexcept;
// Whether ignore_sigpipe() has been called: whoever removes a handler then must not restore the default action.
[[nodiscard]] bool sigpipe_is_unwanted() noexcept;

}  // namespace ramie::io_internal
