// SPDX-License-Identifier: BSL-1.0
// Clauses about files, processes and channels that no other test would miss.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/each_mechanism.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_outside_gaps {

using test::with_workers;

// FS14. The pool has one thread, which is held until the copy and the other one have asked for it: what the other one
// writes comes between the beginning of the copy and its end.
TEST_CASE("a copy does not go over what has come meanwhile", "[conformance][directories]") {
  std::error_code ec;
  std::string there;
  std::size_t entries = 0;
  auto o = with_workers(1);
  o.max_blocking_threads = 1;
  ramie::run(o, [&] {
    const ramie::temporary_directory home(test::in_memory());
    const auto from = home.path() / "from", to = home.path() / "to";
    ramie::write_file(from, "copied");
    std::atomic<bool> both_wait{false};
    ramie::nursery n;
    n.spawn([&] { ramie::blocking([&] { test::until([&] { return both_wait.load(); }); }); });
    n.spawn([&] { (void)ramie::copy_file(from, to, ramie::existing::keep, ec); });
    n.spawn([&] { ramie::write_file(to, "another's"); });
    ramie::yield();
    both_wait = true;
    n.join();
    there = ramie::read_file(to);
    entries = ramie::list_directory(home.path()).size();
  });
  CHECK(ec == std::errc::file_exists);
  CHECK(there == "another's");
  CHECK(entries == 2);
}

// PR5. The number 0 is free while the child's descriptors are made ready. Its output must not get it: its input will.
TEST_CASE("a child's descriptors do not run over each other where low numbers are free", "[conformance][processes]") {
  const auto ended = test::in_child([] {
    std::string out;
    ramie::run(with_workers(1), [&] {
      const auto shell = [](const char* text) { return ramie::process_builder("sh").arg("-c").arg(text); };
      (void)shell("true").status();  // all that the runtime needs is open
      auto ends = ramie::make_pipe();
      ::close(0);
      auto p = shell("echo out")
                   .standard_input(ramie::stdio::null())
                   .standard_output(ramie::stdio::descriptor(ends.writer.native_handle()))
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

// PR12: the second object has the place of the first, which was told of a signal that nobody took.
TEST_CASE("signals that nobody took are not remembered for the next object", "[conformance][signals]") {
  {
    ramie::signals first({SIGUSR1});
    (void)::raise(SIGUSR1);
  }
  ramie::signals second({SIGUSR1});
  std::error_code ec;
  (void)second.wait(ec, ramie::deadline::after(std::chrono::milliseconds(1)));
  CHECK(ec == std::errc::timed_out);
  (void)::raise(SIGUSR1);
  CHECK(second.wait(ec, ramie::deadline::after(std::chrono::seconds(10))) == SIGUSR1);
}

// ST15
TEST_CASE("a duplex end that another one is moved onto is closed", "[conformance][streams][duplex]") {
  auto [here, there] = ramie::make_duplex();
  auto [other, far] = ramie::make_duplex();
  here = std::move(other);
  const std::byte one[1] = {};
  std::error_code ec;
  (void)there.write_some(one, ec);
  CHECK(ec == std::errc::broken_pipe);
  CHECK(far.write_some(one, ec) == 1);
  CHECK(here.available() == 1);
}

// C13
TEST_CASE("no operation of a cancelled fiber begins, with a deadline or without", "[conformance][channel][cancel]") {
  const test::reports about_the_swallowed_cancellation;
  int refused = 0;
  std::size_t left = 99;
  ramie::run(with_workers(1), [&] {
    const ramie::channel<int> c(2);
    (void)c.try_send(1);
    ramie::nursery n;
    n.cancel();
    const auto attempt = [&](auto operation) {
      try {
        operation();
      } catch (const ramie::cancelled&) {
        ++refused;
      }
    };
    attempt([&] { c.send(2); });
    attempt([&] { (void)c.recv(); });
    attempt([&] { (void)c.send_for(2, std::chrono::hours(1)); });
    attempt([&] { (void)c.recv_for(std::chrono::hours(1)); });
    left = c.len();
  });
  CHECK(refused == 4);
  CHECK(left == 1);
}

}  // namespace conformance_outside_gaps
