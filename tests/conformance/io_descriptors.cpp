// SPDX-License-Identifier: BSL-1.0
// Fibers and threads that wait for descriptors: spec/io.md, IO10 and on.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/testing.hpp>
#include <support/allocations.hpp>
#include <support/crew.hpp>
#include <support/each_mechanism.hpp>
#include <support/finally.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/sleeping.hpp>
#include <support/test.hpp>
#include <support/whims.hpp>

namespace conformance_io_descriptors {

using namespace std::chrono_literals;
using ramie::io_choice;
using ramie::detail::descriptor_ref;
using ramie::detail::open_descriptor;
using ramie::platform::io_code;
using ramie::platform::io_operation;
using ramie::testing::wait_all_blocked;
using test::findings;

const bool whimsical = test::follow_whims_of_the_environment();

const char* name_of(io_choice which) {
  return to_string(static_cast<ramie::platform::io_mechanism>(which));
}

// f(found) as a fiber, for every mechanism and several worker counts, with and without chaos. Leaves no descriptor.
template <class F>
void on_each(F f) {
  for (const auto which : test::each_mechanism()) {
    for (const unsigned workers : {1u, 2u, 4u}) {
      for (const bool chaos : {false, true}) {
        auto o = test::with_workers(workers);
        o.io = which;
        if (chaos) o.chaos = ramie::chaos_mode{workers + 11};
        const auto before = test::open_descriptors();
        findings found;
        ramie::run(o, [&] { f(found); });
        INFO(name_of(which) << ", workers " << workers << ", chaos " << chaos);
        CHECK(found.wrong() == "");
        CHECK(test::open_descriptors() == before);
      }
    }
  }
}

std::array<descriptor_ref, 2> make_pair(int type = SOCK_STREAM) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) throw std::system_error(errno, std::system_category());
  return {open_descriptor::adopt(ends[0]), open_descriptor::adopt(ends[1])};
}
std::array<descriptor_ref, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category());
  return {open_descriptor::adopt(ends[0]), open_descriptor::adopt(ends[1])};
}

const ramie::detail::wait_reason why{"test of descriptors"};

std::int32_t transfer(const descriptor_ref& on, io_code code, void* memory, std::size_t count,
                      std::chrono::steady_clock::time_point until = open_descriptor::never) {
  io_operation op;
  op.code = code;
  op.memory = memory;
  op.count = static_cast<std::uint32_t>(count);
  return on->perform(op, why, until);
}
std::int32_t receive(const descriptor_ref& from, std::span<char> into,
                     std::chrono::steady_clock::time_point until = open_descriptor::never) {
  return transfer(from, io_code::receive, into.data(), into.size(), until);
}
std::int32_t send(const descriptor_ref& to, std::string_view text) {
  return transfer(to, io_code::send, const_cast<char*>(text.data()), text.size());
}

TEST_CASE("a fiber waits for its descriptor while others run", "[conformance][io]") {
  on_each([](findings& found) {
    auto ends = make_pair();
    ramie::nursery n;
    n.spawn([&] {
      char text[8];
      for (int i = 0; i < 50; ++i) {
        EXPECT(found, receive(ends[0], text) == 4);
        EXPECT(found, std::memcmp(text, "ping", 4) == 0);
        EXPECT(found, send(ends[0], "pong!") == 5);
      }
    });
    char text[8];
    for (int i = 0; i < 50; ++i) {
      EXPECT(found, send(ends[1], "ping") == 4);
      EXPECT(found, receive(ends[1], text) == 5);
    }
    n.join();
  });
}

