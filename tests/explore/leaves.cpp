// SPDX-License-Identifier: BSL-1.0
// The lock-free leaves: real headers, with the model's atomics and a ring of four.
#include "scenarios.hpp"

namespace explore {

list all_scenarios() {
  list all;
  for (const auto& part : {word_scenarios(), queue_scenarios(), sleeper_scenarios(), join_scenarios(),
                           channel_scenarios(), oneshot_scenarios(), sync_scenarios(), signal_scenarios(), pipe_scenarios(),
                           request_scenarios(), range_scenarios()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace explore
