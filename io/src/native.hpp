// SPDX-License-Identifier: BSL-1.0
// What is_open, native_handle and release_native mean, for every public type that owns a descriptor. A null reference
// is an object that was default made or moved from.
#pragma once

#include <string>

#include <ramie/error.hpp>
#include <ramie/runtime/io.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

[[nodiscard]] inline bool is_open(const descriptor_ref& fd) noexcept {
  return fd && fd->is_open();
}

// -1 if it is not open.
[[nodiscard]] inline int native_handle(const descriptor_ref& fd) noexcept {
  return is_open(fd) ? fd->number() : -1;
}

// The descriptor, which is the caller's to close from here on, or -1 if it is not open. `what` is the public function's
// name. Throws usage_error, and nothing has changed, while somebody reads, writes or waits.
[[nodiscard]] inline int release_native(const descriptor_ref& fd, const char* what) {
  const int released = fd ? fd->release() : -EBADF;
  if (released == -EBUSY) {
    throw usage_error(std::string(what) + ": somebody uses the descriptor. Let the calls under way end first.");
  }
  return released < 0 ? -1 : released;
}

}  // namespace ramie::io_internal
