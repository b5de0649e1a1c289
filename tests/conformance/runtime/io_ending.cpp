// SPDX-License-Identifier: BSL-1.0
// Operations that end before their time: by cancellation, by a deadline, by closing. spec/io.md, IO11 to IO14.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/io.hpp>
#include <support/descriptors.hpp>
#include <support/each_mechanism.hpp>
#include <support/finally.hpp>
#include <support/io_faults.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_io_ending {

using namespace std::chrono_literals;
using ramie::io_choice;
using ramie::platform::fault;
using ramie::platform::io_code;
using ramie::platform::io_operation;
using ramie::runtime_internal::open_descriptor;
using test::findings;
using test::make_pair;
using test::name_of;
using test::receive;
using test::send;
using test::waits_in_test;
using test::with_each_mechanism_and_chaos;
namespace faults = ramie::platform::faults;

const bool io_is_faulty = test::plan_io_faults_of_environment();

TEST_CASE("a cancelled operation has ended before its fiber unwinds, and nothing is lost", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    auto ends = make_pair();
    for (int i = 0; i < 10; ++i) {
      bool unwound = false;
      {
        char text[16] = "untouched";
        ramie::nursery n;
        n.spawn([&] {
          try {
            (void)receive(ends[0], text);
          } catch (const ramie::cancelled&) {
            unwound = true;
            throw;
          }
        });
        while (i % 2 == 0 && !ends[0]->in_use()) ramie::yield();
        n.cancel();
        n.join();
        EXPECT(found, send(ends[1], "late") == 4);
        EXPECT(found, std::string_view(text) == "untouched");
      }
      if (!unwound) EXPECT(found, i % 2 == 1);
      char text[16];
      EXPECT(found, receive(ends[0], text) == 4);  // what was not received then is there now
    }
  });
}

TEST_CASE("what has come counts although its fiber is cancelled, which learns of that later", "[conformance][io]") {
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(1);
    o.io = which;
    test::reports reported;
    std::int32_t got = 0, left = 0;
    bool told_at_once = false, told_later = false;
    ramie::run(o, [&] {
      auto ends = make_pair();
      ramie::nursery n;
      n.spawn([&] {
        char text[8];
        try {
          got = receive(ends[0], text);
        } catch (const ramie::cancelled&) {
          told_at_once = true;
          throw;
        }
        try {
          ramie::yield();
        } catch (const ramie::cancelled&) {
          told_later = true;
          throw;
        }
      });
      while (!ends[0]->in_use()) ramie::yield();
      for (int i = 0; i < 3; ++i) ramie::yield();
      (void)ends[1]->with_fd([](int fd) { return static_cast<int>(::send(fd, "data", 4, 0)); });
      n.cancel();
      n.join();
      char text[8];
      left = receive(ends[0], text, ramie::now());
    });
    INFO(name_of(which));
    // Transferred and told later, or not transferred and told at once.
    CHECK(told_later == (got == 4));
    CHECK(told_at_once == (got == 0));
    if (!io_is_faulty) CHECK(left == (got == 4 ? -ETIMEDOUT : 4));
    if (!io_is_faulty && which == io_choice::io_uring) CHECK(got == 4);  // the kernel had done it
    CHECK(reported.count(ramie::report_kind::swallowed_cancellation) == 0);
  }
}

// The pool has one thread, which is busy when the fiber is cancelled: the write can only come afterwards.
TEST_CASE("what the pool does for a fiber that is cancelled counts, which learns of that later", "[conformance][io]") {
  for (const auto which : {io_choice::epoll, io_choice::poll}) {
    auto o = test::with_workers(1);
    o.io = which;
    o.max_blocking_threads = 1;
    test::reports reported;
    std::int32_t written = 0;
    bool told_later = false;
    char there[8] = {};
    char name[] = "/tmp/ramie-io-XXXXXX";
    auto f = open_descriptor::adopt(::mkostemp(name, O_CLOEXEC));
    REQUIRE(::unlink(name) == 0);
    ramie::runtime rt(o);
    rt.run([&] {
      std::atomic<bool> busy{false}, release{false};
      ramie::nursery n, cancelled;
      n.spawn([&] {
        ramie::blocking([&] {
          busy = true;
          test::until([&] { return release.load(); });
        });
      });
      while (!busy) ramie::yield();
      cancelled.spawn([&] {
        char text[] = "pool";
        io_operation op;
        op.code = io_code::write;
        op.memory = text;
        op.count = 4;
        op.offset = 0;
        written = f->perform(op, waits_in_test);
        try {
          ramie::yield();
        } catch (const ramie::cancelled&) {
          told_later = true;
          throw;
        }
      });
      while (rt.stats().blocking.pending == 0) ramie::yield();
      cancelled.cancel();
      release = true;
      cancelled.join();
      n.join();
    });
    INFO(name_of(which));
    CHECK(written == 4);
    CHECK(told_later);
    CHECK(f->with_fd([&](int fd) { return static_cast<int>(::pread(fd, there, sizeof there, 0)); }) == 4);
    CHECK(std::string_view(there) == "pool");
    CHECK(reported.count(ramie::report_kind::swallowed_cancellation) == 0);
  }
}

