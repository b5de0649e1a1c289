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
process::~process() = default;  // the pipes, then the child

int process::id() const noexcept {
  return it_ != nullptr ? it_->id() : 0;
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

exit_status process::wait(std::error_code& ec, deadline until) {
  exit_status status = exit_status::unknown();
  if (it_ == nullptr) check_cancelled();
  ec = detail::error_of(it_ != nullptr ? it_->wait(status, until) : -ECHILD);
  return status;
}
exit_status process::wait(deadline until) {
  std::error_code ec;
  const auto status = wait(ec, until);
  detail::throw_if(ec, "process::wait");
  return status;
}
std::optional<exit_status> process::try_wait() {
  exit_status status = exit_status::unknown();
  const auto result = it_ != nullptr ? it_->try_reap(status) : -ECHILD;
  detail::throw_if(detail::error_of(result), "process::try_wait");
  return result == 1 ? std::optional(status) : std::nullopt;
}

void process::kill(int signal, std::error_code& ec) noexcept {
  ec = detail::error_of(it_ != nullptr ? it_->kill(signal) : -ECHILD);
}
void process::kill(int signal) {
  std::error_code ec;
  kill(signal, ec);
  detail::throw_if(ec, "process::kill");
}

exit_status process::terminate_then_kill(std::chrono::nanoseconds grace) {
  std::error_code ec;
  kill(SIGTERM, ec);  // one that has ended says how in any case
  const auto status = wait(ec, deadline::after(grace));
  if (ec != std::errc::timed_out) {
    detail::throw_if(ec, "process::terminate_then_kill");
    return status;
  }
  const shield to_the_end;
  kill(SIGKILL, ec);
  return wait();
}

void process::detach() {
  if (it_ != nullptr) it_->detach();
  input_ = {};
  output_ = {};
  error_ = {};
}

process_builder::process_builder(std::filesystem::path program) : plan_(std::make_unique<detail::spawn_plan>()) {
  plan_->words.push_back(std::move(program));
}
process_builder::process_builder(const process_builder& other)
    : plan_(std::make_unique<detail::spawn_plan>(*other.plan_)) {}
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
  // A child that is there although its fiber was cancelled goes with the result.
  auto made = blocking([&] { return detail::start(*plan_, standard, ec); });
  process started;
  if (ec) return started;
  started.it_ = std::move(made.it);
  if (made.ours[0]) started.input_ = pipe_writer::adopt(made.ours[0].release());
  if (made.ours[1]) started.output_ = pipe_reader::adopt(made.ours[1].release());
  if (made.ours[2]) started.error_ = pipe_reader::adopt(made.ours[2].release());
  return started;
}

process process_builder::spawn(std::error_code& ec) const {
  return spawn_with(stdio::inherit(), stdio::inherit(), stdio::inherit(), ec);
}
process process_builder::spawn() const {
  std::error_code ec;
  auto started = spawn(ec);
  detail::throw_if(ec, "process_builder::spawn", plan_->words.front());
  return started;
}

process_output process_builder::run_with(stdio in, std::string_view input, std::error_code& ec, deadline until) const {
  process_output all{exit_status::unknown(), {}, {}};
  process started = spawn_with(in, stdio::pipe(), stdio::pipe(), ec);
  if (ec) return all;
  if (input.empty()) started.input_.close();
  ec = detail::exchange_all(started, input, all, plan_->output_limit, until);
  if (!ec) all.status = started.wait(ec, until);
  return all;
}

process_output process_builder::output(std::error_code& ec, deadline until) const {
  return run_with(stdio::null(), {}, ec, until);
}
process_output process_builder::output(deadline until) const {
  std::error_code ec;
  auto all = output(ec, until);
  detail::throw_if(ec, "process_builder::output", plan_->words.front());
  return all;
}
process_output process_builder::output(std::string_view input, std::error_code& ec, deadline until) const {
  if (const auto& where = plan_->standard[0]; where && where->how() != stdio::kind::pipe) {
    throw usage_error("ramie: output(input) for a child whose standard input is no pipe. Leave that to output().");
  }
  return run_with(stdio::pipe(), input, ec, until);
}
process_output process_builder::output(std::string_view input, deadline until) const {
  std::error_code ec;
  auto all = output(input, ec, until);
  detail::throw_if(ec, "process_builder::output", plan_->words.front());
  return all;
}

exit_status process_builder::status(std::error_code& ec, deadline until) const {
  process started = spawn(ec);
  return ec ? exit_status::unknown() : started.wait(ec, until);
}
exit_status process_builder::status(deadline until) const {
  std::error_code ec;
  const auto ended = status(ec, until);
  detail::throw_if(ec, "process_builder::status", plan_->words.front());
  return ended;
}

}  // namespace ramie::inline v0
