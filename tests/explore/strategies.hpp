// SPDX-License-Identifier: BSL-1.0
// Who makes the choices of an execution.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <explore/explorer.hpp>

namespace explore {

class decisions {
 public:
  virtual ~decisions() = default;
  // Before each execution. False: there is none left.
  [[nodiscard]] virtual bool begin() = 0;
  // One of `ready`, numbers of threads that can go on. `stays`: the first is the one that has just run.
  [[nodiscard]] virtual std::size_t next_thread(const std::vector<std::size_t>& ready, bool stays) = 0;
  // 0: the newest value; n: the n-th before it, below `values`.
  [[nodiscard]] virtual unsigned which_value(unsigned values) = 0;
  // What replays the execution at hand.
  [[nodiscard]] virtual std::string replay() const = 0;
};

[[nodiscard]] std::unique_ptr<decisions> decide(const limits& within);

}  // namespace explore
