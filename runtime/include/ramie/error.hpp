// SPDX-License-Identifier: BSL-1.0
// Errors that are the caller's to handle.
#pragma once

#include <stdexcept>

namespace ramie::inline v0 {

// The API was used in a way that can't work: options out of range, run() inside a fiber, a fiber-only
// call on a plain thread. Nothing has happened yet; the message says what to do instead.
class usage_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A fiber could not be given a stack: the limit of memory, address space or mappings was reached.
// That fiber has not started; every other fiber is unharmed.
class stack_exhausted : public std::runtime_error {
 public:
  stack_exhausted();
};

}  // namespace ramie::inline v0
