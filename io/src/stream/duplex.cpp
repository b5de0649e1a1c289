// SPDX-License-Identifier: BSL-1.0
#include <ramie/duplex.hpp>

#include <array>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

#include "byte_pipe.hpp"
#include "transfer.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

class duplex_core {
 public:
  explicit duplex_core(const duplex_options& how)
      : pipes_{byte_pipe(how.capacity, how.short_seed), byte_pipe(how.capacity, how.short_seed * 0x9e3779b97f4a7c15u)} {
  }

  [[nodiscard]] byte_pipe& out_of(unsigned side) noexcept { return pipes_[side]; }
  [[nodiscard]] byte_pipe& into(unsigned side) noexcept { return pipes_[1 - side]; }

 private:
  std::array<byte_pipe, 2> pipes_;
};

namespace {

const wait_reason waits_to_read{"duplex read"};
const wait_reason waits_to_write{"duplex write"};

std::size_t duplex_count(std::ptrdiff_t result, std::error_code& ec) noexcept {
  if (result >= 0) {
    ec.clear();
    return static_cast<std::size_t>(result);
  }
  ec.assign(static_cast<int>(-result), std::system_category());
  return 0;
}

// A call that has nothing to transfer, or an end that was moved from. A cancellation point all the same.
std::size_t without_waiting(std::ptrdiff_t result, std::error_code& ec) {
  check_cancelled();
  return duplex_count(result, ec);
}

// Until it is done or too late. A refused call is made anew: what it would have waited for has come.
template <class Waitable, class Call>
std::size_t duplex_call(Waitable on, Call call, const wait_reason& why, std::error_code& ec, deadline until) {
  call_context at = current_context();
  begin_operation(at);
  wait_result how = wait_result::refused;
  while (how == wait_result::refused) how = fiber_wait_until(on, call, why, until.when());
  if (how == wait_result::timed_out) return duplex_count(-ETIMEDOUT, ec);
  call.wakes.complete_all();
  return duplex_count(call.result, ec);
}

}  // namespace

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using namespace io_internal;

duplex_end& duplex_end::operator=(duplex_end&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
    side_ = other.side_;
  }
  return *this;
}

std::size_t duplex_end::read_some(std::span<std::byte> into, std::error_code& ec, deadline until) {
  if (core_ == nullptr) return without_waiting(-EBADF, ec);
  if (into.empty()) return without_waiting(0, ec);
  return duplex_call(byte_pipe::reading(core_->into(side_)), pipe_read(into), waits_to_read, ec, until);
}

std::size_t duplex_end::write_some(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  if (core_ == nullptr) return without_waiting(-EBADF, ec);
  if (from.empty()) return without_waiting(0, ec);
  return duplex_call(byte_pipe::writing(core_->out_of(side_)), pipe_write(from), waits_to_write, ec, until);
}

std::size_t duplex_end::read_some(std::span<std::byte> into, deadline until) {
  return or_throw("ramie: duplex_end::read_some", [&](auto& ec) { return read_some(into, ec, until); });
}

std::size_t duplex_end::write_some(std::span<const std::byte> from, deadline until) {
  return or_throw("ramie: duplex_end::write_some", [&](auto& ec) { return write_some(from, ec, until); });
}

void duplex_end::shutdown(shutdown_part part, std::error_code& ec) noexcept {
  (void)duplex_count(is_open() ? 0 : -EBADF, ec);
  if (ec) return;
  if (part != shutdown_part::read) core_->out_of(side_).end_writing(-EPIPE);
  if (part != shutdown_part::write) core_->into(side_).end_reading(0);
}

void duplex_end::shutdown(shutdown_part part) {
  or_throw("ramie: duplex_end::shutdown", [&](auto& ec) { shutdown(part, ec); });
}

void duplex_end::close() noexcept {
  if (core_ == nullptr) return;
  core_->out_of(side_).end_writing(-EBADF);
  core_->into(side_).end_reading(-EBADF);
}

bool duplex_end::is_open() const noexcept {
  return core_ != nullptr && !core_->into(side_).reader_closed();
}

std::size_t duplex_end::available() const noexcept {
  return core_ != nullptr ? core_->into(side_).size() : 0;
}

std::pair<duplex_end, duplex_end> make_duplex(const duplex_options& how) {
  if (how.capacity == 0) throw usage_error("ramie: make_duplex: no capacity. Give it at least one byte.");
  auto core = std::make_shared<duplex_core>(how);
  return {duplex_end(core, 0), duplex_end(core, 1)};
}

}  // namespace ramie::inline v0
