// SPDX-License-Identifier: BSL-1.0
// Signals of the operating system, which fibers and threads wait for.
//
//   ramie::signals stop{SIGINT, SIGTERM};
//   const int which = stop.wait();
//
// While an object for a signal lives, that signal only ends waits: its default action, or the handler that was
// installed before, is disabled. When the last object for it is destroyed, what was in force before is restored, unless
// the program has meanwhile installed another handler. The default action of SIGPIPE, however, is not restored in a
// program that has used files, pipes or processes of ramie's (pipe.hpp).
#pragma once

#include <concepts>
#include <csignal>  // SIGTERM and the like
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ramie/detail/ready_source.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class signal_watch;
template <class F>
class signal_case;
}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// Every object for a signal gets it. In one object, several signals with the same number that nobody has waited for yet
// count as one, as they do in the operating system; signals with different numbers are kept apart. Signals from before
// the object was made are not seen.
//
// No thread's signal mask is changed: a signal that the program has blocked in all threads is not delivered, and not
// seen.
class signals {
 public:
  // Throws usage_error for a number that can't be waited for (SIGKILL, SIGSTOP, faults such as SIGSEGV, not a signal)
  // and for an empty list; std::system_error, std::bad_alloc. Not a cancellation point.
  signals(std::initializer_list<int> numbers);
  // Nobody may wait or select any more. Not a cancellation point.
  ~signals();
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  // Waits for one of the signals and returns its number. Any number of fibers and threads may wait: each signal goes to
  // one of them. A cancellation point; a cancelled wait loses no signal. A wait that can't be begun is a
  // std::system_error; the second form returns 0 with it.
  int wait();
  int wait(std::error_code& ec);
  // The same, no longer than that. Nothing: the deadline has come without a signal, which is no error; or, in the
  // second form, an error. If the deadline has passed already they still look.
  [[nodiscard]] std::optional<int> wait(deadline until);
  [[nodiscard]] std::optional<int> wait(std::error_code& ec, deadline until);

 private:
  template <class F>
  friend class ::ramie::io_internal::signal_case;
  std::unique_ptr<::ramie::io_internal::signal_watch> it_;
};

}  // namespace ramie::inline v0

namespace ramie::io_internal {

[[nodiscard]] ready_source signal_source(signal_watch& from, int& number) noexcept;

template <class F>
class signal_case {
 public:
  static_assert(std::invocable<F&, int>, "ramie: the handler of on_signal takes the number of the signal, an int.");

  template <class G>
  signal_case(signals& from, G&& f) : from_(std::addressof(from)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] ready_source source() noexcept { return signal_source(*from_->it_, number_); }
  void happen() { std::invoke(handler_, number_); }

 private:
  signals* from_;
  int number_ = 0;
  F handler_;
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// A case of select (select.hpp): one of the signals has come. f(int) with its number. The signal is taken only if this
// case wins: otherwise it stays for whoever waits next. The object must outlive the select. select throws
// std::system_error if the machine can't wait for it.
template <class F>
[[nodiscard]] auto on_signal(signals& from, F&& f) {
  return ::ramie::io_internal::signal_case<std::decay_t<F>>(from, std::forward<F>(f));
}

}  // namespace ramie::inline v0
