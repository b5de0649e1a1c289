// SPDX-License-Identifier: BSL-1.0
// What a process_builder has been told, and how it is done.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ramie/process.hpp>

#include "child.hpp"

namespace ramie::detail {

struct spawn_plan {
  struct variable {
    std::string name;
    std::optional<std::string> value;  // nothing: to be removed
  };
  std::vector<std::string> words;  // the program, its arguments
  bool own_environment_only = false;
  std::vector<variable> environment;
  std::filesystem::path folder;
  std::array<std::optional<stdio>, 3> standard;
  std::size_t output_limit = process_builder::usual_output_limit;
};

struct started_process {
  std::unique_ptr<child> it;
  std::array<unique_fd, 3> ours;  // of the pipes
};

// Blocks. Throws std::bad_alloc, std::system_error after the child has begun; there is none then.
[[nodiscard]] started_process start(const spawn_plan& plan, const std::array<stdio, 3>& standard, std::error_code& ec);

// Feeds the one, reads the two others, as they come and up to the limit each, until all have been closed. A
// cancellation point.
[[nodiscard]] std::error_code exchange_all(process& with, std::string_view input, process_output& into,
                                           std::size_t limit, deadline until);

}  // namespace ramie::detail
