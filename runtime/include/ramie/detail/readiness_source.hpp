// SPDX-License-Identifier: BSL-1.0
// The readiness of a descriptor as a source of select (ready_source.hpp), for public headers: what it does is in
// runtime/src/io/readiness_source.cpp. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ramie/detail/ready_source.hpp>

namespace ramie::runtime_internal {

// What one case of a select waits with. It stays where it is from source_of to the end of the select.
struct readiness_wait {
  int fd = -1;
  std::uint32_t events = 0;   // POLLIN or POLLOUT
  const char* what = "";      // the public function's name, for errors
  std::int32_t result = 0;    // those events that hold, and POLLERR, POLLHUP; when the case has won
  alignas(std::max_align_t) std::byte memory[128];
};

// For fibers: a plain thread has no I/O driver. What can't be waited for is std::system_error.
[[nodiscard]] ready_source source_of(readiness_wait& wait) noexcept;

}  // namespace ramie::runtime_internal