TEST_CASE("many fibers each get what was sent to them", "[conformance][io]") {
  on_each([](findings& found) {
    constexpr int lines = 40, rounds = 20;
    ramie::nursery n;
    std::atomic<int> served{0};
    for (int l = 0; l < lines; ++l) {
      n.spawn([&found, &served, l] {
        auto ends = make_pair();
        ramie::nursery both;
        both.spawn([&ends, l, &found] {
          for (int i = 0; i < rounds; ++i) {
            const int value = l * 1000 + i;
            char bytes[sizeof value];
            std::memcpy(bytes, &value, sizeof value);
            EXPECT(found, send(ends[0], {bytes, sizeof bytes}) == sizeof value);
          }
        });
        for (int i = 0; i < rounds; ++i) {
          char bytes[sizeof(int)];
          EXPECT(found, receive(ends[1], bytes) == sizeof bytes);
          int value = 0;
          std::memcpy(&value, bytes, sizeof value);
          EXPECT(found, value == l * 1000 + i);
          ++served;
        }
        both.join();
      });
    }
    n.join();
    EXPECT(found, served == lines * rounds);
  });
}

TEST_CASE("pipes and readiness work like sockets", "[conformance][io]") {
  on_each([](findings& found) {
    auto [out, in] = make_pipe();
    ramie::nursery n;
    n.spawn([&found, from = out] {
      io_operation ready;
      ready.code = io_code::ready;
      ready.flags = POLLIN;
      EXPECT(found, (from->perform(ready, why) & POLLIN) != 0);
      char text[8];
      EXPECT(found, transfer(from, io_code::read, text, sizeof text) == 3);
      EXPECT(found, transfer(from, io_code::read, text, sizeof text) == 0);
    });
    ramie::yield();
    char text[] = "abc";
    EXPECT(found, transfer(in, io_code::write, text, 3) == 3);
    in->close();
    EXPECT(found, transfer(in, io_code::write, text, 3) == -EBADF);
    n.join();
  });
}

