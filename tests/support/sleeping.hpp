// SPDX-License-Identifier: BSL-1.0
// Whether another thread of this process sleeps in the kernel: for tests that must not act before it does.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace test {

// As the kernel numbers threads.
[[nodiscard]] inline int this_thread_number() {
  return static_cast<int>(::syscall(SYS_gettid));
}

[[nodiscard]] inline bool sleeps(int thread) {
  std::ifstream about("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(about, text);
  const auto name_ends = text.rfind(')');  // "7 (a name) S 1 …"
  return name_ends != std::string::npos && text.size() > name_ends + 2 && text[name_ends + 2] == 'S';
}

}  // namespace test
