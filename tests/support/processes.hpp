// SPDX-License-Identifier: BSL-1.0
// Child processes that tests start.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <ramie/ramie.hpp>

#include "io/src/watcher.hpp"

namespace test {

[[nodiscard]] inline ramie::process_builder shell(std::string script) {
  return ramie::process_builder("/bin/sh").args({"-c", std::move(script)});
}

// How waiting_child() ends.
inline const ramie::exit_status found_its_end = ramie::exit_status::exited(5);

// A child that writes a line when it has begun, and ends when it finds the end of its input.
[[nodiscard]] inline ramie::process_builder waiting_child() {
  return shell("echo ready; read line; exit 5")
      .standard_input(ramie::stdio::pipe())
      .standard_output(ramie::stdio::pipe());
}

// After detached children were reaped: returns when the thread that did it has closed what it had open for them. It reaps
// and closes under one lock, which this waits for.
inline void let_reaper_finish() {
  ramie::io_internal::unwatch(~std::uint64_t{0});
}

}  // namespace test