TEST_CASE("a deadline ends an operation, in time is in time", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    auto ends = make_pair();
    char text[8];
    const auto begun = ramie::now();
    EXPECT(found, receive(ends[0], text, begun + 3ms) == -ETIMEDOUT);
    EXPECT(found, ramie::now() >= begun + 3ms);
    EXPECT(found, receive(ends[0], text, begun) == -ETIMEDOUT);
    EXPECT(found, send(ends[1], "x") == 1);
    // Too late, but it is tried once; which may be in vain.
    const auto late = receive(ends[0], text, begun);
    EXPECT(found, late == 1 || (io_is_faulty && late == -ETIMEDOUT));
    EXPECT(found, send(ends[1], "y") == 1);
    EXPECT(found, receive(ends[0], text, ramie::now() + 1h) == (late == 1 ? 1 : 2));
  });
}

TEST_CASE("a deadline that can't be kept is an error before the operation has begun", "[conformance][io]") {
  const test::finally all_well([] { faults::plan_for(fault::thread, 0, 0); });
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(1);
    o.io = which;
    std::int32_t refused = 0, in_time = 0;
    ramie::run(o, [&] {
      auto ends = make_pair();
      char text[8] = {};
      faults::plan_for(fault::thread, 1, faults::for_good);
      refused = receive(ends[0], text, ramie::now() + 1h);
      faults::plan_for(fault::thread, 0, 0);
      (void)send(ends[1], "ok");
      in_time = receive(ends[0], text, ramie::now() + 1h);
    });
    CHECK(refused == -ENOMEM);
    CHECK(in_time == 2);
  }
}

// IO14, IO16. By an injected fault the first attempt ends with EAGAIN. When the thread tries again its time is up, but the
// bytes are there.
TEST_CASE("what a plain thread finds when it looks again counts, though its time is up", "[conformance][io]") {
  const test::finally as_before(
      [kinds = faults::io_faults.load(), steps = faults::io_fault_steps.load()] { faults::plan_io_faults(kinds, steps); });
  faults::plan_io_faults(0, 0);
  auto ends = make_pair();
  REQUIRE(send(ends[1], "x") == 1);
  std::uint64_t seed = 0;
  const auto only_the_first = [&] {
    faults::plan_io_faults(0, seed);
    return faults::draw(3) == 0 && faults::draw(3) != 0;  // as occurs does
  };
  while (!only_the_first()) ++seed;
  faults::plan_io_faults(1u << static_cast<unsigned>(ramie::platform::io_fault::again), seed);
  char text[8] = {};
  CHECK(receive(ends[0], text, std::chrono::steady_clock::now() - 1s) == 1);
  CHECK(text[0] == 'x');
  faults::plan_io_faults(0, 0);
  CHECK(receive(ends[0], text, std::chrono::steady_clock::now() - 1s) == -ETIMEDOUT);
}

TEST_CASE("close ends the operations under way, and the number is free only after them", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    auto ends = make_pair();
    const int number = ends[0]->number();
    const auto socket = test::inode_of(number);
    std::atomic<int> begun{0}, ended{0};
    ramie::nursery n;
    for (int i = 0; i < 5; ++i) {
      n.spawn([&] {
        char text[4];
        ++begun;
        EXPECT(found, receive(ends[0], text) == -EBADF);
        ++ended;
      });
    }
    while (begun != 5 || !ends[0]->in_use()) ramie::yield();
    found.expect(ends[0]->is_open());
    ends[0]->close();
    ends[0]->close();
    n.join();
    EXPECT(found, ended == 5, !ends[0]->is_open());
    EXPECT(found, ends[0]->with_fd([](int) { return 1; }) == -EBADF);
    EXPECT(found, test::inode_of(number) != socket);
    char text[4];
    EXPECT(found, receive(ends[1], text) == 0);  // its peer knows
  });
}

TEST_CASE("descriptors that are closed and made again never see each other's bytes", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    ramie::nursery n;
    for (int f = 0; f < 4; ++f) {
      n.spawn([&found, f] {
        for (int i = 0; i < 20; ++i) {
          auto ends = make_pair();
          const char mine = static_cast<char>('a' + f);
          ramie::nursery both;
          both.spawn([&] {
            char got[4] = {};
            const auto count = receive(ends[0], got);
            EXPECT(found, count == -EBADF || (count > 0 && got[0] == mine));
          });
          if (i % 2 == 0) ramie::yield();
          if (i % 3 != 0) EXPECT(found, send(ends[1], {&mine, 1}) == 1);
          ends[0]->close();
          both.join();
        }
      });
    }
    n.join();
  });
}

// Another file has got its number meanwhile.
TEST_CASE("an operation on a closed descriptor leaves its number alone", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    auto ends = make_pair();
    const int number = ends[0]->number();
    ends[0]->close();
    int other[2];
    EXPECT(found, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) == 0);
    const bool again = other[0] == number;  // the lowest that is free
    char text[4];
    const auto untouched = [&] {
      return receive(ends[0], text) == -EBADF && (::fcntl(number, F_GETFL) & O_NONBLOCK) == 0;
    };
    bool by_thread = false;
    EXPECT(found, again, ::send(other[1], "mine", 4, 0) == 4);
    found.expect(untouched());
    std::thread([&] { by_thread = untouched(); }).join();
    found.expect(by_thread);
    EXPECT(found, ::recv(other[0], text, sizeof text, MSG_DONTWAIT) == 4);
    for (const int fd : other) ::close(fd);
  });
}

}  // namespace conformance_io_ending
