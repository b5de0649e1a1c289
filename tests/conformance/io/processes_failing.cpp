// SPDX-License-Identifier: BSL-1.0
// Children that can't be started, that are somebody else's by now, that are held up by a debugger, or that talk without
// end.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/each_mechanism.hpp>
#include <support/processes.hpp>

namespace conformance_processes_failing {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::exit_status;
using ramie::process;
using ramie::process_builder;
using ramie::stdio;
using namespace test;

TEST_CASE("no success is told of a child that nothing is known of", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    const auto unknown = [](exit_status status) {
      return !status.success() && !status.code() && !status.signal() && to_string(status) == "unknown";
    };
    std::error_code ec;
    process none;
    EXPECT(found, unknown(none.wait(ec)), ec);
    process p = waiting_child().spawn();
    EXPECT(found, !p.wait(ec, deadline(1ms)), !ec);
    const process_builder missing("/no/such/program");
    EXPECT(found, unknown(missing.status(ec)), ec);
    EXPECT(found, unknown(missing.output(ec).status), ec);
    auto ends = ramie::make_pipe();
    auto waits = process_builder("cat").standard_input(stdio::descriptor(ends.reader.native_handle()));
    EXPECT(found, unknown(waits.output(ec, deadline(1ms)).status), ec == std::errc::timed_out);
  });
}

TEST_CASE("a detached child is not waited for", "[conformance][processes]") {
  auto ends = ramie::make_pipe();  // written to by nobody until the end
  auto waits = process_builder("cat").standard_input(stdio::descriptor(ends.reader.native_handle()));
  const auto without_waiting = [&](findings& found) {
    process p = waits.spawn();
    p.detach();
    std::error_code ec;
    (void)p.wait(ec, deadline(1h));
    EXPECT(found, ec == std::errc::no_child_process);
    EXPECT(found, error_of([&] { (void)p.terminate_then_kill(1h); }) == std::errc::no_child_process);
  };
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(2);
    o.io = which;
    findings found;
    ramie::run(o, [&] { without_waiting(found); });
    CHECK(found.wrong() == "");
  }
  ends.writer.close();
  test::until([] { return !test::has_children(); });
  test::let_reaper_finish();
}

TEST_CASE("a process moved onto itself lives", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    process p = waiting_child().spawn();
    auto& same = p;
    p = std::move(same);
    EXPECT(found, p.id() != 0, p.standard_input().is_open(), !p.try_wait());
    p.standard_input().close();
    EXPECT(found, p.wait() == test::found_its_end);
  });
}

TEST_CASE("output has a limit", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    std::error_code ec;
    auto endless = shell("while :; do echo y; done").output_limit(10'000);
    const auto all = endless.output(ec);
    EXPECT(found, ec == ramie::stream_errc::limit_exceeded, all.out.size() == 10'000, !all.status.success());
    EXPECT(found, error_of([&] { (void)endless.output(); }) == ramie::stream_errc::limit_exceeded);
    found.expect(!test::has_children());
    const auto limited = [&](std::size_t limit) { return shell("printf 12345; printf 123 >&2").output_limit(limit); };
    EXPECT(found, limited(5).output(ec).out == "12345", !ec);  // of each
    (void)limited(4).output(ec);
    EXPECT(found, ec == ramie::stream_errc::limit_exceeded);
    (void)shell("echo much >&2").output_limit(2).output(ec);
    EXPECT(found, ec == ramie::stream_errc::limit_exceeded);
  });
}

TEST_CASE("input that could not arrive is refused", "[conformance][processes]") {
  with_each_mechanism_and_without([](findings& found) {
    for (const auto where : {stdio::null(), stdio::inherit(), stdio::descriptor(0)}) {
      bool refused = false;
      std::error_code ec;
      try {
        (void)process_builder("cat").standard_input(where).output("lost", ec);
      } catch (const ramie::usage_error&) {
        refused = true;
      }
      found.expect(refused);
    }
    EXPECT(found, process_builder("cat").standard_input(stdio::pipe()).output("found").out == "found");
  });
}

// A process that traces that one until it is told to end; 0 if it may not.
pid_t traced_by_another(int id, ramie::pipe_writer& until) {
  int begun[2], end[2];
  if (::pipe(begun) != 0 || ::pipe(end) != 0) return 0;
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    (void)::dup2(begun[1], 1);
    (void)::dup2(end[0], 0);
    (void)::close_range(3, ~0u, 0);  // among them the child's input
    char word = ::ptrace(PTRACE_SEIZE, id, nullptr, nullptr) == 0 ? 'y' : 'n';
    (void)!::write(1, &word, 1);
    (void)!::read(0, &word, 1);
    ::_exit(0);
  }
  char word = 'n';
  (void)!::read(begun[0], &word, 1);
  for (const int fd : {begun[0], begun[1], end[0]}) (void)::close(fd);
  until = ramie::pipe_writer::from_native(end[1]);
  if (word == 'y') return tracer;
  until.close();
  (void)::waitpid(tracer, nullptr, 0);
  return 0;
}

TEST_CASE("a detached child that a debugger holds is reaped when that lets go", "[conformance][processes]") {
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(1);
    o.io = which;
    ramie::pipe_writer tracing;
    pid_t tracer = 0;
    ramie::run(o, [&] {
      process p = waiting_child().spawn();
      std::error_code ec;
      (void)p.wait(ec, deadline(1ms));  // the mechanism has had its descriptor
      tracer = traced_by_another(p.id(), tracing);
      process other = waiting_child().spawn();
      const int id = other.id();
      p.detach();      // its input is closed: it ends, and is its tracer's
      other.detach();  // and is not held up
      test::until([&] { return ::kill(id, 0) != 0; });
    });
    if (tracer == 0) continue;  // this machine allows no such thing
    tracing.close();
    CHECK(::waitpid(tracer, nullptr, 0) == tracer);
    test::until([] { return !test::has_children(); });
    test::let_reaper_finish();
  }
}

TEST_CASE("a wait for a child that a debugger holds ends by its deadline, or when that lets go",
          "[conformance][processes]") {
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(1);
    o.io = which;
    findings found;
    ramie::run(o, [&] {
      process p = waiting_child().spawn();
      ramie::pipe_writer tracing;
      const pid_t tracer = traced_by_another(p.id(), tracing);
      p.standard_input().close();  // it ends
      (void)p.standard_output().read_all();
      std::error_code ec;
      if (tracer != 0) {
        EXPECT(found, !p.wait(ec, deadline(5ms)), !ec);
        EXPECT(found, ramie::select(ramie::on_exit(p, [](exit_status) {}), ramie::on_timeout(30ms, [] {})) == 1);
        tracing.close();
        EXPECT(found, ::waitpid(tracer, nullptr, 0) == tracer);
      }
      EXPECT(found, ramie::select(ramie::on_exit(p, [](exit_status) {}), ramie::on_timeout(1h, [] {})) == 0);
      EXPECT(found, p.wait() == test::found_its_end);
    });
    CHECK(found.wrong() == "");
  }
}

}  // namespace conformance_processes_failing
