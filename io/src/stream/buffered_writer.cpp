// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <exception>

#include <ramie/buffered.hpp>
#include <ramie/cancel.hpp>
#include <ramie/runtime/report.hpp>

#include "transfer.hpp"

namespace ramie::inline v0 {

using namespace io_internal;

buffered_writer::buffered_writer(any_writer to, std::size_t capacity, source_location where)
    : to_(to),
      buffer_(capacity, "buffered_writer::buffered_writer"),
      exceptions_(std::uncaught_exceptions()),
      where_(where) {}

buffered_writer& buffered_writer::operator=(buffered_writer&& other) noexcept {
  if (this == &other) return *this;
  if (buffer_.size() != 0) left_behind();
  to_ = other.to_;
  buffer_ = std::move(other.buffer_);
  failed_ = other.failed_;
  exceptions_ = other.exceptions_;
  where_ = other.where_;
  return *this;
}

// Room for all of `data` is there before anything is written: so what is not written can be kept, whatever happens.
void buffered_writer::write(std::span<const std::byte> data, std::error_code& ec, deadline until) {
  ec.clear();
  const std::size_t capacity = buffer_.usual_capacity();
  buffer_.reserve(data.size());
  if (data.size() <= capacity && buffer_.size() <= capacity - data.size()) {
    buffer_.append(data);
    check_cancelled();
    return;
  }
  const at_scope_end keep_the_rest([&] {
    buffer_.append(data);
    buffer_.settle();
  });
  while (!ec && buffer_.size() != 0) buffer_.consume(write_or_stop(to_, buffer_.content(), ec, until));
  while (!ec && data.size() >= capacity) data = data.subspan(write_or_stop(to_, data, ec, until));
  failed_ = failed_ || ec;
}

std::size_t buffered_writer::write_some(std::span<const std::byte> data, std::error_code& ec, deadline until) {
  const std::size_t capacity = buffer_.usual_capacity();
  if (buffer_.size() >= capacity) {
    flush(ec, until);
    if (ec) return 0;
  } else {
    ec.clear();
    check_cancelled();
  }
  if (buffer_.size() == 0 && data.size() >= capacity) return to_.write_some(data, ec, until);
  const std::size_t n = std::min(data.size(), capacity - buffer_.size());
  buffer_.reserve(n);
  buffer_.append(data.first(n));
  return n;
}

void buffered_writer::flush(std::error_code& ec, deadline until) {
  ec.clear();
  if (buffer_.size() == 0) check_cancelled();
  while (!ec && buffer_.size() != 0) buffer_.consume(write_or_stop(to_, buffer_.content(), ec, until));
  failed_ = static_cast<bool>(ec);
  buffer_.settle();
}

void buffered_writer::discard() noexcept {
  buffer_.consume(buffer_.size());
  buffer_.settle();
}

void buffered_writer::left_behind() noexcept {
  if (failed_ || std::uncaught_exceptions() > exceptions_) return;
  runtime_internal::report_lost_output(where_, buffer_.size());
}

// The same, throwing.

void buffered_writer::write(std::span<const std::byte> data, deadline until) {
  or_throw("ramie: buffered_writer::write", [&](auto& ec) { write(data, ec, until); });
}

std::size_t buffered_writer::write_some(std::span<const std::byte> data, deadline until) {
  return or_throw("ramie: buffered_writer::write_some", [&](auto& ec) { return write_some(data, ec, until); });
}

void buffered_writer::flush(deadline until) {
  or_throw("ramie: buffered_writer::flush", [&](auto& ec) { flush(ec, until); });
}

}  // namespace ramie::inline v0
