// SPDX-License-Identifier: BSL-1.0
#include <ramie/pipe.hpp>

#include <fcntl.h>

#include "../fs/open_file.hpp"
#include "../fs/system.hpp"

namespace ramie::inline v0 {

pipe_reader pipe_reader::adopt(int descriptor) {
  return pipe_reader(detail::open_file::adopt(descriptor, detail::open_file::kind::stream));
}
std::size_t pipe_reader::read_some(std::span<std::byte> to, deadline until) {
  return detail::value_or_throw(detail::open_file::read_some(it_.get(), to, until), "pipe_reader::read_some");
}
std::size_t pipe_reader::read_some(std::span<std::byte> to, std::error_code& ec, deadline until) {
  return detail::value_or_error(detail::open_file::read_some(it_.get(), to, until), ec);
}
std::string pipe_reader::read_all(std::error_code& ec, deadline until) {
  std::string all;
  detail::open_file::read_all(it_.get(), all, ec, until);
  return all;
}
std::string pipe_reader::read_all(deadline until) {
  std::error_code ec;
  std::string all = read_all(ec, until);
  detail::throw_if(ec, "pipe_reader::read_all");
  return all;
}
void pipe_reader::close() noexcept {
  if (it_ != nullptr) it_->descriptor().close();
}
bool pipe_reader::is_open() const noexcept {
  return it_ != nullptr && it_->descriptor().is_open();
}
int pipe_reader::native_handle() const noexcept {
  return is_open() ? it_->descriptor().number() : -1;
}

pipe_writer pipe_writer::adopt(int descriptor) {
  return pipe_writer(detail::open_file::adopt(descriptor, detail::open_file::kind::stream));
}
std::size_t pipe_writer::write_some(std::span<const std::byte> from, deadline until) {
  return detail::value_or_throw(detail::open_file::write_some(it_.get(), from, until), "pipe_writer::write_some");
}
std::size_t pipe_writer::write_some(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return detail::value_or_error(detail::open_file::write_some(it_.get(), from, until), ec);
}
std::size_t pipe_writer::write_all(std::span<const std::byte> from, std::error_code& ec, deadline until) {
  return detail::open_file::write_all(it_.get(), from, ec, until);
}
void pipe_writer::write_all(std::span<const std::byte> from, deadline until) {
  std::error_code ec;
  (void)write_all(from, ec, until);
  detail::throw_if(ec, "pipe_writer::write_all");
}
void pipe_writer::close() noexcept {
  if (it_ != nullptr) it_->descriptor().close();
}
bool pipe_writer::is_open() const noexcept {
  return it_ != nullptr && it_->descriptor().is_open();
}
int pipe_writer::native_handle() const noexcept {
  return is_open() ? it_->descriptor().number() : -1;
}

pipe_ends make_pipe(std::error_code& ec) {
  int both[2] = {-1, -1};
  ec = detail::error_of(detail::outcome_of([&] { return ::pipe2(both, O_CLOEXEC); }));
  if (ec) return {};
  detail::unique_fd from(both[0]), to(both[1]);
  pipe_ends ends;
  ends.reader = pipe_reader::adopt(from.release());
  ends.writer = pipe_writer::adopt(to.release());
  return ends;
}
pipe_ends make_pipe() {
  std::error_code ec;
  auto ends = make_pipe(ec);
  detail::throw_if(ec, "make_pipe");
  return ends;
}

}  // namespace ramie::inline v0
