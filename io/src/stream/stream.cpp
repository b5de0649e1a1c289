// SPDX-License-Identifier: BSL-1.0
#include <ramie/stream.hpp>

#include <algorithm>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "transfer.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

class stream_errors final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "ramie.stream"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<stream_errc>(value)) {
      case stream_errc::end_of_stream: return "the stream ended too early";
      case stream_errc::limit_exceeded: return "more than the limit";
    }
    return "unknown error of a stream";
  }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    if (static_cast<stream_errc>(value) == stream_errc::limit_exceeded) return std::errc::message_size;
    return {value, *this};
  }
};

// Into a string or a vector that grows with what comes, not with the limit.
template <class Container>
std::size_t append_to_end(any_reader from, Container& into, std::size_t limit, std::error_code& ec, deadline until) {
  constexpr std::size_t first_step = 512, largest_step = 64 * 1024;
  const std::size_t before = into.size();
  for (std::size_t step = first_step;; step = std::min(2 * step, largest_step)) {
    const std::size_t had = into.size(), taken = had - before;
    // One more than allowed, to tell the end from more.
    const std::size_t wanted = limit - taken < step ? limit - taken + 1 : step;
    into.resize(had + wanted);
    std::size_t got = 0;
    const at_scope_end trim([&] { into.resize(had + got); });
    got = from.read_some(std::as_writable_bytes(std::span(into.data() + had, wanted)), ec, until);
    if (ec || got == 0) return taken;
    if (got > limit - taken) {
      ec = stream_errc::limit_exceeded;
      return taken + got;
    }
  }
}

template <class Container>
std::size_t append_to_end_or_throw(any_reader from, Container& into, std::size_t limit, deadline until) {
  return transferred_or_throw("ramie: read_to_end",
                              [&](auto& ec) { return append_to_end(from, into, limit, ec, until); });
}

}  // namespace

std::size_t write_or_stop(any_writer to, std::span<const std::byte> from, std::error_code& ec, deadline until) {
  const std::size_t taken = to.write_some(from, ec, until);
  if (!ec && taken == 0) ec.assign(EIO, std::system_category());
  return taken;
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

using namespace io_internal;

const std::error_category& stream_category() noexcept {
  static const stream_errors all;
  return all;
}

std::size_t any_reader::read_some(std::span<std::byte> into, deadline until) const {
  return or_throw("ramie: any_reader::read_some", [&](auto& ec) { return read_some(into, ec, until); });
}

std::size_t any_writer::write_some(std::span<const std::byte> from, deadline until) const {
  return or_throw("ramie: any_writer::write_some", [&](auto& ec) { return write_some(from, ec, until); });
}

std::size_t read_exactly(any_reader from, std::span<std::byte> into, std::error_code& ec, deadline until) {
  ec.clear();
  if (into.empty()) check_cancelled();
  std::size_t done = 0;
  while (done < into.size() && !ec) {
    const std::size_t got = from.read_some(into.subspan(done), ec, until);
    if (!ec && got == 0) ec = stream_errc::end_of_stream;
    done += got;
  }
  return done;
}

void read_exactly(any_reader from, std::span<std::byte> into, deadline until) {
  (void)transferred_or_throw("ramie: read_exactly", [&](auto& ec) { return read_exactly(from, into, ec, until); });
}

std::size_t write_all(any_writer to, std::span<const std::byte> from, std::error_code& ec, deadline until) {
  ec.clear();
  if (from.empty()) check_cancelled();
  std::size_t done = 0;
  while (done < from.size() && !ec) done += write_or_stop(to, from.subspan(done), ec, until);
  return done;
}

void write_all(any_writer to, std::span<const std::byte> from, deadline until) {
  (void)transferred_or_throw("ramie: write_all", [&](auto& ec) { return write_all(to, from, ec, until); });
}

std::size_t read_to_end(any_reader from, std::string& into, std::size_t limit, deadline until) {
  return append_to_end_or_throw(from, into, limit, until);
}

std::size_t read_to_end(any_reader from, std::string& into, std::size_t limit, std::error_code& ec, deadline until) {
  return append_to_end(from, into, limit, ec, until);
}

std::size_t read_to_end(any_reader from, std::vector<std::byte>& into, std::size_t limit, deadline until) {
  return append_to_end_or_throw(from, into, limit, until);
}

std::size_t read_to_end(any_reader from, std::vector<std::byte>& into, std::size_t limit, std::error_code& ec,
                        deadline until) {
  return append_to_end(from, into, limit, ec, until);
}

std::string read_to_end(any_reader from, std::size_t limit, deadline until) {
  std::string all;
  (void)read_to_end(from, all, limit, until);
  return all;
}

std::uint64_t copy(any_reader from, any_writer to, const copy_options& how, std::error_code& ec, deadline until) {
  if (how.buffer_size == 0) throw usage_error("ramie: copy: a buffer_size of 0. Give it at least one byte.");
  ec.clear();
  if (how.limit == 0) check_cancelled();
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(how.buffer_size);
  std::uint64_t done = 0;
  while (done < how.limit) {
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(how.buffer_size, how.limit - done));
    const std::size_t got = from.read_some({buffer.get(), room}, ec, until);
    if (ec || got == 0) break;
    done += write_all(to, {buffer.get(), got}, ec, until);
    if (ec) break;
  }
  return done;
}

std::uint64_t copy(any_reader from, any_writer to, const copy_options& how, deadline until) {
  return transferred_or_throw("ramie: copy", [&](auto& ec) { return copy(from, to, how, ec, until); });
}

}  // namespace ramie::inline v0
