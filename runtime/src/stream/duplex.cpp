// SPDX-License-Identifier: BSL-1.0
#include <ramie/duplex.hpp>

#include <array>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

#include "byte_pipe.hpp"

namespace ramie::detail {

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
  ec.assign(static_cast<int>(-result), std::generic_category());
  return 0;
}

// Until it is done or too late. A refused call is made anew: what it would have waited for has come.
template <class Waitable, class Call>
std::size_t duplex_call(Waitable on, Call call, const wait_reason& why, std::error_code& ec, deadline until) {
  whereabouts at = look_around();
  begin_operation(at);
  wait_result how = wait_result::refused;
  while (how == wait_result::refused) how = fiber_wait_until(on, call, why, until.when());
  if (how == wait_result::timed_out) return duplex_count(-ETIMEDOUT, ec);
  complete_all(call.to_wake);
  return duplex_count(call.result, ec);
}

}  // namespace

}  // namespace ramie::detail

namespace ramie::inline v0 {

duplex_end& duplex_end::operator=(duplex_end&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
    side_ = other.side_;
  }
  return *this;
}

std::size_t duplex_end::read_some(std::span<std::byte> into, std::error_code& ec, deadline until) {
  if (into.empty()) {
    check_cancelled();
    return detail::duplex_count(0, ec);
  }
  detail::byte_pipe& from = core_->into(side_);
  return detail::duplex_call(detail::byte_pipe::reading(from), detail::pipe_read(into), detail::waits_to_read, ec,
                             until);
}

std::size_t duplex_end::write_some(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  if (from.empty()) {
    check_cancelled();
    return detail::duplex_count(0, ec);
  }
  detail::byte_pipe& to = core_->out_of(side_);
  return detail::duplex_call(detail::byte_pipe::writing(to), detail::pipe_write(from), detail::waits_to_write, ec,
                             until);
}

std::size_t duplex_end::read_some(std::span<std::byte> into, deadline until) {
  std::error_code ec;
  const std::size_t got = read_some(into, ec, until);
  if (ec) throw std::system_error(ec, "duplex read_some");
  return got;
}

std::size_t duplex_end::write_some(std::span<const std::byte> from, deadline until) {
  std::error_code ec;
  const std::size_t taken = write_some(from, ec, until);
  if (ec) throw std::system_error(ec, "duplex write_some");
  return taken;
}

void duplex_end::shutdown_write() noexcept {
  core_->out_of(side_).end_writing(-EPIPE);
}

void duplex_end::close() noexcept {
  if (core_ == nullptr) return;
  core_->out_of(side_).end_writing(-EBADF);
  core_->into(side_).end_reading();
}

bool duplex_end::is_open() const noexcept {
  return core_ != nullptr && !core_->into(side_).reader_closed();
}

std::size_t duplex_end::available() const noexcept {
  return core_->into(side_).size();
}

std::pair<duplex_end, duplex_end> make_duplex(const duplex_options& how) {
  if (how.capacity == 0) throw usage_error("ramie: a duplex without capacity. Give it at least one byte.");
  auto core = std::make_shared<detail::duplex_core>(how);
  return {duplex_end(core, 0), duplex_end(core, 1)};
}

}  // namespace ramie::inline v0
