// SPDX-License-Identifier: BSL-1.0
// Child processes.
//
//   auto made = ramie::process_builder("gcc").args({"-c", "main.c"}).output();
//   if (!made.status.success()) std::puts(made.err.c_str());
//
// They are started by posix_spawn on a thread of the blocking pool and watched by a pidfd (Linux 5.4; without it every
// start is std::errc::function_not_supported). A child gets its three standard descriptors and those that other code of
// the program has left to be inherited: every descriptor of ramie's is closed in it. It begins with no signal blocked
// and with SIGPIPE ending it.
//
// A program that ignores SIGCHLD, or reaps children that are not its own with wait(), takes their statuses away:
// wait() is std::errc::no_child_process then.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <ramie/pipe.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {
class child;
struct spawn_plan;
}  // namespace ramie::detail

namespace ramie::inline v0 {

// How a process ended: by itself, with a code, or by a signal.
class exit_status {
 public:
  [[nodiscard]] static exit_status exited(int code) noexcept { return exit_status(code, 0); }
  [[nodiscard]] static exit_status killed(int signal) noexcept { return exit_status(0, signal); }
  // No success, no code, no signal: what comes with an error_code that says why.
  [[nodiscard]] static exit_status unknown() noexcept { return exit_status(-1, 0); }

  [[nodiscard]] bool success() const noexcept { return code_ == 0 && signal_ == 0; }
  // What it returned, 0 to 255; nothing if a signal ended it.
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
// "exit code 1", "signal 9", "unknown".
[[nodiscard]] std::string to_string(exit_status status);

// A child process. A handle to move about. Its destructor ends the child: closes the pipes, sends SIGKILL, waits for
// its end, also in a cancelled fiber, and reaps it; unless it has been waited for or detached. So no child outlives its
// scope by accident, and none stays a zombie.
//
// Any number of fibers and threads may wait for one and send it signals at once; it must not be moved or destroyed
// meanwhile. Errors are thrown as std::system_error, or reported in the error_code, also that the machine can't even
// begin to wait (std::errc::not_enough_memory). What has been moved from is as default made.
class process {
 public:
  process() noexcept;  // none: wait and kill are std::errc::no_child_process, the pipes are not open
  process(process&&) noexcept;
  process& operator=(process&&) noexcept;
  ~process();

  // Its number. Another process may get it once this one has been waited for.
  [[nodiscard]] int id() const noexcept;
  // Our ends of the pipes it was started with; others are not open. Close the input, or move it away and drop it, and
  // the child finds its end.
  [[nodiscard]] pipe_writer& standard_input() noexcept;
  [[nodiscard]] pipe_reader& standard_output() noexcept;
  [[nodiscard]] pipe_reader& standard_error() noexcept;

  // Waits for its end and reaps it; later calls say the same again. Close or feed its input first, and read its pipes,
  // if it might wait for that. A detached one is std::errc::no_child_process, at once. With an error the second form
  // returns exit_status::unknown(). A cancellation point: the child goes on.
  exit_status wait(deadline until = {});
  exit_status wait(std::error_code& ec, deadline until = {});
  // Its status if it has ended. Not a cancellation point.
  [[nodiscard]] std::optional<exit_status> try_wait();

  // Sends a signal; it never reaches another process. One that has been waited for: std::errc::no_such_process. Not
  // cancellation points.
  void kill(int signal);
  void kill(int signal, std::error_code& ec) noexcept;

  // Sends SIGTERM, waits for so long, then sends SIGKILL and waits for its end. A cancellation point while it waits for
  // the first of them.
  exit_status terminate_then_kill(std::chrono::nanoseconds grace);

  // It goes on without us; its pipes are closed. A thread of ramie's reaps it when it ends. Not a cancellation point.
  // Throws std::system_error or std::bad_alloc if there can't be one: nothing has changed then.
  void detach();

