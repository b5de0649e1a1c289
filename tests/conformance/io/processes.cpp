// SPDX-License-Identifier: BSL-1.0
// Child processes and pipes: what they say, how they end, what they leave.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <ramie/ramie.hpp>
#include <support/cancelling.hpp>
#include <support/child.hpp>
#include <support/each_mechanism.hpp>
#include <support/processes.hpp>

namespace conformance_processes {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::exit_status;
using ramie::process;
using ramie::process_builder;
using ramie::stdio;
using namespace test;

void wait_ready(process& p) {
  std::byte text[6];
  (void)p.standard_output().read_some(text);
}
// Only looks: a zombie must not be reaped by the test.
bool is_gone(int id) {
  siginfo_t info;
  return ::waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}

TEST_CASE("how a child ended is told", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    EXPECT(found, process_builder("true").status() == exit_status::exited(0));
    EXPECT(found, process_builder("false").status() == exit_status::exited(1));
    const auto seven = shell("exit 7").status();
    EXPECT(found, !seven.success(), seven.code() == 7, !seven.signal(), to_string(seven) == "exit code 7");
    const auto killed = shell("kill -9 $$").status();
    EXPECT(found, !killed.success(), !killed.code(), killed.signal() == SIGKILL, to_string(killed) == "signal 9");
    process p = shell("exit 3").spawn();
    const int id = p.id();
    EXPECT(found, id > 0, p.wait() == exit_status::exited(3), is_gone(id));
    EXPECT(found, p.wait() == exit_status::exited(3), p.try_wait() == exit_status::exited(3));  // and again
    std::error_code ec;
    p.kill(SIGTERM, ec);
    EXPECT(found, ec == std::errc::no_such_process);
    process none;
    EXPECT(found, error_of([&] { (void)none.wait(); }) == std::errc::no_child_process);
    EXPECT(found, error_of([&] { none.kill(SIGTERM); }) == std::errc::no_child_process);
    none.detach();
  });
}

TEST_CASE("what can't be started is an error here, not in a child", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    std::error_code ec;
    (void)process_builder("/no/such/program").spawn(ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
    std::string said;
    try {
      (void)process_builder("no-such-program").output();
    } catch (const std::system_error& e) {
      said = e.what();
      EXPECT(found, e.code() == std::errc::no_such_file_or_directory);
    }
    EXPECT(found, said.find("no-such-program") != said.npos, said.find("process_builder::output") != said.npos);
    const ramie::temporary_directory home(test::in_memory());
    ramie::write_file(home.path() / "text", "no program");
    EXPECT(found,
           error_of([&] { (void)process_builder(home.path() / "text").spawn(); }) == std::errc::permission_denied);
    EXPECT(found, error_of([] { (void)process_builder("true").working_directory("/no/such").spawn(); }) ==
                      std::errc::no_such_file_or_directory);
    EXPECT(found, error_of([] { (void)process_builder("true").environment("A=B", "x").spawn(); }) ==
                      std::errc::invalid_argument);
    EXPECT(found, error_of([] { (void)process_builder("true").arg(std::string("a\0b", 3)).spawn(); }) ==
                      std::errc::invalid_argument);
    EXPECT(found, error_of([] { (void)process_builder("true").standard_input(stdio::descriptor(-1)).spawn(); }) ==
                      std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a child gets its arguments, its environment and its directory", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    const auto words = process_builder("printf").args({"%s|", "a b", "", "$HOME"}).arg("c").output();
    EXPECT(found, words.status.success(), words.out == "a b||$HOME|c|", words.err.empty());
    auto env = process_builder("/usr/bin/env").clear_environment().environment("ONE", "1").environment("TWO", "2");
    EXPECT(found, env.output().out == "ONE=1\nTWO=2\n");
    auto less = env;  // another one
    less.remove_environment("ONE").environment("TWO", "two");
    EXPECT(found, less.output().out == "TWO=two\n", env.output().out == "ONE=1\nTWO=2\n");
    const auto inherited = process_builder("/usr/bin/env").environment("RAMIE_TEST", "=x").output().out;
    EXPECT(found, inherited.find("PATH=") != inherited.npos, inherited.find("RAMIE_TEST==x\n") != inherited.npos);
    EXPECT(found, process_builder("pwd").working_directory("/usr").output().out == "/usr\n");
  });
}

