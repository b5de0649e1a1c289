// SPDX-License-Identifier: BSL-1.0
// The contract of io_backend.hpp, for every mechanism there is: an operation is handed out once, whoever cancels, wakes,
// looks or sleeps.
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <ramie/platform/faults.hpp>
#include <support/allocations.hpp>
#include <support/finally.hpp>
#include <support/io_backend.hpp>
#include <support/test.hpp>

namespace unit_io_backends {

using namespace std::chrono_literals;
using ramie::platform::fault;
using ramie::platform::io_backend;
using ramie::platform::io_mechanism;
using ramie::platform::io_operation;
using test::on_each_backend;
using test::receive;
using test::send;
using test::tested_backend;
using test::waiting_receive;
namespace faults = ramie::platform::faults;

TEST_CASE("an operation is handed out once, with what the system call returned", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    waiting_receive come(b);
    auto go = send(come.there(), "ramie", 5);
    b->submit(go);
    b.wait_for(come.op);
    b.wait_for(go);
    CHECK(come.op.result == 5);
    CHECK(go.result == 5);
    CHECK(std::string(come.buffer) == "ramie");
    CHECK(b.take_ready() == 0);
    CHECK(b.times(come.op) == 1);
    CHECK(b.times(go) == 1);
  });
}

TEST_CASE("a cancelled operation is handed out all the same, and its memory left alone", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    waiting_receive come(b);
    b->cancel(come.op);
    b.wait_for(come.op);
    CHECK(come.op.result == -ECANCELED);
    REQUIRE(::send(come.there().fd(), "late", 4, 0) == 4);
    CHECK(b.take_ready() == 0);
    CHECK(come.buffer[0] == 0);
    auto next = receive(come.here(), come.buffer, sizeof come.buffer);  // what was not received then is there now
    b->submit(next);
    b.wait_for(next);
    CHECK(next.result == 4);
  });
}

TEST_CASE("a cancellation that comes too late changes nothing", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    REQUIRE(::send(there.fd(), "first", 5, 0) == 5);
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    b->flush();
    b->cancel(come);
    b.wait_for(come);
    CHECK(come.result == 5);
    CHECK(b.take_ready() == 0);
    CHECK(b.times(come) == 1);
  });
}

TEST_CASE("wake ends the wait of this moment or the next one, a time ends it too", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    std::array<io_operation*, 4> out{};
    b->wake();
    b->wake();
    CHECK(b->wait(out, io_backend::never) == 0);
    const auto due = std::chrono::steady_clock::now() + 2ms;
    while (std::chrono::steady_clock::now() < due) CHECK(b->wait(out, due) == 0);  // two wakes may have counted as two
    for (int i = 0; i < 100; ++i) {
      std::thread other([&b] { b->wake(); });
      CHECK(b->wait(out, io_backend::never) == 0);
      other.join();
    }
    auto [here, there] = b.pair();
    char c = 0;
    auto come = receive(here, &c, 1);
    std::thread other([&b, &come] {  // submitted and completed while somebody sleeps
      b->submit(come);
      b->flush();
      b->cancel(come);
      b->flush();
    });
    b.wait_for(come);
    other.join();
    CHECK(come.result == -ECANCELED);
  });
}

TEST_CASE("a wake is for who sleeps, not for who only looks", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    const int rounds = test::scaled(2000, 300);
    std::atomic<int> wakes{0}, waits{0};
    std::atomic<bool> over{false};
    std::thread looker([&] {
      std::array<io_operation*, 4> out{};
      while (!over) (void)b->poll(out);
    });
    std::thread sleeper([&] {
      std::array<io_operation*, 4> out{};
      for (int i = 0; i < rounds; ++i) {
        while (wakes <= i) (void)b->wait(out, io_backend::never);
        ++waits;
      }
    });
    for (int i = 0; i < rounds; ++i) {
      wakes = i + 1;
      b->wake();
      while (waits <= i) std::this_thread::yield();  // a wake that is lost is a hang
    }
    sleeper.join();
    over = true;
    looker.join();
    CHECK(waits == rounds);
  });
}

