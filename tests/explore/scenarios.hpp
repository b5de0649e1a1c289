// SPDX-License-Identifier: BSL-1.0
// What there is to explore, and how far every run of the tests goes.
#pragma once

#include <vector>

#include <explore/explorer.hpp>

namespace explore {

struct entry {
  const char* name;
  scenario_maker make;
  unsigned preemptions;       // exhaustively, sequentially consistent
  unsigned weak_preemptions;  // the same with old values
  unsigned stale;             // at most so many in one execution; 0: none, and seeded schedules have none either
  std::uint64_t most = 0;     // executions of each exhaustive search; 0: all. Less than all is not a proof, and says so
};

// One function a file; main.cpp goes through `all_scenarios`.
using list = std::vector<entry>;
[[nodiscard]] list all_scenarios();
[[nodiscard]] list word_scenarios();
[[nodiscard]] list queue_scenarios();
[[nodiscard]] list sleeper_scenarios();
[[nodiscard]] list join_scenarios();
[[nodiscard]] list channel_scenarios();
[[nodiscard]] list oneshot_scenarios();
[[nodiscard]] list sync_scenarios();
[[nodiscard]] list signal_scenarios();
[[nodiscard]] list pipe_scenarios();
[[nodiscard]] list request_scenarios();
[[nodiscard]] list range_scenarios();
[[nodiscard]] list timer_scenarios();
[[nodiscard]] list keeper_scenarios();

// Programs of other files, for programs.cpp.
void handle_dropped_as_its_nursery_ends();
void handle_dropped_as_its_task_ends();
void task_cancelled_as_it_ends();
void task_cancelled_as_it_parks();
void block_used_again_while_its_end_is_told();
void task_cancelled_as_it_starts();
void task_cancelled_as_a_join_starts_it();
void task_cancelled_as_its_lent_frame_goes_on();
void straggler_starts_as_it_is_named();
void fork_is_taken_as_its_caller_comes_back();
void task_cancelled_as_its_fork_starts();
void loop_is_divided();

}  // namespace explore