void read_much(findings& found, int size) {
  const auto zeros = "head -c " + std::to_string(size) + " /dev/zero";
  const auto all = shell(zeros + " >&2; " + zeros + "; exit 5").output();
  EXPECT(found, all.out.size() == static_cast<std::size_t>(size), all.err.size() == all.out.size());
  EXPECT(found, all.status == exit_status::exited(5));
  std::string text(static_cast<std::size_t>(size), 'x');
  text += "the end";
  EXPECT(found, process_builder("cat").output(text).out == text);
  found.expect(process_builder("true").output(text).status.success());  // which reads none of it
}

TEST_CASE("all that a child writes is read, however much and wherever first", "[conformance][processes]") {
  findings found;
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(2);
    o.io = which;
    ramie::run(o, [&] { read_much(found, test::scaled(10'000'000, 1'000'000)); });
  }
  CHECK(found.wrong() == "");
  with_each_mechanism_and_without([](findings& seen) {
    read_much(seen, 200'000);  // more than pipes hold
    EXPECT(seen, shell("echo out; echo err >&2").output().out == "out\n");
    EXPECT(seen, process_builder("cat").output().out.empty(), process_builder("cat").output("").out.empty());
  });
}

TEST_CASE("a child's pipes are read and written as it goes", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    process p = process_builder("cat").standard_input(stdio::pipe()).standard_output(stdio::pipe()).spawn();
    found.expect(!p.standard_error().is_open());
    for (const std::string line : {"one\n", "two\n"}) {
      p.standard_input().write_all(line);
      std::string back(100, '?');
      back.resize(p.standard_output().read_some(std::as_writable_bytes(std::span(back))));
      EXPECT(found, back == line);
    }
    found.expect(!p.try_wait());
    p.standard_input().close();
    EXPECT(found, p.standard_output().read_all().empty(), p.wait().success());
    std::error_code ec;
    EXPECT(found, p.standard_input().write_all("x", ec) == 0, ec == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a child's output leads to a descriptor, to its other output, to nowhere", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "out";
    ramie::file out = ramie::file::open(path, ramie::open_mode::write | ramie::open_mode::create);
    auto both = shell("echo out; echo err >&2").standard_output(stdio::descriptor(out.native_handle()));
    EXPECT(found, both.output().err == "err\n", ramie::read_file(path) == "out\n");
    auto ends = ramie::make_pipe();
    const auto to_pipe = stdio::descriptor(ends.writer.native_handle());
    process p = both.standard_output(to_pipe).standard_error(to_pipe).spawn();
    ends.writer.close();
    EXPECT(found, ends.reader.read_all() == "out\nerr\n", p.wait().success());
    const auto none = both.standard_output(stdio::null()).standard_error(stdio::null()).output();
    EXPECT(found, none.out.empty(), none.err.empty(), none.status.success());
  });
}

TEST_CASE("a closed pipe is an error and no signal, and the end for those who read", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    auto ends = ramie::make_pipe();
    ends.writer.write_all("last words");
    ends.writer.close();
    EXPECT(found, ends.reader.read_all() == "last words", ends.reader.read_all().empty());
    auto others = ramie::make_pipe();
    others.reader.close();
    std::error_code ec;
    EXPECT(found, others.writer.write_some(std::as_bytes(std::span("x")), ec) == 0, ec == std::errc::broken_pipe);
    EXPECT(found, error_of([&] { others.writer.write_all("x"); }) == std::errc::broken_pipe);
    process p = process_builder("true").standard_input(stdio::pipe()).spawn();
    EXPECT(found, p.wait().success(), p.standard_input().write_all("x", ec) == 0, ec == std::errc::broken_pipe);
    EXPECT(found, shell("kill -PIPE $$").status() == exit_status::killed(SIGPIPE));  // not ignored there
  });
}

TEST_CASE("a child starts with no signal blocked", "[conformance][processes]") {
  sigset_t term, before;
  (void)::sigemptyset(&term);
  (void)::sigaddset(&term, SIGTERM);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &term, &before) == 0);
  with_each_mechanism_and_without(
      [](findings& found) { EXPECT(found, shell("kill -TERM $$; exit 1").status() == exit_status::killed(SIGTERM)); });
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a pipe's writer waits for room and its reader for bytes", "[conformance][processes]") {
  with_each_mechanism([](findings& found) {
    auto ends = ramie::make_pipe();
    const std::string text(300'000, 'x');
    ramie::nursery n;
    n.spawn([&] {
      ends.writer.write_all(text);
      ends.writer.close();
    });
    EXPECT(found, ends.reader.read_all() == text);
    n.join();
    auto full = ramie::make_pipe();
    std::error_code ec;
    std::size_t held = 0;
    for (auto time = 1ms; held == 0; time *= 2) {  // a slow machine may not come to the first byte in time
      held = full.writer.write_all(text, ec, deadline(time));
      EXPECT(found, ec == std::errc::timed_out, held < text.size());
    }
    int there = 0;
    EXPECT(found, ::ioctl(full.reader.native_handle(), FIONREAD, &there) == 0, static_cast<std::size_t>(there) == held);
    std::byte one[1];
    auto empty = ramie::make_pipe();
    EXPECT(found, empty.reader.read_some(one, ec, deadline(1ms)) == 0, ec == std::errc::timed_out);
  });
}

