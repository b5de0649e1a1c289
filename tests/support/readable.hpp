// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

namespace test {

// Whether the kernel can read there: false for a guard page, without a fault.
[[nodiscard]] inline bool readable(const void* at) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool could = ::write(ends[1], at, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return could;
}

}  // namespace test
