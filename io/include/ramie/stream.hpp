// SPDX-License-Identifier: BSL-1.0
// Streams of bytes: what a reader and a writer are, references to any of them, and what can be done with those.
//
// A reader or writer transfers *some* bytes with each call; the functions below transfer as many as are wanted. All of
// them are cancellation points on every call, also if there is nothing to transfer: they throw `cancelled`. All take a
// deadline for the whole of what they do; its expiry is std::errc::timed_out. Fibers and plain threads may call them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// Errors of the functions on streams, not of the sockets, files or pipes below them.
enum class stream_errc {
  end_of_stream = 1,   // it ended before all that was wanted had come
  limit_exceeded = 2,  // there is more than the caller wants to take; equals std::errc::message_size
};

// The category of these errors, and how a stream_errc becomes an error_code.
[[nodiscard]] const std::error_category& stream_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(stream_errc e) noexcept {
  return {static_cast<int>(e), stream_category()};
}

}  // namespace ramie::inline v0

template <>
struct std::is_error_code_enum<ramie::stream_errc> : std::true_type {};

namespace ramie::inline v0 {

// What a shutdown is of: stream_socket::shutdown, duplex_end::shutdown.
enum class shutdown_part : std::uint8_t { read, write, both };

// Has read_some: waits until there is something, puts some of it, at least one byte, into the span, and returns how
// much; 0 is the end of the stream, or that the span is empty. What fails is thrown as std::system_error, or returned
// in an error_code, with 0; then nothing was taken from the stream. Both are cancellation points.
template <class T>
concept reader = requires(T& t, std::span<std::byte> into, std::error_code& ec, deadline until) {
  { t.read_some(into, until) } -> std::same_as<std::size_t>;
  { t.read_some(into, ec, until) } -> std::same_as<std::size_t>;
};

// Has write_some: waits until something can be written, takes some of the span, at least one byte unless it is empty,
// and returns how much. Failures like those of a reader: then nothing was written.
template <class T>
concept writer = requires(T& t, std::span<const std::byte> from, std::error_code& ec, deadline until) {
  { t.write_some(from, until) } -> std::same_as<std::size_t>;
  { t.write_some(from, ec, until) } -> std::same_as<std::size_t>;
};

// The bytes of a text.
[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}
// And the other way round.
[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Refers to any reader, which it does not own and which must outlive it. Two words; copies are free. A reader itself.
class any_reader {
 public:
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, any_reader> && reader<std::remove_reference_t<R>>) any_reader(R&& r)
  noexcept  // NOLINT: converts on purpose, like a span
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(r)))),
        read_([](void* object, std::span<std::byte> into, std::error_code& ec, deadline until) {
          return static_cast<std::remove_reference_t<R>*>(object)->read_some(into, ec, until);
        }) {}

  // The reader's own. Cancellation points. The second throws std::system_error.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& ec, deadline until = {}) const {
    return read_(object_, into, ec, until);
  }
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, deadline until = {}) const;

 private:
  void* object_;
  std::size_t (*read_)(void*, std::span<std::byte>, std::error_code&, deadline);
};

// The same for a writer.
class any_writer {
 public:
  template <class W>
  requires(!std::same_as<std::remove_cvref_t<W>, any_writer> && writer<std::remove_reference_t<W>>) any_writer(W&& w)
  noexcept  // NOLINT: converts on purpose, like a span
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(w)))),
        write_([](void* object, std::span<const std::byte> from, std::error_code& ec, deadline until) {
          return static_cast<std::remove_reference_t<W>*>(object)->write_some(from, ec, until);
        }) {}

  // The writer's own. Cancellation points. The second throws std::system_error.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, std::error_code& ec,
                                       deadline until = {}) const {
    return write_(object_, from, ec, until);
  }
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> from, deadline until = {}) const;

 private:
  void* object_;
  std::size_t (*write_)(void*, std::span<const std::byte>, std::error_code&, deadline);
};

// Thrown by functions that call a stream more than once: how far they came.
class transfer_error : public std::system_error {
 public:
  transfer_error(std::error_code ec, const char* what, std::uint64_t transferred)
      : std::system_error(ec, what), transferred_(transferred) {}
  // Bytes that were transferred before it failed.
  [[nodiscard]] std::uint64_t transferred() const noexcept { return transferred_; }

 private:
  std::uint64_t transferred_;
};

// Fills `into`. If the stream ends before: stream_errc::end_of_stream. Throws transfer_error; the other form returns
// how many bytes were read, also if that is not all. A caller that is cancelled on the way does not learn that; a
// buffered_reader loses nothing then.
void read_exactly(any_reader from, std::span<std::byte> into, deadline until = {});
std::size_t read_exactly(any_reader from, std::span<std::byte> into, std::error_code& ec, deadline until = {});

// Writes all of it. Throws transfer_error; the other form returns how much was written. A writer that takes nothing is
// std::errc::io_error. A caller that is cancelled on the way does not learn how much was written; a buffered_writer
// keeps what was not.
void write_all(any_writer to, std::span<const std::byte> from, deadline until = {});
std::size_t write_all(any_writer to, std::span<const std::byte> from, std::error_code& ec, deadline until = {});
inline void write_all(any_writer to, std::string_view text, deadline until = {}) {
  write_all(to, bytes_of(text), until);
}
inline std::size_t write_all(any_writer to, std::string_view text, std::error_code& ec, deadline until = {}) {
  return write_all(to, bytes_of(text), ec, until);
}

// Appends all that comes up to the end of the stream, and returns how much that is. More than `limit` is
// stream_errc::limit_exceeded. However it ends, also by an exception, all that was taken from the stream is in `into`:
// if the limit was exceeded, by one byte. Throws transfer_error, std::bad_alloc.
std::size_t read_to_end(any_reader from, std::string& into, std::size_t limit, deadline until = {});
std::size_t read_to_end(any_reader from, std::string& into, std::size_t limit, std::error_code& ec,
                        deadline until = {});
std::size_t read_to_end(any_reader from, std::vector<std::byte>& into, std::size_t limit, deadline until = {});
std::size_t read_to_end(any_reader from, std::vector<std::byte>& into, std::size_t limit, std::error_code& ec,
                        deadline until = {});
// The same into a new one; what was taken before a failure is lost with it.
[[nodiscard]] std::string read_to_end(any_reader from, std::size_t limit, deadline until = {});

// How copy() copies.
struct copy_options {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();  // no more than so many bytes; they are not an error
  std::size_t buffer_size = 16 * 1024;                              // at least 1
};

// From here to there, up to the end of the stream or the limit; returns how much was written, also if there is an
// error. If reading fails, all that was read has been written. If writing fails, or the caller is cancelled then, what
// was read and not written is gone: copy from a buffered_reader (buffered.hpp) keeps it. Throws transfer_error,
// std::bad_alloc; usage_error for a buffer without room.
std::uint64_t copy(any_reader from, any_writer to, const copy_options& how = {}, deadline until = {});
std::uint64_t copy(any_reader from, any_writer to, const copy_options& how, std::error_code& ec, deadline until = {});

}  // namespace ramie::inline v0
