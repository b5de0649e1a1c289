// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/fatal.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace ramie::platform {

void fatal(const char* format, ...) noexcept {
  char text[1024];
  int used = std::snprintf(text, sizeof text, "ramie: fatal: ");
  va_list args;
  va_start(args, format);
  used += std::vsnprintf(text + used, sizeof text - static_cast<std::size_t>(used), format, args);
  va_end(args);
  const auto length = std::min(static_cast<std::size_t>(used), sizeof text - 2);
  text[length] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, length + 1);
  std::abort();
}

}  // namespace ramie::platform
