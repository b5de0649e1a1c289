// SPDX-License-Identifier: BSL-1.0
#include <ramie/report.hpp>

#include <atomic>
#include <cstdio>

#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

namespace ramie::detail {

namespace {

void to_standard_error(const report& r) noexcept {
  const bool lost = r.kind == report_kind::lost_failure;
  std::fprintf(stderr,
               lost ? "ramie: a failure that nobody could receive: %s: %s\n"
                    : "ramie: %s swallowed its cancellation and waits again (%s).\n",
               r.who.c_str(), r.text.c_str());
}

constinit std::atomic<report_handler> the_handler{&to_standard_error};

void deliver(const report& r) noexcept {
  the_handler.load(std::memory_order_acquire)(r);
}

}  // namespace

void report_swallowed(const fiber& f, const cancel_reason& why) noexcept {
  try {
    deliver({report_kind::swallowed_cancellation, describe(f), why.text.empty() ? to_string(why.kind) : why.text, {}});
  } catch (...) {  // no memory to tell
  }
}

void report_lost_failure(const std::string& who, const std::exception_ptr& failure) noexcept {
  try {
    deliver({report_kind::lost_failure, who, text_of(failure), failure});
  } catch (...) {
    deliver({report_kind::lost_failure, {}, {}, failure});
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

}  // namespace ramie::detail

namespace ramie::inline v0 {

report_handler set_report_handler(report_handler handler) noexcept {
  return detail::the_handler.exchange(handler != nullptr ? handler : &detail::to_standard_error,
                                      std::memory_order_acq_rel);
}

}  // namespace ramie::inline v0