TEST_CASE("a cancelled operation has ended before its fiber unwinds, and nothing is lost", "[conformance][io]") {
  on_each([](findings& found) {
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
    if (!whimsical) CHECK(left == (got == 4 ? -ETIMEDOUT : 4));
    if (!whimsical && which == io_choice::io_uring) CHECK(got == 4);  // the kernel had done it
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
        written = f->perform(op, why);
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

TEST_CASE("a worker that sleeps where operations are done is woken by work, time and threads", "[conformance][io]") {
  on_each([](findings& found) {
    auto ends = make_pair();
    ramie::nursery n;
    n.spawn([&] {
      char text[8];
      EXPECT(found, receive(ends[0], text) == 3);
    });
    while (!ends[0]->in_use()) ramie::yield();
    ramie::channel<int> in(0), out(0);
    std::thread other([&] {
      for (auto v = out.recv(); v; v = out.recv()) in.send(*v + 1);
    });
    for (int i = 0; i < test::scaled(100, 20); ++i) {
      out.send(i);
      EXPECT(found, in.recv() == i + 1);
      if (i % 10 == 0) ramie::sleep_for(100us);
    }
    out.close();
    other.join();
    found.expect(ends[0]->in_use());
    EXPECT(found, send(ends[1], "end") == 3);
    n.join();
  });
}

TEST_CASE("a machine that refuses what operations need is an error of the operation, and can be tried again",
          "[conformance][io]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  const test::finally all_well([] {
    for (const auto each : {fault::io_uring, fault::epoll}) faults::plan_for(each, 0, 0);
  });
  const auto before = test::open_descriptors();
  {
    auto o = test::with_workers(1);
    o.io = io_choice::io_uring;
    int refused = 0;
    std::int32_t sent = 0;
    faults::plan_for(fault::io_uring, 1, 2);
    ramie::run(o, [&] {
      auto ends = make_pair();
      for (int i = 0; i < 3; ++i) {
        sent = send(ends[0], "x");
        refused += sent == -EPERM;
      }
    });
    CHECK(refused == 2);
    CHECK(sent == 1);
  }
  {
    test::reports reported;
    faults::plan_for(fault::io_uring, 1, faults::for_good);
    auto o = test::with_workers(2);
    o.io = io_choice::automatic;
    ramie::run(o, [&] {
      auto ends = make_pair();
      char c;
      (void)send(ends[0], "x");
      (void)transfer(ends[1], io_code::receive, &c, 1);
    });
    CHECK(reported.count(ramie::report_kind::io_fallback) == 1);
  }
  CHECK(test::open_descriptors() == before);
}

TEST_CASE("a deadline ends an operation, in time is in time", "[conformance][io]") {
  on_each([](findings& found) {
    auto ends = make_pair();
    char text[8];
    const auto begun = ramie::now();
    EXPECT(found, receive(ends[0], text, begun + 3ms) == -ETIMEDOUT);
    EXPECT(found, ramie::now() >= begun + 3ms);
    EXPECT(found, receive(ends[0], text, begun) == -ETIMEDOUT);
    EXPECT(found, send(ends[1], "x") == 1);
    // Too late, but it is tried once; which may be in vain.
    const auto late = receive(ends[0], text, begun);
    EXPECT(found, late == 1 || (whimsical && late == -ETIMEDOUT));
    EXPECT(found, send(ends[1], "y") == 1);
    EXPECT(found, receive(ends[0], text, ramie::now() + 1h) == (late == 1 ? 1 : 2));
  });
}

TEST_CASE("close ends the operations under way, and the number is free only after them", "[conformance][io]") {
  on_each([](findings& found) {
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
  on_each([](findings& found) {
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
  on_each([](findings& found) {
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

TEST_CASE("regular files are read and written at offsets by every mechanism", "[conformance][io]") {
  on_each([](findings& found) {
    char name[] = "/tmp/ramie-io-XXXXXX";
    auto f = open_descriptor::adopt(::mkostemp(name, O_CLOEXEC));
    EXPECT(found, ::unlink(name) == 0);
    const auto at = [&](io_code code, void* memory, std::uint32_t count, std::int64_t offset) {
      io_operation op;
      op.code = code;
      op.memory = memory;
      op.count = count;
      op.offset = offset;
      return f->perform(op, why);
    };
    char text[] = "0123456789", got[8] = {};
    EXPECT(found, at(io_code::write, text, 10, 0) == 10);
    EXPECT(found, at(io_code::read, got, 3, 4) == 3);
    EXPECT(found, std::string_view(got) == "456");
    EXPECT(found, at(io_code::read, got, 3, 10) == 0);
    iovec two[] = {{got, 1}, {got + 4, 2}};
    EXPECT(found, at(io_code::read_vector, two, 2, 7) == 3);
    EXPECT(found, got[0] == '7', got[4] == '8', got[5] == '9');
    io_operation sync;
    sync.code = io_code::sync;
    EXPECT(found, f->perform(sync, why) == 0);
  });
}

// The receiver's operation is under way on the only worker; then a fiber does not let go of that before the receiver
// has received.
bool is_asleep(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.find(") S ") != std::string::npos;
}

template <class Hold>
void hold_up(io_choice which, bool asleep, Hold hold) {
  auto o = test::one_elastic_worker();
  o.io = which;
  auto ends = make_pair();
  auto release = make_pipe();
  std::int32_t got = 0;
  std::atomic<int> holder{0};
  std::thread sender([&] {
    test::until([&] { return holder != 0 && (!asleep || is_asleep(holder)); });
    (void)ends[1]->with_fd([](int fd) { return static_cast<int>(::send(fd, "help", 4, 0)); });
  });
  ramie::run(o, [&] {
    ramie::nursery n;
    n.spawn([&] {
      char text[8];
      got = receive(ends[0], text);
      (void)release[1]->with_fd([](int fd) { return static_cast<int>(::write(fd, "x", 1)); });
    });
    while (!ends[0]->in_use()) ramie::yield();
    ramie::yield();  // what was submitted goes to the kernel when the worker looks for work
    holder = static_cast<int>(::syscall(SYS_gettid));
    hold(release[0]);
    n.join();
  });
  sender.join();
  CHECK(got == 4);
}

TEST_CASE("a fiber that yields until another has received does not keep it from that", "[conformance][io]") {
  for (const auto which : test::each_mechanism()) {
    for (const bool chaos : {false, true}) {
      auto o = test::with_workers(1);
      o.io = which;
      if (chaos) o.chaos = ramie::chaos_mode{3};
      std::atomic<bool> received{false};
      ramie::run(o, [&] {
        auto ends = make_pair();
        ramie::nursery n;
        n.spawn([&] {
          char c;
          received = transfer(ends[0], io_code::receive, &c, 1) == 1;
        });
        while (!ends[0]->in_use()) ramie::yield();
        (void)ends[1]->with_fd([](int fd) { return static_cast<int>(::send(fd, "x", 1, 0)); });
        while (!received) ramie::yield();
        n.join();
      });
      CHECK(received);
    }
  }
}

TEST_CASE("a deadline that can't be kept is an error before the operation has begun", "[conformance][io]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
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

TEST_CASE("a worker that is held up does not hold up the operations of others", "[conformance][io]") {
  for (const auto which : test::each_mechanism()) {
    INFO(name_of(which));
    hold_up(which, true, [](const descriptor_ref& released) {  // in a system call
      (void)released->with_fd([](int fd) {
        char c;
        return static_cast<int>(::read(fd, &c, 1));
      });
    });
    hold_up(which, false, [](const descriptor_ref& released) {  // busy
      (void)released->with_fd([](int fd) {
        pollfd one{fd, POLLIN, 0};
        while (::poll(&one, 1, 0) == 0) std::this_thread::yield();
        return 0;
      });
    });
  }
}

TEST_CASE("plain threads use descriptors as fibers do", "[conformance][io]") {
  const auto before = test::open_descriptors();
  {
    auto ends = make_pair();
    std::int32_t got = 0, closed = 0;
    std::atomic<std::int32_t> late{0};
    std::atomic<int> number{0};
    char text[8] = {};
    std::thread other([&] {
      number = test::this_thread_number();
      got = receive(ends[0], text);
      late = receive(ends[0], text, std::chrono::steady_clock::now() + 2ms);
      closed = receive(ends[0], text);
    });
    ramie::run(test::with_workers(2), [&] { (void)send(ends[1], "thread"); });
    test::until([&] { return late != 0 && ends[0]->in_use() && test::sleeps(number); });
    ends[0]->close();  // the thread sleeps: only the close can end that
    other.join();
    CHECK(got == 6);
    CHECK(std::string_view(text, 6) == "thread");
    CHECK(late == -ETIMEDOUT);
    CHECK(closed == -EBADF);
  }
  CHECK(test::open_descriptors() == before);
}

// IO14, IO16. By a whim the first attempt is in vain. When the thread tries again its time is up, but it is there.
TEST_CASE("what a plain thread finds when it looks again counts, though its time is up", "[conformance][io]") {
  namespace faults = ramie::platform::faults;
  const test::finally as_before(
      [kinds = faults::whims.load(), steps = faults::whim_steps.load()] { faults::plan_whims(kinds, steps); });
  faults::plan_whims(0, 0);
  auto ends = make_pair();
  REQUIRE(send(ends[1], "x") == 1);
  std::uint64_t seed = 0;
  const auto only_the_first = [&] {
    faults::plan_whims(0, seed);
    return faults::draw(3) == 0 && faults::draw(3) != 0;  // as befalls does
  };
  while (!only_the_first()) ++seed;
  faults::plan_whims(1u << static_cast<unsigned>(ramie::platform::io_whim::again), seed);
  char text[8] = {};
  CHECK(receive(ends[0], text, std::chrono::steady_clock::now() - 1s) == 1);
  CHECK(text[0] == 'x');
  faults::plan_whims(0, 0);
  CHECK(receive(ends[0], text, std::chrono::steady_clock::now() - 1s) == -ETIMEDOUT);
}

}  // namespace conformance_io_descriptors
