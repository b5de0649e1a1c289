// SPDX-License-Identifier: BSL-1.0
// Child processes.
//
//   auto made = ramie::process_builder("gcc").args({"-c", "main.c"}).output();
//   if (!made.status.success()) std::puts(made.err.c_str());
//
// A thread of the blocking pool starts them by posix_spawn, and a pidfd tells when they end (Linux 5.4; without pidfds
// every start is std::errc::function_not_supported). A child inherits its three standard descriptors and those that
// other code of the program has made inheritable; every descriptor of ramie's is closed in it. It starts with no signal
// blocked and with the default action of SIGPIPE.
//
// In a program that ignores SIGCHLD, or that reaps these children itself by ::wait(), their statuses are lost: wait()
// is std::errc::no_child_process then.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/detail/ready_source.hpp>
#include <ramie/pipe.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;
class child;
struct spawn_plan;
template <class F>
class exit_case;
}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// How a process ended: by itself, with a code, or by a signal.
class exit_status {
 public:
  // As it would be of a process that ended by itself with that code, or by that signal: for tests and comparisons.
  [[nodiscard]] static exit_status exited(int code) noexcept { return exit_status(code, 0); }
  [[nodiscard]] static exit_status killed(int signal) noexcept { return exit_status(0, signal); }
  // No success, no code, no signal: returned beside an error_code that says why.
  [[nodiscard]] static exit_status unknown() noexcept { return exit_status(-1, 0); }

  // Whether it ended by itself with code 0.
  [[nodiscard]] bool success() const noexcept { return code_ == 0 && signal_ == 0; }
  // The exit code, 0 to 255; nothing if a signal ended it.
  [[nodiscard]] std::optional<int> code() const noexcept {
    return signal_ == 0 && code_ >= 0 ? std::optional<int>(code_) : std::nullopt;
  }
  // The signal that ended it, or nothing.
  [[nodiscard]] std::optional<int> signal() const noexcept {
    return signal_ != 0 ? std::optional<int>(signal_) : std::nullopt;
  }
  friend bool operator==(const exit_status&, const exit_status&) noexcept = default;

 private:
  exit_status(int code, int signal) noexcept : code_(code), signal_(signal) {}
  int code_;
  int signal_;
};
// "exit code 1", "signal 9", "unknown". Throws std::bad_alloc.
[[nodiscard]] std::string to_string(exit_status status);

// A child process. Movable. The destructor ends a child that has been neither waited for nor detached: it closes the
// pipes, sends SIGKILL, waits for the end, also in a cancelled fiber, and reaps it. So no child outlives its scope by
// accident, and none stays a zombie.
//
// Any number of fibers and threads may wait for one and send it signals at once; the object must not be moved or
// destroyed meanwhile. Errors are thrown as std::system_error, or reported in the error_code, also if a wait can't be
// begun (std::errc::not_enough_memory). A process that has been moved from is like one that was default constructed.
class process {
 public:
  process() noexcept;  // no child: wait and kill are std::errc::no_child_process, the pipes are not open
  process(process&&) noexcept;
  process& operator=(process&&) noexcept;
  ~process();

  // Whether there is a child behind this object, running, ended or detached: not in one that was default constructed or
  // moved from. Any fiber or thread. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return it_ != nullptr; }
  // Its process id; 0 if not valid(). Another process may get the same id once this one has been waited for. Any fiber
  // or thread. Not a cancellation point.
  [[nodiscard]] int id() const noexcept;
  // Its pidfd, or -1 if there is none. For system calls that ramie has no function for; don't close it. Any fiber or
  // thread. Not a cancellation point.
  [[nodiscard]] int native_handle() const noexcept;
  // Our ends of the pipes that it was started with; the others are not open. The child finds the end of its input when
  // that is closed, or moved away and destroyed. Not cancellation points.
  [[nodiscard]] pipe_writer& standard_input() noexcept;
  [[nodiscard]] pipe_reader& standard_output() noexcept;
  [[nodiscard]] pipe_reader& standard_error() noexcept;

