// SPDX-License-Identifier: BSL-1.0
// Signals of the system, waited for like anything else.
//
//   ramie::signals stop{SIGINT, SIGTERM};
//   const int which = stop.wait();
//
// While an object for a signal lives, that signal does nothing but tell those who wait: its default action, and a
// handler that was there before, are out of force. When the last object goes, what was there before is back, unless the
// program has meanwhile installed something else. The default action of SIGPIPE, however, does not come back if there
// are pipes of ramie's, or were (pipe.hpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <system_error>

#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {
class signal_watch;
}

namespace ramie::inline v0 {

// Several objects for one signal are all told. To one object, signals with the same number that came before somebody
// waited for them count as one, as they do in the system; signals with different numbers each count. Those that came
// before it was made don't.
//
// No thread's mask is touched: a signal that the program has blocked in all threads is not delivered, and not seen.
class signals {
 public:
  // Throws usage_error for what can't be waited for (SIGKILL, SIGSTOP, faults such as SIGSEGV, no signal at all) and
  // for an empty list; std::system_error, std::bad_alloc. Not a cancellation point.
  signals(std::initializer_list<int> numbers);
  // Nobody waits any more. Not a cancellation point.
  ~signals();
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  // Waits for one of the signals and returns its number. Any number of fibers and threads may wait: each signal goes to
  // one of them. A cancellation point: no signal is lost by it. A deadline that has come is std::errc::timed_out; that
  // the machine can't even begin to wait is an error, too. The second form returns 0 with an error.
  int wait(deadline until = {});
  int wait(std::error_code& ec, deadline until = {});

 private:
  std::unique_ptr<::ramie::detail::signal_watch> it_;
};

}  // namespace ramie::inline v0
