// SPDX-License-Identifier: BSL-1.0
// What is simulated. Each grows with the workers, so that every worker has as much to do, but for those that are
// about one shared object.
#pragma once

#include <functional>
#include <span>

namespace scale {

// Runs the part of a workload that counts.
using measured = std::function<void(long operations, const std::function<void()>& part)>;

struct workload {
  const char* name;
  const char* what;
  const char* operation;
  void (*run)(unsigned workers, const measured& measure);  // in a fiber
};

[[nodiscard]] std::span<const workload> all_workloads();

}  // namespace scale