  // Waits for its end and reaps it; later calls return the same status. First close or feed its input and read its
  // pipes, if it might wait for that. A detached child is std::errc::no_child_process, at once. With an error the
  // second form returns exit_status::unknown(). A cancellation point: a cancelled wait does not end the child.
  exit_status wait();
  exit_status wait(std::error_code& ec);
  // The same, no longer than that. Nothing: the deadline has come and it still runs, which is no error; or, in the
  // second form, an error.
  [[nodiscard]] std::optional<exit_status> wait(deadline until);
  [[nodiscard]] std::optional<exit_status> wait(std::error_code& ec, deadline until);
  // Its status if it has ended, else nothing. Never waits; not a cancellation point. Throws std::system_error.
  [[nodiscard]] std::optional<exit_status> try_wait();
  [[nodiscard]] std::optional<exit_status> try_wait(std::error_code& ec) noexcept;

  // Sends a signal, which never reaches another process: a child that has been waited for is
  // std::errc::no_such_process. Never waits; not a cancellation point. Throws std::system_error.
  void kill(int signal);
  void kill(int signal, std::error_code& ec) noexcept;

  // Sends SIGTERM and waits until then; a child that has not ended is sent SIGKILL and waited for. A cancellation point
  // before SIGKILL is sent. Throws std::system_error; with an error the second form returns exit_status::unknown().
  exit_status terminate_then_kill(deadline grace);
  exit_status terminate_then_kill(std::error_code& ec, deadline grace);

  // Lets the child go on without this object, and closes the pipes. A thread of ramie's reaps it when it ends. Not a
  // cancellation point. Throws std::system_error or std::bad_alloc if that thread can't be had: nothing has changed
  // then.
  void detach();

 private:
  friend class process_builder;
  template <class F>
  friend class ::ramie::io_internal::exit_case;
  std::unique_ptr<::ramie::io_internal::child> it_;
  pipe_writer input_;
  pipe_reader output_, error_;
};

}  // namespace ramie::inline v0

namespace ramie::io_internal {

[[nodiscard]] ready_source exit_source(child* of, exit_status& status) noexcept;

template <class F>
class exit_case {
 public:
  static_assert(std::invocable<F&, exit_status>, "ramie: the handler of on_exit takes an exit_status.");

  template <class G>
  exit_case(const process& of, G&& f) : of_(std::addressof(of)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] ready_source source() noexcept { return exit_source(of_->it_.get(), status_); }
  void happen() { std::invoke(handler_, status_); }

 private:
  const process* of_;
  exit_status status_ = exit_status::unknown();
  F handler_;
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// A case of select (select.hpp): the process has ended. f(exit_status). Nothing is taken: wait() says the same, and so
// do other selects. One that has no child never happens; select throws std::system_error for one that was detached or
// that somebody else has reaped (std::errc::no_child_process), and if the machine can't wait for it. It must outlive
// the select, and must not be moved meanwhile.
template <class F>
[[nodiscard]] auto on_exit(const process& of, F&& f) {
  return ::ramie::io_internal::exit_case<std::decay_t<F>>(of, std::forward<F>(f));
}
template <class F>
auto on_exit(const process&& of, F&& f) = delete;  // it must outlive the select

// What output() returns: how the child ended, and what it wrote.
struct process_output {
  exit_status status;
  std::string out, err;
};

// What one of a child's three standard descriptors is.
class stdio {
 public:
  [[nodiscard]] static stdio inherit() noexcept { return stdio(kind::inherit, -1); }  // the same as ours
  [[nodiscard]] static stdio null() noexcept { return stdio(kind::null, -1); }        // /dev/null
  [[nodiscard]] static stdio pipe() noexcept { return stdio(kind::pipe, -1); }        // a pipe whose other end we have
  // A copy of that descriptor, which must be open when the child is started and is not closed here.
  [[nodiscard]] static stdio descriptor(int number) noexcept { return stdio(kind::descriptor, number); }

