// SPDX-License-Identifier: BSL-1.0
// The public side of testing.hpp.
#include <ramie/testing.hpp>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>
#include <ramie/runtime/access.hpp>

#include "../sched/scheduler.hpp"
#include "director.hpp"

namespace ramie::runtime_internal {

namespace {

constexpr const char* seed_variable = "RAMIE_EXPLORE_SEED";
constexpr unsigned most_change_points = 64;

std::optional<std::uint64_t> seed_from_environment() {
  const char* const text = std::getenv(seed_variable);
  if (text == nullptr || *text == 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const auto seed = std::strtoull(text, &end, 10);
  if (*end != 0 || *text < '0' || *text > '9' || errno != 0) {
    throw usage_error(std::string("ramie: explore: ") + seed_variable + "=" + text +
                      " is not a seed. Use the number reported.");
  }
  return seed;
}

void check_options(const testing::explore_options& wanted, const char* function) {
  const auto refuse = [function](const char* what) {
    throw usage_error(std::string("ramie: ") + function + ": explore_options." + what);
  };
  if (wanted.schedules == 0) refuse("schedules is 0. Use at least 1.");
  if (wanted.max_steps == 0) refuse("max_steps is 0. Use at least 1.");
  if (wanted.change_points == 0 || wanted.change_points > most_change_points) {
    refuse("change_points is out of range. Use from 1 to 64.");
  }
}

testing::explore_report run_schedule(std::uint64_t seed, const testing::explore_options& wanted, void (*call)(void*),
                                     void* data) {
  director by(seed, wanted);
  std::exception_ptr thrown;
  testing::virtual_clock clock;
  options setup;
  setup.workers = 1;
  setup.elastic = false;
  setup.clock = &clock;
  {
    runtime here = runtime_access::make(setup, by);
    try {
      here.run([call, data] { call(data); });
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  return by.verdict(std::move(thrown));
}

std::string message(const testing::explore_report& found) {
  const std::string seed = std::to_string(found.seed);
  return "ramie: explore: schedule " + std::to_string(found.schedules) + " failed: " + found.failure +
         "\nReplay it with RAMIE_EXPLORE_SEED=" + seed + ", or with testing::replay(" + seed +
         ", test) and the same options.";
}

}  // namespace

void check_has_failed(std::string_view what, source_location where) {
  std::string text = "check failed at ";
  text.append(where.file_name()).append(":").append(std::to_string(where.line()));
  if (!what.empty()) text.append(": ").append(what);
  const worker* const w = this_worker();
  if (w != nullptr && w->policy != nullptr) w->policy->check_failed(text);
  throw testing::check_failed(text);
}

testing::explore_report explore_by(const testing::explore_options& wanted, void (*call)(void*), void* data,
                                   bool exactly) {
  const char* const function = exactly ? "replay" : "explore";
  if (this_worker() != nullptr) {
    throw usage_error(std::string("ramie: ") + function +
                      ": called inside a fiber. Call it on a plain thread: it makes runtimes of its own.");
  }
  check_options(wanted, function);
  const auto only = exactly ? std::nullopt : seed_from_environment();
  const unsigned schedules = only ? 1 : wanted.schedules;
  testing::explore_report found;
  for (unsigned i = 0; i < schedules && !found.failed; ++i) {
    found = run_schedule(only ? *only : wanted.seed + i, wanted, call, data);
    found.schedules = i + 1;
  }
  if (found.failed && wanted.failure == testing::on_failure::throws) {
    throw testing::explore_failure(message(found), found);
  }
  return found;
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0::testing {

void wait_all_blocked() {
  const auto* const w = runtime_internal::this_worker();
  if (w == nullptr) {
    throw usage_error(
        "ramie: wait_all_blocked: called on a plain thread. Say of which runtime: wait_all_blocked(runtime).");
  }
  w->sched.all_blocked.wait();
}

void wait_all_blocked(runtime& of) {
  runtime_internal::scheduler_of(of).all_blocked.wait();
}

}  // namespace ramie::inline v0::testing
