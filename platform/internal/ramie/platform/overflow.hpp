// SPDX-License-Identifier: BSL-1.0
// Turns a stack overflow into a message. A fault in a guard page of ours is reported through a callback that knows the
// fiber; any other fault goes on to the handler that was there before.
#pragma once

#include <cstddef>

namespace ramie::platform {

// Returns whether the fault at `address` is an overflow, and reports it if so. `promised_bytes`: of the stack in whose
// guard it is, if a pool carved it, else 0. Runs inside the SIGSEGV handler, on the alternate stack: async-signal-safe
// work only.
using overflow_reporter = bool (*)(const void* address, std::size_t promised_bytes) noexcept;

// Makes ours the process-wide handler of SIGSEGV and SIGBUS, in front of whatever is there now.
void watch_for_overflow(overflow_reporter report) noexcept;

// An alternate signal stack for the calling thread, for as long as the object lives. Keeps one that
// the thread already has.
class alternate_stack {
 public:
  alternate_stack() noexcept;
  ~alternate_stack();
  alternate_stack(const alternate_stack&) = delete;
  alternate_stack& operator=(const alternate_stack&) = delete;

 private:
  void* memory_ = nullptr;
};

}  // namespace ramie::platform
