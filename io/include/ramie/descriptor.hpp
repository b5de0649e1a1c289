// SPDX-License-Identifier: BSL-1.0
// Waiting for a descriptor that belongs to somebody else: of libpq, curl, hiredis, or any library that works on
// descriptors that don't block and wants to be called when one is ready.
//
//   while (PQconsumeInput(conn) && PQisBusy(conn)) {
//     if (ramie::wait_readable(PQsocket(conn), 5s) == ramie::readiness::timed_out) …
//   }
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/readiness_source.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// What a wait for a descriptor has found.
enum class readiness : std::uint8_t {
  ready,      // to read: data, a connection, the end of the stream or an error can be fetched; to write: there is room
  hung_up,    // the other end is gone or the descriptor has failed (POLLHUP, POLLERR), and there is nothing to read
  timed_out,  // the deadline has come, and neither holds
  failed,     // it can't be waited for; only of the forms with an error_code, which says why
};
// In words, for messages: "ready", "hung up" ….
[[nodiscard]] const char* to_string(readiness what) noexcept;

// Wait until a read, or a write, of the descriptor would not block. Neither `ready` nor `hung_up` blocks the next call;
// as with poll(2) somebody else may have come first by then, so the descriptor should be one that does not block. If
// the deadline has passed already they still look once. A regular file is always ready.
//
// The descriptor stays its owner's: it is not closed, and its flags (O_NONBLOCK) are not touched. Any number of fibers
// of any runtime and of plain threads may wait for one descriptor at once: all whose wait is over are woken.
//
// Its owner must not close it while somebody waits: end the wait first, by cancelling it, or by shutdown(2) of a
// socket. Else the wait ends with `hung_up`, with bad_file_descriptor, when another descriptor of the same number is
// ready, or not before its deadline or cancellation; until then the file may stay open. Nothing else comes to harm.
//
// Cancellation points on every call. Throw std::system_error: bad_file_descriptor if there is no such descriptor; what
// the machine refuses (too_many_files_open, not_enough_memory); or set `ec`, which is cleared if all is well.
[[nodiscard]] readiness wait_readable(int fd, deadline until = {});
[[nodiscard]] readiness wait_readable(int fd, std::error_code& ec, deadline until = {});
[[nodiscard]] readiness wait_writable(int fd, deadline until = {});
[[nodiscard]] readiness wait_writable(int fd, std::error_code& ec, deadline until = {});

}  // namespace ramie::inline v0

namespace ramie::io_internal {

// What the wait of a case that has won has found.
[[nodiscard]] readiness readiness_found(const runtime_internal::readiness_wait& by) noexcept;
[[nodiscard]] runtime_internal::readiness_wait wait_to_read(int fd) noexcept;
[[nodiscard]] runtime_internal::readiness_wait wait_to_write(int fd) noexcept;
// For the fiber or plain thread that calls.
[[nodiscard]] runtime_internal::ready_source readiness_source(runtime_internal::readiness_wait& wait) noexcept;

template <class F>
class readiness_case {
 public:
  static_assert(std::invocable<F&, readiness> || std::invocable<F&>,
                "ramie: the handler of on_readable and on_writable takes a ramie::readiness, or nothing.");

  template <class G>
  readiness_case(const runtime_internal::readiness_wait& wait, G&& f) : wait_(wait), handler_(std::forward<G>(f)) {}
  [[nodiscard]] runtime_internal::ready_source source() noexcept { return readiness_source(wait_); }
  void happen() {
    if constexpr (std::invocable<F&, readiness>) {
      std::invoke(handler_, readiness_found(wait_));
    } else {
      std::invoke(handler_);
    }
  }

 private:
  runtime_internal::readiness_wait wait_;
  F handler_;
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// Cases of select: a read, or a write, of the descriptor would not block. f(readiness), which is `ready` or `hung_up`,
// or f(). What was said of wait_readable and wait_writable holds here, too; a case that is not chosen leaves nothing
// behind. On a plain thread a select that has to wait lets a thread of the library wait for the descriptor, which exists
// as long as somebody needs it, and Linux allows 500 such selects on one descriptor at once. Throws std::system_error if
// the descriptor can't be waited for.
template <class F>
[[nodiscard]] auto on_readable(int fd, F&& f) {
  return ::ramie::io_internal::readiness_case<std::decay_t<F>>(::ramie::io_internal::wait_to_read(fd),
                                                               std::forward<F>(f));
}
template <class F>
[[nodiscard]] auto on_writable(int fd, F&& f) {
  return ::ramie::io_internal::readiness_case<std::decay_t<F>>(::ramie::io_internal::wait_to_write(fd),
                                                               std::forward<F>(f));
}

}  // namespace ramie::inline v0
