// SPDX-License-Identifier: BSL-1.0
#include <ramie/report.hpp>

#include <atomic>
#include <cstdio>

#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

#include "task/extras.hpp"

namespace ramie::runtime_internal {

namespace {

const char* sentence_for(report_kind kind) noexcept {
  switch (kind) {
    case report_kind::lost_failure: return "ramie: a failure that nobody could receive: %s: %s\n";
    case report_kind::swallowed_cancellation: return "ramie: %s swallowed its cancellation and waits again (%s).\n";
    case report_kind::stalled_worker:
      return "ramie: %s has held its worker %s. Call what blocks by blocking(), or yield() now and then; instead of a "
             "static whose initialiser waits use a once_cell.\n";
    case report_kind::io_fallback: return "ramie: input and output by %s: %s.\n";
    case report_kind::lost_output: return "ramie: the buffered_writer made at %s was destroyed with %s not flushed.\n";
  }
  return "ramie: %s: %s\n";
}

void to_standard_error(const report& r) noexcept {
  std::fprintf(stderr, sentence_for(r.kind), r.who.c_str(), r.text.c_str());
}

constinit std::atomic<report_handler> the_handler{&to_standard_error};

void deliver(const report& r) noexcept {
  the_handler.load(std::memory_order_acquire)(r);
}

}  // namespace

void report_swallowed(const fiber& f, const cancel_reason& why) noexcept {
  try {
    deliver({report_kind::swallowed_cancellation, describe(f), why.text.empty() ? to_string(why.kind) : why.text, {}});
  } catch (...) {  // no memory for the report
  }
}

void report_lost_failure(const std::string& who, const std::exception_ptr& failure) noexcept {
  try {
    deliver({report_kind::lost_failure, who, text_of(failure), failure});
  } catch (...) {
    deliver({report_kind::lost_failure, {}, {}, failure});
  }
}

void report_stalled_worker(const platform::owned<fiber*>& place, const fiber& f,
                           std::chrono::nanoseconds held) noexcept {
  try {
    std::string who = describe_if_at(place, f);
    if (who.empty()) return;
    std::string how_long = "for ";
    how_long.append(std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(held).count())).append(" ms");
    deliver({report_kind::stalled_worker, std::move(who), std::move(how_long), {}});
  } catch (...) {  // no memory for the report
  }
}

void report_lost_output(source_location made_at, std::size_t bytes) noexcept {
  try {
    std::string where = made_at.file_name();
    where.append(":").append(std::to_string(made_at.line()));
    deliver({report_kind::lost_output, std::move(where), std::to_string(bytes).append(" bytes"), {}});
  } catch (...) {  // no memory for the report
  }
}

void report_io_fallback(const std::string& passed_over, const char* used) noexcept {
  try {
    deliver({report_kind::io_fallback, used, passed_over, {}});
  } catch (...) {  // no memory for the report
  }
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (const cancelled& c) {
    return c.describe();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

report_handler set_report_handler(report_handler handler) noexcept {
  return runtime_internal::the_handler.exchange(handler != nullptr ? handler : &runtime_internal::to_standard_error,
                                      std::memory_order_acq_rel);
}

}  // namespace ramie::inline v0