 private:
  friend class process_builder;
  std::unique_ptr<::ramie::detail::child> it_;
  pipe_writer input_;
  pipe_reader output_, error_;
};

// What a process wrote.
struct process_output {
  exit_status status;
  std::string out, err;
};

// Where a child's standard descriptor leads.
class stdio {
 public:
  [[nodiscard]] static stdio inherit() noexcept { return stdio(kind::inherit, -1); }  // where ours does
  [[nodiscard]] static stdio null() noexcept { return stdio(kind::null, -1); }        // /dev/null
  [[nodiscard]] static stdio pipe() noexcept { return stdio(kind::pipe, -1); }        // to us
  // Where that descriptor of ours leads when the child is started; it must be open then, and stays ours.
  [[nodiscard]] static stdio descriptor(int number) noexcept { return stdio(kind::descriptor, number); }

  enum class kind : std::uint8_t { inherit, null, pipe, descriptor };
  [[nodiscard]] kind how() const noexcept { return kind_; }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  stdio(kind how, int number) noexcept : kind_(how), number_(number) {}
  kind kind_;
  int number_;
};

// What to start, and how. Can be used again; a copy is another one. Used by one fiber or thread at a time. What has
// been moved from can only be destroyed or assigned to. The setters are no cancellation points and throw
// std::bad_alloc.
class process_builder {
 public:
  static constexpr std::size_t usual_output_limit = std::size_t{64} << 20;

  // A program with a "/" in it is a path, from the working directory of the child; another name is looked up in PATH,
  // in that of our own environment.
  explicit process_builder(std::filesystem::path program);
  process_builder(const process_builder& other);
  process_builder& operator=(const process_builder& other);
  process_builder(process_builder&&) noexcept;
  process_builder& operator=(process_builder&&) noexcept;
  ~process_builder();

  process_builder& arg(std::string argument);
  process_builder& args(std::initializer_list<std::string> arguments);
  process_builder& args(const std::vector<std::string>& arguments);

  // The child's environment is ours at the moment it is started, and what is said here, in order. (setenv and putenv
  // meanwhile are a race, as always.)
  process_builder& environment(std::string name, std::string value);
  process_builder& remove_environment(std::string name);
  process_builder& clear_environment();

  process_builder& working_directory(std::filesystem::path path);

  process_builder& standard_input(stdio where);
  process_builder& standard_output(stdio where);
  process_builder& standard_error(stdio where);

  // How much output() reads of each of the two.
  process_builder& output_limit(std::size_t bytes) noexcept;

  // Starts it; what was not said of the standard descriptors is inherited. A program that is not there is
  // std::errc::no_such_file_or_directory, here. A cancellation point; a child that was started nevertheless is ended.
  [[nodiscard]] process spawn() const;
  [[nodiscard]] process spawn(std::error_code& ec) const;

  // Starts it, reads all that it writes, and waits for its end. What was not said is: no input, output and error read.
  // Ends when it and all who inherited its output are through with that. With a deadline that has come, or a
  // cancellation, the child is killed; and so it is if it writes more than the limit, which is
  // stream_errc::limit_exceeded (stream.hpp). With an error the second form returns what came before it, and
  // exit_status::unknown(). A cancellation point.
  [[nodiscard]] process_output output(deadline until = {}) const;
  [[nodiscard]] process_output output(std::error_code& ec, deadline until = {}) const;
  // The same, with something to read for it. It need not read all of it. Throws usage_error if its standard input was
  // said to be no pipe.
  [[nodiscard]] process_output output(std::string_view input, deadline until = {}) const;
  [[nodiscard]] process_output output(std::string_view input, std::error_code& ec, deadline until = {}) const;

  // Starts it, nothing said inherited, and waits for its end. A cancellation point, as output().
  exit_status status(deadline until = {}) const;
  exit_status status(std::error_code& ec, deadline until = {}) const;

 private:
  // With what holds of the standard descriptors that nothing was said about.
  [[nodiscard]] process spawn_with(stdio in, stdio out, stdio err, std::error_code& ec) const;
  [[nodiscard]] process_output run_with(stdio in, std::string_view input, std::error_code& ec, deadline until) const;

  std::unique_ptr<::ramie::detail::spawn_plan> plan_;
};

}  // namespace ramie::inline v0
