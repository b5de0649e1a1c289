// SPDX-License-Identifier: BSL-1.0
// What a thread has had of the machine's processors, as the system counts it.
#pragma once

#include <chrono>
#include <cstdint>

namespace ramie::platform {

struct thread_usage {
  std::chrono::nanoseconds ran{};     // on a processor
  std::chrono::nanoseconds waited{};  // for one, although it wanted to run
  std::uint64_t times = 0;            // it was given one
};

// Belongs to one thread at a time, the one that reads it; let_go() comes last.
class thread_meter {
 public:
  thread_meter() = default;
  ~thread_meter() { let_go(); }
  thread_meter(const thread_meter&) = delete;
  thread_meter& operator=(const thread_meter&) = delete;

  // Nothing if the system does not tell, or has no descriptor left for it.
  [[nodiscard]] thread_usage read() noexcept;
  void let_go() noexcept;

 private:
  static constexpr int unopened = -1, refused = -2;
  int fd_ = unopened;
};

}  // namespace ramie::platform