// The same without leaving it to chance: the wake, and the look of somebody else, come when the sleeper has let go of the
// lock and is about to sleep. If the look took what the wake has left in the ring, nothing would end that sleep.
TEST_CASE("who looks takes nothing from who sleeps", "[unit][io]") {
  if (test::mechanisms().front() != io_mechanism::io_uring) LEFT_OUT("no io_uring here: nothing could be taken");
  static io_backend* backend = nullptr;
  static int looks = 0;
  const test::finally afterwards([] { faults::told = nullptr; });
  on_each_backend([](tested_backend& b) {
    if (b->mechanism() != io_mechanism::io_uring) return;  // the others have nothing that could be taken
    for (int round = 1; round <= 3; ++round) {
      backend = &*b;
      faults::told = [](fault at) noexcept {
        if (at != fault::io_sleep || backend == nullptr) return;
        io_backend& it = *std::exchange(backend, nullptr);
        std::array<io_operation*, 4> out{};
        it.wake();
        if (it.poll(out) == 0) ++looks;
      };
      std::array<io_operation*, 4> out{};
      const auto patience = std::chrono::steady_clock::now() + 5s;
      CHECK(b->wait(out, patience) == 0);
      CHECK(looks == round);
      REQUIRE(std::chrono::steady_clock::now() < patience);
    }
  });
}

// The cancellation waits for room, and meanwhile the operation has ended: nothing is left to be cancelled.
TEST_CASE("a cancellation that had no room is forgotten when its operation has ended", "[unit][io]") {
  const test::finally afterwards([] { faults::plan_for(fault::submission, 0, 0); });
  on_each_backend([](tested_backend& b) {
    waiting_receive come(b);
    faults::plan_for(fault::submission, 1, faults::for_good);
    b->cancel(come.op);
    REQUIRE(::send(come.there().fd(), "word", 4, 0) == 4);
    b.wait_for(come.op);
    CHECK((come.op.result == 4 || come.op.result == -ECANCELED));
    if (come.op.result != 4) REQUIRE(::recv(come.here().fd(), come.buffer, sizeof come.buffer, 0) == 4);
    b.forget();
    // Another one in the same place, for which there is no room either.
    come.op = receive(come.here(), come.buffer, sizeof come.buffer);
    b->submit(come.op);
    faults::plan_for(fault::submission, 0, 0);
    REQUIRE(::send(come.there().fd(), "next", 4, 0) == 4);
    b.wait_for(come.op);
    CHECK(come.op.result == 4);
    CHECK(b->under_way() == 0);
  });
}

TEST_CASE("an operation outlives the thread that submitted it", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    auto come = receive(here, buffer, sizeof buffer);
    std::thread([&] {
      b->submit(come);
      b->flush();
    }).join();
    for (int i = 0; i < 3; ++i) CHECK(b.take_ready() == 0);  // the kernel has cancelled it, which is nobody's business
    REQUIRE(::send(there.fd(), "late", 4, 0) == 4);
    b.wait_for(come);
    CHECK(come.result == 4);
  });
}

TEST_CASE("an operation needs no memory once its descriptor is known", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    auto [here, there] = b.pair();
    char c = 0;
    std::array<io_operation*, 4> out{};
    auto come = receive(here, &c, 1), go = send(there, "x", 1);
    const auto round = [&] {
      b->submit(come);
      std::size_t count = b->poll(out);
      b->submit(go);
      while (count < 2) count += b->wait(out, io_backend::never);
    };
    round();
    const auto before = test::allocations();
    for (int i = 0; i < 10; ++i) round();
    const auto needed = test::allocations() - before;
    if (b->mechanism() != io_mechanism::poll) CHECK(needed == 0);  // poll copies what it watches
  });
}

}  // namespace unit_io_backends
