// SPDX-License-Identifier: BSL-1.0
// The same with every I/O mechanism that this machine grants, and on several worker counts; and what must not leak.
#pragma once

#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <ramie/platform/io_backend.hpp>
#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace test {

[[nodiscard]] inline bool granted(ramie::platform::io_mechanism which) {
  try {
    std::string why_not;
    return ramie::platform::make_io_backend(which, why_not) != nullptr;
  } catch (const std::system_error&) {
    return false;
  }
}

[[nodiscard]] inline const std::vector<ramie::io_choice>& each_mechanism() {
  static const std::vector<ramie::io_choice> all = [] {
    std::vector<ramie::io_choice> those;
    // valgrind runs one thread at a time, and does not know that a thread may sleep in io_uring_enter.
    const bool uring = !under_valgrind() && granted(ramie::platform::io_mechanism::io_uring);
    if (uring) those.push_back(ramie::io_choice::io_uring);
    if (granted(ramie::platform::io_mechanism::epoll)) those.push_back(ramie::io_choice::epoll);
    those.push_back(ramie::io_choice::poll);
    return those;
  }();
  return all;
}

// For temporary directories: where a sync takes no time, if there is such a place.
[[nodiscard]] inline std::filesystem::path in_memory() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
}

// What a number stands for; 0: nothing. Whoever closes a descriptor can't say that nothing has its number afterwards: a worker
// that opens one may have it at once.
[[nodiscard]] inline ino_t inode_of(int number) {
  struct stat about = {};
  return ::fstat(number, &about) == 0 ? about.st_ino : 0;
}

[[nodiscard]] inline std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}
// Also none that is a zombie.
[[nodiscard]] inline bool has_children() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// f(found) as a fiber; then all descriptors are closed again, and no child is left.
template <class F>
void with_each_mechanism(F f) {
  for (const auto which : each_mechanism()) {
    for (const unsigned workers : {1u, 2u, 4u}) {
      auto o = with_workers(workers);
      o.io = which;
      findings found;
      const auto before = open_descriptors();
      ramie::run(o, [&] { f(found); });
      INFO("mechanism " << static_cast<int>(which) << " workers " << workers);
      CHECK(found.wrong() == "");
      CHECK(open_descriptors() == before);
      CHECK_FALSE(has_children());
    }
  }
}

// The same on a plain thread, too.
template <class F>
void with_each_mechanism_and_without(F f) {
  with_each_mechanism(f);
  findings found;
  const auto before = open_descriptors();
  f(found);
  INFO("a plain thread");
  CHECK(found.wrong() == "");
  CHECK(open_descriptors() == before);
  CHECK_FALSE(has_children());
}

// The error that f() throws, or none.
template <class F>
[[nodiscard]] std::error_code error_of(F f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code();
  }
  return {};
}

}  // namespace test
