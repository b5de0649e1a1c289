// SPDX-License-Identifier: BSL-1.0
// Who waits where, for a process that hangs. Called in a signal handler, while everything stands still or goes round in
// circles: nothing is locked that need not be, and what is read may change meanwhile.
#pragma once

#include <cstddef>

namespace test {

// The calling thread as ramie knows it: a worker and its fiber, or a plain thread and what it waits for; "" if neither.
void describe_this_thread(char* text, std::size_t size) noexcept;

// One line for each runtime, and for each of its fibers.
void describe_fibers(void (*say)(const char* line)) noexcept;

}  // namespace test
