// SPDX-License-Identifier: BSL-1.0
// Streams with a buffer: pieces of any size from readers and to writers that are called seldom.
//
// All or nothing: what a buffered_reader does not return it has not consumed, and what a buffered_writer could not
// write it keeps. So whatever ends a call – an error, a deadline, a cancellation – the call can be made again.
//
// Used by one fiber or thread at a time. What may wait is a cancellation point on every call.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ramie/detail/byte_buffer.hpp>
#include <ramie/source_location.hpp>
#include <ramie/stream.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {
class buffered_reader;
class buffered_writer;
}  // namespace ramie::inline v0

namespace ramie::io_internal {

using namespace runtime_internal;

// A base class, so that the stream is made before the buffer that refers to it; on the heap, so that it stays where it
// is.
template <class S>
struct stream_owner {
  explicit stream_owner(S&& s) : stream(std::make_unique<S>(std::move(s))) {}
  std::unique_ptr<S> stream;
};

// A temporary would be gone when the buffer that refers to it is used.
template <class T>
concept temporary = !std::is_lvalue_reference_v<T>;
template <class R>
concept temporary_reader =
    temporary<R> && !std::same_as<R, any_reader> && !std::same_as<R, buffered_reader> && reader<R>;
template <class W>
concept temporary_writer =
    temporary<W> && !std::same_as<W, any_writer> && !std::same_as<W, buffered_writer> && writer<W>;

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

class line_range;

// Reads ahead from a reader that it refers to; basic_buffered_reader owns one. A reader itself.
//
// The buffer has `capacity` bytes, at least 1, from the first read on. It grows for a line, a piece or a peek that
// needs it, which the caller limits, and returns to its size when that has been consumed.
class buffered_reader {
 public:
  // What the arguments of these names are if they are not given.
  static constexpr std::size_t usual_capacity = 8 * 1024;
  static constexpr std::size_t usual_line_limit = 64 * 1024;

  // Reads nothing yet. Not a cancellation point. Throws usage_error for no capacity.
  explicit buffered_reader(any_reader from, std::size_t capacity = usual_capacity);
  // For a temporary use basic_buffered_reader, which owns its reader.
  template <::ramie::io_internal::temporary_reader R>
  explicit buffered_reader(R&& from, std::size_t capacity = usual_capacity) = delete;
  buffered_reader(const buffered_reader&) = delete;
  buffered_reader& operator=(const buffered_reader&) = delete;

  // What has been read and not consumed. Valid until the next call that reads or consumes. Never waits.
  [[nodiscard]] std::span<const std::byte> buffered() const noexcept { return buffer_.content(); }
  // Consumes the first n of them. Consuming more than there are ends the program. Never waits.
  void consume(std::size_t n) noexcept;

  // Reads once, behind what is buffered. Returns how much has come; 0 is the end of the stream. Throws
  // std::system_error, std::bad_alloc.
  std::size_t fill(deadline until = {});
  std::size_t fill(std::error_code& ec, deadline until = {});

  // At least the next n bytes, without consuming them; less if the stream ends before, or fails. Throws
  // std::system_error, std::bad_alloc.
  [[nodiscard]] std::span<const std::byte> peek(std::size_t n, deadline until = {});
  [[nodiscard]] std::span<const std::byte> peek(std::size_t n, std::error_code& ec, deadline until = {});

  // Some bytes: what is buffered if there is anything, else of one read, which goes past the buffer if it is larger.
  // 0 is the end of the stream. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, deadline until = {});
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& ec, deadline until = {});

  // Fills `into`, or consumes nothing. If the stream ends before: stream_errc::end_of_stream. The buffer grows to the
  // size of `into` for that. Throws std::system_error, std::bad_alloc.
  void read_exactly(std::span<std::byte> into, deadline until = {});
  void read_exactly(std::span<std::byte> into, std::error_code& ec, deadline until = {});

  // The next line, without its end, which is \n or \r\n; the last one may have none. False: there is none; `line` is
  // then empty. A line of more than `limit` bytes is stream_errc::limit_exceeded, and nothing of it is consumed. If it
  // fails, `line` is as it was. A cancellation point. Throws std::system_error, std::bad_alloc.
  bool read_line(std::string& line, std::size_t limit = usual_line_limit, deadline until = {});
  bool read_line(std::string& line, std::size_t limit, std::error_code& ec, deadline until = {});

  // The same up to a delimiter of one or more bytes, which is consumed, too. What is left at the end of the stream
  // without one is stream_errc::end_of_stream, and stays. Throws usage_error for an empty delimiter.
  bool read_until(std::string& piece, std::string_view delimiter, std::size_t limit, deadline until = {});
  bool read_until(std::string& piece, std::string_view delimiter, std::size_t limit, std::error_code& ec,
                  deadline until = {});

  // The lines from here on: for (const std::string& line : r.lines()). The deadline is for all of them. Each step is a
  // read_line that throws.
  [[nodiscard]] line_range lines(std::size_t limit = usual_line_limit, deadline until = {}) noexcept;

 protected:
  buffered_reader(buffered_reader&&) noexcept = default;  // of an owner, who keeps the reader where it is
  buffered_reader& operator=(buffered_reader&&) noexcept = default;

 private:
  std::size_t fill_with(std::size_t at_most, std::error_code& ec, deadline until);

  any_reader from_;
  ::ramie::io_internal::byte_buffer buffer_;
};

