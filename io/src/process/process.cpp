// SPDX-License-Identifier: BSL-1.0
#include <ramie/process.hpp>

#include <csignal>
#include <utility>

#include <ramie/blocking.hpp>
#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "child.hpp"
#include "plan.hpp"

namespace ramie::inline v0 {

using io_internal::or_throw;

std::string to_string(exit_status status) {
  if (const auto signal = status.signal()) return "signal " + std::to_string(*signal);
  if (const auto code = status.code()) return "exit code " + std::to_string(*code);
  return "unknown";
}

process::process() noexcept = default;
process::process(process&&) noexcept = default;
process& process::operator=(process&& other) noexcept {
  if (this == &other) return *this;
  const process old(std::move(*this));
  it_ = std::move(other.it_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  error_ = std::move(other.error_);
  return *this;
}
process::~process() = default;  // closes the pipes, then ends the child

int process::id() const noexcept {
  return it_ != nullptr ? it_->id() : 0;
}
int process::native_handle() const noexcept {
  return it_ != nullptr ? it_->native_handle() : -1;
}
pipe_writer& process::standard_input() noexcept {
  return input_;
}
pipe_reader& process::standard_output() noexcept {
  return output_;
}
pipe_reader& process::standard_error() noexcept {
  return error_;
}

std::optional<exit_status> process::wait(std::error_code& ec, deadline until) {
  exit_status status = exit_status::unknown();
  if (it_ == nullptr) check_cancelled();
  const auto result = it_ != nullptr ? it_->wait(status, until) : -ECHILD;
  ec = io_internal::error_of(result == -ETIMEDOUT ? 0 : result);
  return result == 0 ? std::optional(status) : std::nullopt;
}
std::optional<exit_status> process::wait(deadline until) {
  return or_throw("ramie: process::wait", [&](auto& ec) { return wait(ec, until); });
}
exit_status process::wait(std::error_code& ec) {
  return wait(ec, deadline()).value_or(exit_status::unknown());
}
exit_status process::wait() {
  return or_throw("ramie: process::wait", [&](auto& ec) { return wait(ec); });
}
std::optional<exit_status> process::try_wait(std::error_code& ec) noexcept {
  exit_status status = exit_status::unknown();
  const auto result = it_ != nullptr ? it_->try_reap(status) : -ECHILD;
  ec = io_internal::error_of(result);
  return result == 1 ? std::optional(status) : std::nullopt;
}
std::optional<exit_status> process::try_wait() {
  return or_throw("ramie: process::try_wait", [&](auto& ec) { return try_wait(ec); });
}

void process::kill(int signal, std::error_code& ec) noexcept {
  ec = io_internal::error_of(it_ != nullptr ? it_->kill(signal) : -ECHILD);
}
void process::kill(int signal) {
  or_throw("ramie: process::kill", [&](auto& ec) { kill(signal, ec); });
}

exit_status process::terminate_then_kill(std::error_code& ec, deadline grace) {
  kill(SIGTERM, ec);  // an error is of no interest: wait() tells how one that has ended already did
  const auto status = wait(ec, grace);
  if (status || ec) return status.value_or(exit_status::unknown());
  const shield until_it_has_ended;
  kill(SIGKILL, ec);
  return wait(ec);
}
exit_status process::terminate_then_kill(deadline grace) {
  return or_throw("ramie: process::terminate_then_kill", [&](auto& ec) { return terminate_then_kill(ec, grace); });
}

void process::detach() {
  if (it_ != nullptr) it_->detach();
  input_ = {};
  output_ = {};
  error_ = {};
}

namespace {

// For calls that start the child, too: a deadline that comes is their error, and they kill it.
exit_status wait_or_time_out(process& started, std::error_code& ec, deadline until) {
  const auto status = started.wait(ec, until);
  if (!status && !ec) ec = std::error_code(ETIMEDOUT, std::system_category());
  return status.value_or(exit_status::unknown());
}

}  // namespace

process_builder::process_builder(std::filesystem::path program) : plan_(std::make_unique<io_internal::spawn_plan>()) {
  plan_->words.push_back(std::move(program));
}
process_builder::process_builder(const process_builder& other)
    : plan_(std::make_unique<io_internal::spawn_plan>(*other.plan_)) {}
process_builder& process_builder::operator=(const process_builder& other) {
  return *this = process_builder(other);
}
process_builder::process_builder(process_builder&&) noexcept = default;
process_builder& process_builder::operator=(process_builder&&) noexcept = default;
process_builder::~process_builder() = default;

process_builder& process_builder::arg(std::string argument) {
  plan_->words.push_back(std::move(argument));
  return *this;
}
process_builder& process_builder::args(std::initializer_list<std::string> arguments) {
  plan_->words.insert(plan_->words.end(), arguments);
  return *this;
}
process_builder& process_builder::args(const std::vector<std::string>& arguments) {
  plan_->words.insert(plan_->words.end(), arguments.begin(), arguments.end());
  return *this;
}
process_builder& process_builder::environment(std::string name, std::string value) {
  plan_->environment.push_back({std::move(name), std::move(value)});
  return *this;
}
process_builder& process_builder::remove_environment(std::string name) {
  plan_->environment.push_back({std::move(name), std::nullopt});
  return *this;
}
process_builder& process_builder::clear_environment() {
  plan_->own_environment_only = true;
  plan_->environment.clear();
  return *this;
}
process_builder& process_builder::working_directory(std::filesystem::path path) {
  plan_->folder = std::move(path);
  return *this;
}
process_builder& process_builder::standard_input(stdio where) {
  plan_->standard[0] = where;
  return *this;
}
process_builder& process_builder::standard_output(stdio where) {
  plan_->standard[1] = where;
  return *this;
}
process_builder& process_builder::standard_error(stdio where) {
  plan_->standard[2] = where;
  return *this;
}

process_builder& process_builder::output_limit(std::size_t bytes) noexcept {
  plan_->output_limit = bytes;
  return *this;
}

process process_builder::spawn_with(stdio in, stdio out, stdio err, std::error_code& ec) const {
  const std::array<stdio, 3> standard{plan_->standard[0].value_or(in), plan_->standard[1].value_or(out),
                                      plan_->standard[2].value_or(err)};
  // A child that was started although its fiber was cancelled is ended by the destructor of the result.
  auto made = blocking([&] { return io_internal::start(*plan_, standard, ec); });
  process started;
  if (ec) return started;
  started.it_ = std::move(made.it);
  if (made.ours[0]) started.input_ = pipe_writer::from_native(made.ours[0].release());
  if (made.ours[1]) started.output_ = pipe_reader::from_native(made.ours[1].release());
  if (made.ours[2]) started.error_ = pipe_reader::from_native(made.ours[2].release());
  return started;
}

process process_builder::spawn(std::error_code& ec) const {
  return spawn_with(stdio::inherit(), stdio::inherit(), stdio::inherit(), ec);
}
process process_builder::spawn() const {
  return or_throw("ramie: process_builder::spawn", [&](auto& ec) { return spawn(ec); }, plan_->words.front());
}

process_output process_builder::run_with(stdio in, std::string_view input, std::error_code& ec, deadline until) const {
  process_output all{exit_status::unknown(), {}, {}};
  process started = spawn_with(in, stdio::pipe(), stdio::pipe(), ec);
  if (ec) return all;
  if (input.empty()) started.input_.close();
  ec = io_internal::exchange_all(started, input, all, plan_->output_limit, until);
  if (!ec) all.status = wait_or_time_out(started, ec, until);
  return all;
}

process_output process_builder::output(std::error_code& ec, deadline until) const {
  return run_with(stdio::null(), {}, ec, until);
}
process_output process_builder::output(deadline until) const {
  return or_throw("ramie: process_builder::output", [&](auto& ec) { return output(ec, until); }, plan_->words.front());
}
process_output process_builder::output(std::string_view input, std::error_code& ec, deadline until) const {
  if (const auto& where = plan_->standard[0]; where && where->how() != stdio::kind::pipe) {
    throw usage_error(
        "ramie: process_builder::output: input for a child whose standard input is no pipe. "
        "Leave standard_input unset.");
  }
  return run_with(stdio::pipe(), input, ec, until);
}
process_output process_builder::output(std::string_view input, deadline until) const {
  return or_throw(
      "ramie: process_builder::output", [&](auto& ec) { return output(input, ec, until); }, plan_->words.front());
}

exit_status process_builder::status(std::error_code& ec, deadline until) const {
  process started = spawn(ec);
  return ec ? exit_status::unknown() : wait_or_time_out(started, ec, until);
}
exit_status process_builder::status(deadline until) const {
  return or_throw("ramie: process_builder::status", [&](auto& ec) { return status(ec, until); }, plan_->words.front());
}

}  // namespace ramie::inline v0
