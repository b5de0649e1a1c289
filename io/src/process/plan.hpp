// SPDX-License-Identifier: BSL-1.0
// What a process_builder was set to, and the functions that start a child and serve its pipes.
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

namespace ramie::io_internal {

using namespace runtime_internal;

struct spawn_plan {
  struct variable {
    std::string name;
    std::optional<std::string> value;  // nothing: the variable is removed
  };
  std::vector<std::string> words;  // the program and its arguments
  bool own_environment_only = false;
  std::vector<variable> environment;
  std::filesystem::path folder;
  std::array<std::optional<stdio>, 3> standard;
  std::size_t output_limit = process_builder::usual_output_limit;
};

struct started_process {
  std::unique_ptr<child> it;
  std::array<unique_fd, 3> ours;  // our ends of the pipes
};

// Blocks. Throws std::bad_alloc, std::system_error, also after the child was started: it is ended then.
[[nodiscard]] started_process start(const spawn_plan& plan, const std::array<stdio, 3>& standard, std::error_code& ec);

// Writes the input and reads the two outputs, as each pipe becomes ready and up to the limit each, until all are
// closed. A cancellation point.
[[nodiscard]] std::error_code exchange_all(process& with, std::string_view input, process_output& into,
                                           std::size_t limit, deadline until);

}  // namespace ramie::io_internal