// The same, and owns the reader. Moves with it; what has been moved from can only be destroyed or assigned to.
template <reader R>
class basic_buffered_reader : private ::ramie::io_internal::stream_owner<R>, public buffered_reader {
 public:
  // Throws usage_error for no capacity, std::bad_alloc, what moving R throws.
  explicit basic_buffered_reader(R source, std::size_t capacity = usual_capacity)
      : ::ramie::io_internal::stream_owner<R>(std::move(source)), buffered_reader(*this->stream, capacity) {}
  basic_buffered_reader(basic_buffered_reader&&) noexcept = default;
  basic_buffered_reader& operator=(basic_buffered_reader&&) noexcept = default;

  // The reader itself: what is buffered is missing from it.
  [[nodiscard]] R& source() noexcept { return *this->stream; }
};

// Lines as an input range.
class line_range {
 public:
  class iterator {
   public:
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    [[nodiscard]] std::string& operator*() const noexcept { return of_->line_; }
    iterator& operator++() {
      if (!of_->next()) of_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept { return i.of_ == nullptr; }

   private:
    friend class line_range;
    explicit iterator(line_range* of) : of_(of) { ++*this; }
    line_range* of_ = nullptr;
  };

  line_range(buffered_reader& from, std::size_t limit, deadline until) noexcept
      : from_(from), limit_(limit), until_(until) {}
  // Reads the first line. A cancellation point, as each step is; throws what read_line() throws.
  [[nodiscard]] iterator begin() { return iterator(this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  bool next() { return from_.read_line(line_, limit_, until_); }

  buffered_reader& from_;
  std::size_t limit_;
  deadline until_;
  std::string line_;
};

inline line_range buffered_reader::lines(std::size_t limit, deadline until) noexcept {
  return {*this, limit, until};
}

// The copy that loses nothing: what could not be written stays in the buffered_reader. The buffer is its own;
// `how.buffer_size` is not used. Otherwise like copy() of stream.hpp: a cancellation point, throws transfer_error.
std::uint64_t copy(buffered_reader& from, any_writer to, const copy_options& how = {}, deadline until = {});
std::uint64_t copy(buffered_reader& from, any_writer to, const copy_options& how, std::error_code& ec,
                   deadline until = {});

// Collects what is to be written by a writer that it refers to; basic_buffered_writer owns one. A writer itself.
//
// Its destructor neither writes nor waits nor throws, because it could not report a failure: call flush(). What is
// pending in the destructor is dropped, and reported (report_kind::lost_output, with the place where the writer was
// made) unless that was to be expected: an exception is under way, the last flush failed, or discard() was called.
class buffered_writer {
 public:
  // Of the buffer, if none is given.
  static constexpr std::size_t usual_capacity = 8 * 1024;

  // Not a cancellation point. Throws usage_error for no capacity.
  explicit buffered_writer(any_writer to, std::size_t capacity = usual_capacity,
                           source_location where = source_location::current());
  // For a temporary use basic_buffered_writer, which owns its writer.
  template <::ramie::io_internal::temporary_writer W>
  explicit buffered_writer(W&& to, std::size_t capacity = usual_capacity,
                           source_location where = source_location::current()) = delete;
  ~buffered_writer() {
    if (buffer_.size() != 0) [[unlikely]]
      left_behind();
  }
  buffered_writer(const buffered_writer&) = delete;
  buffered_writer& operator=(const buffered_writer&) = delete;

  // Takes all of it, in every case but std::bad_alloc, and writes if it is more than fits. So a failure is one of
  // writing what had been taken, now or earlier: it stays, and flush() tries again. Don't repeat the write. Throws
  // std::system_error; std::bad_alloc, and then nothing was taken.
  void write(std::span<const std::byte> data, deadline until = {});
  void write(std::span<const std::byte> data, std::error_code& ec, deadline until = {});
  void write(std::string_view text, deadline until = {}) { write(bytes_of(text), until); }
  void write(std::string_view text, std::error_code& ec, deadline until = {}) { write(bytes_of(text), ec, until); }

  // As every writer does it: takes some, or fails and takes nothing. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> data, deadline until = {});
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> data, std::error_code& ec, deadline until = {});

  // Writes all that was taken. If it fails, what was not written stays. A cancellation point. Throws std::system_error.
  void flush(deadline until = {});
  void flush(std::error_code& ec, deadline until = {});

  // What was taken and not written. Never waits.
  [[nodiscard]] std::span<const std::byte> pending() const noexcept { return buffer_.content(); }
  // Drops it. Never waits.
  void discard() noexcept;

 protected:
  buffered_writer(buffered_writer&&) noexcept = default;  // of an owner, who keeps the writer where it is
  buffered_writer& operator=(buffered_writer&& other) noexcept;

 private:
  void left_behind() noexcept;

  any_writer to_;
  ::ramie::io_internal::byte_buffer buffer_;
  bool failed_ = false;  // the last flush
  int exceptions_;       // under way when it was made
  source_location where_;
};

// The same, and owns the writer. Moves with it; what has been moved from can only be destroyed or assigned to. What is
// pending in one that is assigned to is dropped, and reported, as by the destructor.
template <writer W>
class basic_buffered_writer : private ::ramie::io_internal::stream_owner<W>, public buffered_writer {
 public:
  // Throws usage_error for no capacity, std::bad_alloc, what moving W throws.
  explicit basic_buffered_writer(W sink, std::size_t capacity = usual_capacity,
                                 source_location where = source_location::current())
      : ::ramie::io_internal::stream_owner<W>(std::move(sink)), buffered_writer(*this->stream, capacity, where) {}
  basic_buffered_writer(basic_buffered_writer&&) noexcept = default;
  basic_buffered_writer& operator=(basic_buffered_writer&&) noexcept = default;

  // The writer itself: what is pending has not reached it.
  [[nodiscard]] W& sink() noexcept { return *this->stream; }
};

}  // namespace ramie::inline v0
