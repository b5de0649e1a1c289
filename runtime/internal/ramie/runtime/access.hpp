// SPDX-License-Identifier: BSL-1.0
// The inside of a runtime object, for explore(), tests and benchmarks.
#pragma once

#include <ramie/runtime.hpp>

namespace ramie::runtime_internal {

struct runtime_access {
  [[nodiscard]] static scheduler& scheduler_of(runtime& of) noexcept { return *of.scheduler_; }
  // A runtime under a scheduling policy, which must outlive it. Throws as its constructor does.
  [[nodiscard]] static runtime make(const options& wanted, scheduling_policy& by) { return runtime(wanted, &by); }
};

[[nodiscard]] inline scheduler& scheduler_of(runtime& of) noexcept {
  return runtime_access::scheduler_of(of);
}

}  // namespace ramie::runtime_internal
