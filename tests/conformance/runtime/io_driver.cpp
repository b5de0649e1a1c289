// SPDX-License-Identifier: BSL-1.0
// Fibers and threads that wait for descriptors, and who takes the completions: spec/io.md, IO10, IO15 and on.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/io.hpp>
#include <support/descriptors.hpp>
#include <support/each_mechanism.hpp>
#include <support/finally.hpp>
#include <support/reports.hpp>
#include <support/sleeping.hpp>
#include <support/test.hpp>

namespace conformance_io_driver {

using namespace std::chrono_literals;
using ramie::io_choice;
using ramie::platform::fault;
using ramie::platform::io_code;
using ramie::platform::io_operation;
using ramie::runtime_internal::descriptor_ref;
using ramie::runtime_internal::open_descriptor;
using test::findings;
using test::make_pair;
using test::make_pipe;
using test::name_of;
using test::receive;
using test::send;
using test::transfer;
using test::waits_in_test;
using test::with_each_mechanism_and_chaos;
namespace faults = ramie::platform::faults;

TEST_CASE("a fiber waits for its descriptor while others run", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
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
  with_each_mechanism_and_chaos([](findings& found) {
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
  with_each_mechanism_and_chaos([](findings& found) {
    auto [out, in] = make_pipe();
    ramie::nursery n;
    n.spawn([&found, from = out] {
      io_operation ready;
      ready.code = io_code::ready;
      ready.flags = POLLIN;
      EXPECT(found, (from->perform(ready, waits_in_test) & POLLIN) != 0);
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

TEST_CASE("regular files are read and written at offsets by every mechanism", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
    char name[] = "/tmp/ramie-io-XXXXXX";
    auto f = open_descriptor::adopt(::mkostemp(name, O_CLOEXEC));
    EXPECT(found, ::unlink(name) == 0);
    const auto at = [&](io_code code, void* memory, std::uint32_t count, std::int64_t offset) {
      io_operation op;
      op.code = code;
      op.memory = memory;
      op.count = count;
      op.offset = offset;
      return f->perform(op, waits_in_test);
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
    EXPECT(found, f->perform(sync, waits_in_test) == 0);
  });
}

TEST_CASE("a worker that sleeps where operations are done is woken by work, time and threads", "[conformance][io]") {
  with_each_mechanism_and_chaos([](findings& found) {
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

// The receiver's operation is under way on the only worker; then a fiber does not let go of that before the receiver
// has received.
template <class Hold>
void hold_up(io_choice which, bool asleep, Hold hold) {
  auto o = test::one_elastic_worker();
  o.io = which;
  auto ends = make_pair();
  auto release = make_pipe();
  std::int32_t got = 0;
  std::atomic<int> holder{0};
  std::thread sender([&] {
    test::until([&] { return holder != 0 && (!asleep || test::sleeps(holder)); });
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
    holder = test::this_thread_number();
    hold(release[0]);
    n.join();
  });
  sender.join();
  CHECK(got == 4);
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

TEST_CASE("a machine that refuses what operations need is an error of the operation, and can be tried again",
          "[conformance][io]") {
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

}  // namespace conformance_io_driver
