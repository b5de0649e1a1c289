// SPDX-License-Identifier: BSL-1.0
// Catch2, version 2 or 3. Assertions belong on the main thread: collect in fibers, check outside.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <cstdlib>
#include <string_view>

#include <ramie/platform/compiler.hpp>

// For a case that asserts nothing in this build or on this machine. It says so: the lines of a lane that
// hold "left out:" are the cases that need another one.
#define LEFT_OUT(why)          \
  do {                         \
    WARN("left out: " << why); \
    return;                    \
  } while (false)

namespace test {

#if defined(RAMIE_TSAN) || defined(RAMIE_ASAN)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// RAMIE_TEST_SIZE=large runs the long versions (tools/test --large).
inline bool large() {
  const char* const size = std::getenv("RAMIE_TEST_SIZE");
  return size != nullptr && std::string_view(size) == "large";
}
inline bool under_valgrind() {
  return std::getenv("RAMIE_UNDER_VALGRIND") != nullptr;
}

// Under it threads, fibers and runtimes are dear: tens of milliseconds for a small program.
#if defined(RAMIE_TSAN)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

// A count that the sanitizers' slowness and memory allow.
inline int scaled(int normal, int under_sanitizer) {
  return sanitized || under_valgrind() ? under_sanitizer : normal;
}

}  // namespace test