  // Which of these it is, and the descriptor's number, or -1.
  enum class kind : std::uint8_t { inherit, null, pipe, descriptor };
  [[nodiscard]] kind how() const noexcept { return kind_; }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  stdio(kind how, int number) noexcept : kind_(how), number_(number) {}
  kind kind_;
  int number_;
};

// Which program to start, and how. May be used several times; a copy is independent. Used by one fiber or thread at a
// time. A builder that has been moved from can only be destroyed or assigned to. The setters are no cancellation points
// and throw std::bad_alloc.
class process_builder {
 public:
  // The output_limit unless one is set.
  static constexpr std::size_t usual_output_limit = std::size_t{64} << 20;

  // A program with a "/" in it is a path, relative to the working directory of the child; another name is looked up in
  // the PATH of our own environment.
  explicit process_builder(std::filesystem::path program);
  process_builder(const process_builder& other);
  process_builder& operator=(const process_builder& other);
  process_builder(process_builder&&) noexcept;
  process_builder& operator=(process_builder&&) noexcept;
  ~process_builder();

  // Adds an argument, behind the program's name and those added before; args: several.
  process_builder& arg(std::string argument);
  process_builder& args(std::initializer_list<std::string> arguments);
  process_builder& args(const std::vector<std::string>& arguments);

  // The child's environment is ours at the moment when it is started, changed by these calls in their order. (setenv
  // and putenv at the same time are a data race, as always.)
  process_builder& environment(std::string name, std::string value);
  process_builder& remove_environment(std::string name);
  process_builder& clear_environment();

  // Where the child starts; else in our own working directory at that moment. It must exist when the child is started.
  process_builder& working_directory(std::filesystem::path path);

  // What the child's descriptors 0, 1 and 2 are. Those that were not set: see spawn, output and status.
  process_builder& standard_input(stdio where);
  process_builder& standard_output(stdio where);
  process_builder& standard_error(stdio where);

  // How much output() reads of the child's output and of its error output, each.
  process_builder& output_limit(std::size_t bytes) noexcept;

  // Starts the program; standard descriptors that were not set are inherited. A program that does not exist is
  // std::errc::no_such_file_or_directory, here. A cancellation point; a cancelled call ends a child that it has
  // started. Throws std::system_error, std::bad_alloc.
  [[nodiscard]] process spawn() const;
  [[nodiscard]] process spawn(std::error_code& ec) const;

  // Starts the program, reads all that it writes, and waits for its end. Standard descriptors that were not set are: no
  // input, output and error output are read. Returns when the child has ended and every process that inherited its
  // output has closed it. The child is killed when the deadline has passed, when the caller is cancelled, and when it
  // writes more than the limit, which is stream_errc::limit_exceeded (stream.hpp). With an error the second form
  // returns what came before it, and exit_status::unknown(). A cancellation point. Throws std::system_error,
  // std::bad_alloc.
  [[nodiscard]] process_output output(deadline until = {}) const;
  [[nodiscard]] process_output output(std::error_code& ec, deadline until = {}) const;
  // The same with input for the child, which need not read all of it. Throws usage_error if standard_input was set to
  // anything but a pipe.
  [[nodiscard]] process_output output(std::string_view input, deadline until = {}) const;
  [[nodiscard]] process_output output(std::string_view input, std::error_code& ec, deadline until = {}) const;

  // Starts the program and waits for its end; standard descriptors that were not set are inherited. A cancellation
  // point; the child is killed when the deadline has passed or the caller is cancelled, as by output(). Throws what
  // spawn() and process::wait() throw.
  exit_status status(deadline until = {}) const;
  exit_status status(std::error_code& ec, deadline until = {}) const;

 private:
  // The arguments are for those standard descriptors that were not set.
  [[nodiscard]] process spawn_with(stdio in, stdio out, stdio err, std::error_code& ec) const;
  [[nodiscard]] process_output run_with(stdio in, std::string_view input, std::error_code& ec, deadline until) const;

  std::unique_ptr<::ramie::io_internal::spawn_plan> plan_;
};

}  // namespace ramie::inline v0
