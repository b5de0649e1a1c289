// SPDX-License-Identifier: BSL-1.0
#include "child.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include <support/test.hpp>
#include <support/watchdog.hpp>

namespace test {

ending in_child(void (*body)()) {
  int ends[2];
  if (::pipe(ends) != 0) return {-1, -1, "pipe"};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    // The test runner's own handlers would only dress up the death we want to see.
    for (const int s : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(s, SIG_DFL);
    const rlimit none = {0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    watch_child();
    try {
      body();
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  ending result;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], part, sizeof part)) > 0;)
    result.errors.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

void dies_saying(void (*body)(), const std::string& what) {
  if (sanitized || under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const ending end = in_child(body);
  INFO(end.errors);
  CHECK(end.signal == SIGABRT);
  CHECK(end.errors.find(what) != std::string::npos);
}

}  // namespace test