TEST_CASE("a wait for a child ends by its deadline or cancellation, and the child goes on",
          "[conformance][processes]") {
  with_each_mechanism([](findings& found) {
    process p = waiting_child().spawn();
    std::error_code ec;
    ec = std::make_error_code(std::errc::io_error);
    EXPECT(found, !p.wait(ec, deadline(1ms)), !ec, !p.wait(1ms));
    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)p.wait(); }), !p.try_wait());
    p.standard_input().close();
    EXPECT(found, p.wait() == test::found_its_end, p.wait(-1s) == test::found_its_end);
  });
}

TEST_CASE("all who wait for a child are told", "[conformance][processes]") {
  with_each_mechanism([](findings& found) {
    process p = waiting_child().spawn();
    ramie::nursery n;
    std::atomic<int> told{0};
    for (int i = 0; i < 5; ++i) n.spawn([&] { told += p.wait() == exit_status::killed(SIGUSR1); });
    wait_ready(p);
    p.kill(SIGUSR1);
    n.join();
    EXPECT(found, told == 5);
  });
}

TEST_CASE("a child that does not end when asked is killed after its grace", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    process willing = waiting_child().spawn();
    wait_ready(willing);
    EXPECT(found, willing.terminate_then_kill(1h) == exit_status::killed(SIGTERM));
    EXPECT(found, willing.terminate_then_kill(0s) == exit_status::killed(SIGTERM));  // it says so again
    process deaf = shell("trap '' TERM; echo ready; read line")
                       .standard_input(stdio::pipe())
                       .standard_output(stdio::pipe())
                       .spawn();
    wait_ready(deaf);
    EXPECT(found, deaf.terminate_then_kill(1ms) == exit_status::killed(SIGKILL));
  });
}

TEST_CASE("a child ends with its object and is reaped, also in a cancelled fiber", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    int id = 0;
    {
      const process p = shell("trap '' TERM; read line").standard_input(stdio::pipe()).spawn();
      id = p.id();
    }
    found.expect(is_gone(id));
    {
      process p = waiting_child().spawn();
      id = p.id();
      p = waiting_child().spawn();
      found.expect(is_gone(id));
      id = p.id();
      const process other = std::move(p);
      EXPECT(found, other.id() == id, p.id() == 0, other.valid(), !p.valid(), ::kill(id, 0) == 0);
    }
    found.expect(is_gone(id));
  });
  with_each_mechanism([](findings& found) {
    int id = 0;
    (void)ramie::with_timeout(0s, [&] {
      process p;
      {
        const ramie::shield for_now;
        p = waiting_child().spawn();
        id = p.id();
      }
      ramie::check_cancelled();
    });
    EXPECT(found, id != 0, is_gone(id));
  });
}

TEST_CASE("output that takes too long ends with its child", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    auto ends = ramie::make_pipe();  // never written to
    auto waits = shell("echo begun; read line").standard_input(stdio::descriptor(ends.reader.native_handle()));
    std::error_code ec;
    (void)waits.output(ec, deadline(5ms));
    EXPECT(found, ec == std::errc::timed_out, !test::has_children());
    (void)process_builder(waits).standard_output(stdio::null()).status(ec, deadline(5ms));
    EXPECT(found, ec == std::errc::timed_out, !test::has_children());
    if (!ramie::this_fiber::exists()) return;
    bool cancelled = false;
    (void)ramie::with_timeout(5ms, [&] {
      try {
        (void)waits.output();
      } catch (const ramie::cancelled&) {
        cancelled = true;
        throw;
      }
    });
    EXPECT(found, cancelled, !test::has_children());
  });
}

// The other threads of this process, and those of them that block the signal.
std::pair<int, int> threads_and_blocking(int signal) {
  std::pair<int, int> count;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      ++count.first;
      count.second += static_cast<int>(std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1);
    }
  }
  return count;
}

