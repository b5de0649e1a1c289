// SPDX-License-Identifier: BSL-1.0
#include <ramie/pipe.hpp>

#include <fcntl.h>

#include "../fs/open_file.hpp"
#include "../fs/system.hpp"
#include "../native.hpp"

namespace ramie::inline v0 {

using io_internal::open_file;
using io_internal::or_throw;
using io_internal::read_or_throw;
using io_internal::write_or_throw;
using runtime_internal::value_or_error;
using runtime_internal::value_or_throw;

pipe_reader pipe_reader::from_native(int fd) {
  return pipe_reader(open_file::adopt(fd, open_file::kind::stream));
}
std::size_t pipe_reader::read_some(std::span<std::byte> to, deadline until) {
  return value_or_throw(open_file::read_some(it_.get(), to, until), "ramie: pipe_reader::read_some");
}
std::size_t pipe_reader::read_some(std::span<std::byte> to, std::error_code& ec, deadline until) {
  return value_or_error(open_file::read_some(it_.get(), to, until), ec);
}
std::string pipe_reader::read_all(std::error_code& ec, deadline until) {
  std::string all;
  open_file::read_all(it_.get(), all, ec, until);
  return all;
}
std::string pipe_reader::read_all(deadline until) {
  return read_or_throw("ramie: pipe_reader::read_all", [&](auto& ec) { return read_all(ec, until); });
}
void pipe_reader::close() noexcept {
  if (it_ != nullptr) it_->descriptor().close();
}
int pipe_reader::release_native() {
  return io_internal::release_native(open_file::descriptor_of(it_.get()), "ramie: pipe_reader::release_native");
}
bool pipe_reader::is_open() const noexcept {
  return io_internal::is_open(open_file::descriptor_of(it_.get()));
}
int pipe_reader::native_handle() const noexcept {
  return io_internal::native_handle(open_file::descriptor_of(it_.get()));
}

pipe_writer pipe_writer::from_native(int fd) {
  return pipe_writer(open_file::adopt(fd, open_file::kind::stream));
}
std::size_t pipe_writer::write_some(std::span<const std::byte> from, deadline until) {
  return value_or_throw(open_file::write_some(it_.get(), from, until), "ramie: pipe_writer::write_some");
}
std::size_t pipe_writer::write_some(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return value_or_error(open_file::write_some(it_.get(), from, until), ec);
}
std::size_t pipe_writer::write_all(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return open_file::write_all(it_.get(), from, ec, until);
}
void pipe_writer::write_all(std::span<const std::byte> from, deadline until) {
  write_or_throw("ramie: pipe_writer::write_all", [&](auto& ec) { return write_all(from, ec, until); });
}
void pipe_writer::close() noexcept {
  if (it_ != nullptr) it_->descriptor().close();
}
int pipe_writer::release_native() {
  return io_internal::release_native(open_file::descriptor_of(it_.get()), "ramie: pipe_writer::release_native");
}
bool pipe_writer::is_open() const noexcept {
  return io_internal::is_open(open_file::descriptor_of(it_.get()));
}
int pipe_writer::native_handle() const noexcept {
  return io_internal::native_handle(open_file::descriptor_of(it_.get()));
}

pipe_ends make_pipe(std::error_code& ec) {
  int both[2] = {-1, -1};
  ec = io_internal::error_of(io_internal::outcome_of([&] { return ::pipe2(both, O_CLOEXEC); }));
  if (ec) return {};
  io_internal::unique_fd from(both[0]), to(both[1]);
  pipe_ends ends;
  ends.reader = pipe_reader::from_native(from.release());
  ends.writer = pipe_writer::from_native(to.release());
  return ends;
}
pipe_ends make_pipe() {
  return or_throw("ramie: make_pipe", [&](auto& ec) { return make_pipe(ec); });
}

}  // namespace ramie::inline v0
