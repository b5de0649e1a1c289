// SPDX-License-Identifier: BSL-1.0
// Running something that is meant to die, in a process of its own.
#pragma once

#include <string>

namespace test {

struct ending {
  int signal = 0;  // that ended it, or 0
  int exit_code = 0;
  std::string errors;  // what it wrote to standard error
};

// Runs body() in a forked child and waits for it. The caller must be the only thread.
ending in_child(void (*body)());

// Checks that body() aborts in a child and says `what`. Left out under sanitizers and valgrind, which report the death.
void dies_saying(void (*body)(), const std::string& what);

}  // namespace test
