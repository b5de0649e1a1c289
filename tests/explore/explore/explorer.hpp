// SPDX-License-Identifier: BSL-1.0
// Runs a small concurrent program over every interleaving with at most `preemptions` preemptions.
//
// The program's threads are coroutines; before each atomic operation the explorer may switch. One
// execution follows a trail of choices; the next one changes the last choice that has an alternative
// left. A failing trail is printed and can be replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace explore {

// From inside a thread: it can't go on until the condition holds. The explorer looks, not the thread, so
// waiting costs no interleavings.
void until(std::function<bool()> holds) noexcept;
// From inside a thread: ends the execution as a failure if the claim is false.
void require(bool claim, const char* what) noexcept;
[[noreturn]] void fail(const char* what) noexcept;

class scenario {
 public:
  virtual ~scenario() = default;
  [[nodiscard]] virtual std::vector<std::function<void()>> threads() = 0;
  // After all threads have ended.
  virtual void check() = 0;
};

struct report {
  std::uint64_t executions = 0;
  bool exhausted = false;
  std::string failure;  // empty: none
  std::string trail;
};

struct limits {
  unsigned preemptions = 3;
  std::uint64_t executions = 50'000'000;
};

[[nodiscard]] report run(const std::function<std::unique_ptr<scenario>()>& make, limits within = {});

}  // namespace explore
