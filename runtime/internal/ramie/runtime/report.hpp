// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string>

#include <ramie/cancel.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/source_location.hpp>

namespace ramie::runtime_internal {

class fiber;

void report_swallowed(const fiber& f, const cancel_reason& why) noexcept;
// `who` as from describe().
void report_lost_failure(const std::string& who, const std::exception_ptr& failure) noexcept;

// If `f` is still what `place` says.
void report_stalled_worker(const platform::owned<fiber*>& place, const fiber& f,
                           std::chrono::nanoseconds held) noexcept;

void report_lost_output(source_location made_at, std::size_t bytes) noexcept;

// Mechanisms of input and output that the machine refused, and the one that is used.
void report_io_fallback(const std::string& passed_over, const char* used) noexcept;

// what() of a std::exception, describe() of a `cancelled`, else the fact that it is something else.
[[nodiscard]] std::string text_of(const std::exception_ptr& failure);

}  // namespace ramie::runtime_internal
