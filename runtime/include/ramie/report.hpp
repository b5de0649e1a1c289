// SPDX-License-Identifier: BSL-1.0
// Reports: problems for which no call of the program can return an error. Failures that no caller can receive,
// cancellations that were swallowed, fibers that hold their workers, output that was never written, a machine that
// refuses io_uring.
#pragma once

#include <cstdint>
#include <exception>
#include <ramie/source_location.hpp>
#include <string>

#include <ramie/version.hpp>

namespace ramie::inline v0 {

// What a report is about.
enum class report_kind : std::uint8_t {
  lost_failure,            // a fiber failed and no caller could receive the exception
  swallowed_cancellation,  // a fiber caught `cancelled`, did not end its scope, and got it again
  stalled_worker,          // a fiber blocks its worker, or computes for long, while others wait (options.report_stalls)
  io_fallback,             // the machine refused io_uring or epoll: `who` is what is used instead, `text` why
  lost_output,             // a buffered_writer was destroyed with bytes that were not flushed
};

// What the handler gets; valid during its call.
struct report {
  report_kind kind;
  std::string who;             // the fiber: number, name, spawn site; lost_output: where the writer was made
  std::string text;            // what() of the failure, the reason of the cancellation, how long, how many bytes
  std::exception_ptr failure;  // lost_failure: the exception
};

// Called on whichever thread finds out, also inside a fiber; must not throw and must not wait.
using report_handler = void (*)(const report&) noexcept;

// Replaces the handler of this process and returns the former one. Null: the default, a line on standard
// error. Any thread or fiber, at any time. Not a cancellation point.
report_handler set_report_handler(report_handler handler) noexcept;

}  // namespace ramie::inline v0