TEST_CASE("a detached child goes on, and is reaped when it ends", "[conformance][processes]") {
  const auto before = test::open_descriptors();
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(2);
    o.io = which;
    auto ends = ramie::make_pipe();
    auto said = ramie::make_pipe();
    int id = 0, other = 0;
    ramie::run(o, [&] {
      auto waits = shell("read line; echo $line").standard_input(stdio::descriptor(ends.reader.native_handle()));
      waits.standard_output(stdio::descriptor(said.writer.native_handle()));
      process p = waits.spawn();
      process q = waiting_child().spawn();
      id = p.id();
      other = q.id();
      p.detach();
      p.detach();
      q.detach();  // its input is closed: it ends
    });
    said.writer.close();
    test::until([&] { return is_gone(other); });  // reaped, and not by us
    CHECK(::kill(id, 0) == 0);                    // the runtime is gone, it is not
    // Who reaps is there, and blocks the signal. Workers that have ended may still be listed for a moment.
    test::until([] {
      const auto [threads, blocking] = threads_and_blocking(SIGTERM);
      return threads >= 1 && blocking == threads;
    });
    ends.writer.write_all("still there\n");
    CHECK(said.reader.read_all() == "still there\n");
    test::until([&] { return is_gone(id); });
    CHECK_FALSE(test::has_children());
  }
  test::until([&] { return test::open_descriptors() == before; });  // and its thread has gone
}

// Numbers of descriptors beyond the standard ones that a child of ours would inherit.
std::set<int> inheritable() {
  std::set<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > 2 && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) numbers.insert(fd);
  }
  return numbers;
}

TEST_CASE("a child inherits no descriptor of ours", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    const auto allowed = inheritable();
    const ramie::temporary_directory home(test::in_memory());
    const auto ends = ramie::make_pipe();
    const auto file = ramie::file::open(home.path() / "f", ramie::open_mode::write | ramie::open_mode::create);
    const ramie::signals some{SIGUSR2};
    const process sibling = waiting_child().spawn();
    const auto listed = shell("for f in /proc/$$/fd/*; do readlink $f >/dev/null && echo ${f##*/}; done").output();
    std::istringstream numbers(listed.out);
    std::set<int> has;
    for (int number = 0; numbers >> number;) has.insert(number);
    EXPECT(found, has.contains(0), has.contains(1), has.contains(2));
    for (const int number : has) EXPECT(found, number <= 2 || allowed.contains(number));
  });
}

TEST_CASE("many children at once", "[conformance][processes]") {
  with_each_mechanism([](findings& found) {
    const int many = test::scaled(12, 4);
    ramie::nursery n;
    for (int i = 0; i < many; ++i) {
      n.spawn([&, i] {
        const auto all = shell("echo " + std::to_string(i) + "; exit " + std::to_string(i)).output();
        EXPECT(found, all.out == std::to_string(i) + "\n", all.status == exit_status::exited(i));
      });
    }
    n.join();
  });
}

TEST_CASE("children of a program without standard descriptors have theirs", "[conformance][processes]") {
  const auto ended = test::in_child([] {
    ::close(0);
    ::close(1);
    bool good = false;
    ramie::run(test::with_workers(1), [&] {
      const auto all = shell("cat; echo err >&2").output("in");
      const auto none = process_builder("cat").output();
      good = all.out == "in" && all.err == "err\n" && none.out.empty() && none.status.success();
    });
    ::_exit(good ? 0 : 1);
  });
  CHECK(ended.signal == 0);
  CHECK(ended.exit_code == 0);
}

TEST_CASE("where children are reaped by the system their end has no status", "[conformance][processes]") {
  const auto ended = test::in_child([] {
    (void)::signal(SIGCHLD, SIG_IGN);
    std::error_code ec;
    (void)process_builder("true").status(ec);
    ::_exit(ec == std::errc::no_child_process || ec == std::errc::no_such_process ? 0 : 1);
  });
  CHECK(ended.signal == 0);
  CHECK(ended.exit_code == 0);
}

// PR5. The number 0 is free while the child's descriptors are made ready. Its output must not get it: its input will.
TEST_CASE("a child's descriptors do not run over each other where low numbers are free", "[conformance][processes]") {
  const auto ended = test::in_child([] {
    std::string out;
    ramie::run(test::with_workers(1), [&] {
      (void)shell("true").status();  // all that the runtime needs is open
      auto ends = ramie::make_pipe();
      ::close(0);
      auto p = shell("echo out")
                   .standard_input(stdio::null())
                   .standard_output(stdio::descriptor(ends.writer.native_handle()))
                   .spawn();
      ends.writer.close();
      out = ends.reader.read_all();
      (void)p.wait();
    });
    ::_exit(out == "out\n" ? 0 : 1);
  });
  CHECK(ended.signal == 0);
  CHECK(ended.exit_code == 0);
}

}  // namespace conformance_processes
