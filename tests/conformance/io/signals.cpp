// SPDX-License-Identifier: BSL-1.0
// Signals of the system: who is told, how often, and what is back afterwards.
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/cancelling.hpp>
#include <support/each_mechanism.hpp>
#include <support/signals.hpp>

namespace conformance_signals {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::signals;
using namespace test;

void from_another_thread(int number) {
  std::thread([number] { send_signal(number); }).join();
}
bool nothing_more(signals& s) {
  std::error_code ec;
  return !s.wait(ec, deadline(-1s)) && !ec;
}

TEST_CASE("a signal is received, from whichever thread it came", "[conformance][signals]") {
  with_each_mechanism_and_without([](findings& found) {
    signals s{SIGUSR1, SIGUSR2, SIGUSR1};
    (void)::raise(SIGUSR1);
    EXPECT(found, s.wait() == SIGUSR1);
    from_another_thread(SIGUSR2);
    EXPECT(found, s.wait() == SIGUSR2);
    std::thread later([] {
      std::this_thread::yield();
      send_signal(SIGUSR1);
    });
    EXPECT(found, s.wait() == SIGUSR1);
    later.join();
    found.expect(nothing_more(s));
  });
}

TEST_CASE("the same signal before anybody looks counts once, others each", "[conformance][signals]") {
  with_each_mechanism_and_without([](findings& found) {
    signals s{SIGUSR1, SIGUSR2, SIGTERM};
    for (int i = 0; i < 3; ++i) {
      (void)::raise(SIGUSR1);
      (void)::raise(SIGTERM);
    }
    std::set<int> got{s.wait(), s.wait()};
    EXPECT(found, got == (std::set<int>{SIGUSR1, SIGTERM}), nothing_more(s));
    (void)::raise(SIGUSR1);
    EXPECT(found, s.wait() == SIGUSR1);       // and once more
    for (int i = 0, terms = 0; i < 4; ++i) {  // one that comes all the time does not hide the others
      (void)::raise(SIGUSR1);
      if (i == 0) (void)::raise(SIGTERM);
      terms += s.wait() == SIGTERM;
      if (i == 3) EXPECT(found, terms == 1);
    }
  });
}

TEST_CASE("all objects are told, and those made later are not", "[conformance][signals]") {
  with_each_mechanism_and_without([](findings& found) {
    signals first{SIGUSR1}, second{SIGUSR1, SIGUSR2};
    (void)::raise(SIGUSR1);
    {
      signals third{SIGUSR1};
      found.expect(nothing_more(third));
      (void)::raise(SIGUSR2);
      EXPECT(found, nothing_more(third), nothing_more(third));
    }
    EXPECT(found, first.wait() == SIGUSR1, nothing_more(first));
    const std::set<int> got{second.wait(), second.wait()};
    EXPECT(found, got == (std::set<int>{SIGUSR1, SIGUSR2}), nothing_more(second));
    signals again{SIGUSR1};  // has the place of the third
    found.expect(nothing_more(again));
  });
}

TEST_CASE("each signal goes to one of those who wait", "[conformance][signals]") {
  with_each_mechanism([](findings& found) {
    const std::vector<int> numbers{SIGUSR1, SIGUSR2, SIGHUP, SIGTERM};
    signals s{SIGUSR1, SIGUSR2, SIGHUP, SIGTERM};
    std::mutex lock;
    std::multiset<int> got;
    ramie::nursery n;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      n.spawn([&] {
        const int number = s.wait();
        const std::lock_guard hold(lock);
        got.insert(number);
      });
    }
    for (int i = 0; i < 20; ++i) ramie::yield();
    std::thread sender([&] {
      for (const int number : numbers) send_signal(number);
    });
    n.join();
    sender.join();
    EXPECT(found, got == std::multiset<int>(numbers.begin(), numbers.end()), nothing_more(s));
  });
}

TEST_CASE("a wait for a signal ends by its deadline or cancellation, and loses none", "[conformance][signals]") {
  with_each_mechanism([](findings& found) {
    signals s{SIGUSR1};
    std::error_code ec;
    ec = std::make_error_code(std::errc::io_error);
    EXPECT(found, !s.wait(ec, deadline(1ms)), !ec, !s.wait(1ms));
    (void)::raise(SIGUSR1);
    EXPECT(found, s.wait(-1s) == SIGUSR1, !s.wait(-1s));
    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)s.wait(); }));
    (void)::raise(SIGUSR1);
    EXPECT(found, s.wait() == SIGUSR1);
    int got = 0;
    for (int i = 0; i < 30; ++i) {  // whichever comes first
      std::thread sender([] { send_signal(SIGUSR1); });
      const auto in_time = ramie::with_timeout(10us, [&] { got += s.wait() == SIGUSR1; });
      sender.join();
      if (!in_time) got += s.wait() == SIGUSR1;
    }
    EXPECT(found, got == 30, nothing_more(s));
  });
}

std::atomic<int> handled{0};
void own_handler(int) {
  ++handled;
}
void (*disposition(int number))(int) {
  struct sigaction now {};
  (void)::sigaction(number, nullptr, &now);
  return now.sa_handler;
}

TEST_CASE("what was in force before a signal was waited for is back afterwards", "[conformance][signals]") {
  struct sigaction before {
  }, mine{};
  mine.sa_handler = own_handler;
  REQUIRE(::sigaction(SIGUSR1, &mine, &before) == 0);
  with_each_mechanism_and_without([](findings& found) {
    const int handled_before = handled;
    std::optional<signals> first(std::in_place, std::initializer_list<int>{SIGUSR1, SIGUSR2});
    signals* second = new signals{SIGUSR1};
    (void)::raise(SIGUSR1);
    EXPECT(found, handled == handled_before);
    first.reset();
    EXPECT(found, disposition(SIGUSR2) == SIG_DFL, disposition(SIGUSR1) != own_handler);
    (void)::raise(SIGUSR1);
    EXPECT(found, second->wait() == SIGUSR1);
    delete second;
    EXPECT(found, disposition(SIGUSR1) == own_handler);
    (void)::raise(SIGUSR1);
    EXPECT(found, handled == handled_before + 1);
  });
  (void)::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a handler that was installed meanwhile stays", "[conformance][signals]") {
  {
    const signals s{SIGUSR2};
    (void)::signal(SIGUSR2, own_handler);
  }
  CHECK(disposition(SIGUSR2) == own_handler);
  (void)::signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("what can't be waited for is refused, and nothing has changed", "[conformance][signals]") {
  const auto before = test::open_descriptors();
  for (const int number : {SIGKILL, SIGSTOP, SIGSEGV, SIGFPE, 0, -1, 65, 1000}) {
    CHECK_THROWS_AS(signals({SIGUSR1, number}), ramie::usage_error);
  }
  CHECK_THROWS_AS(signals({}), ramie::usage_error);
  CHECK_THROWS_AS(signals({SIGUSR1, 32}), std::system_error);  // the threads' library keeps it for itself
  CHECK(disposition(SIGUSR1) == SIG_DFL);
  CHECK(test::open_descriptors() == before);
}

TEST_CASE("a handler leaves errno alone", "[conformance][signals]") {
  const int lowest = ::dup(STDERR_FILENO);  // the next descriptor to be opened has this number
  REQUIRE(lowest >= 0);
  ::close(lowest);
  const signals s{SIGUSR1, SIGUSR2};
  errno = 77;
  (void)::raise(SIGUSR1);
  CHECK(errno == 77);
  // Nothing more fits into its eventfd: the handler's own call fails, and sets errno.
  REQUIRE(::eventfd_write(lowest, 0xffff'ffff'ffff'fffd) == 0);
  REQUIRE((::eventfd_write(lowest, 1) != 0 && errno == EAGAIN));
  errno = 77;
  (void)::raise(SIGUSR2);
  CHECK(errno == 77);
}

TEST_CASE("objects come and go while signals come", "[conformance][signals]") {
  with_each_mechanism([](findings& found) {
    const signals keeps_it_harmless{SIGUSR1};
    std::atomic<bool> over{false};
    // To the thread itself: one to the process may be delivered after the last object has gone, and end the program.
    std::thread sender([&] {
      while (!over) (void)::raise(SIGUSR1);
    });
    ramie::nursery n;
    std::atomic<int> got{0};
    for (int i = 0; i < 4; ++i) {
      n.spawn([&] {
        for (int k = 0; k < test::scaled(20, 5); ++k) {
          signals s{SIGUSR1, SIGUSR2};
          got += s.wait() == SIGUSR1;
        }
      });
    }
    n.join();
    over = true;
    sender.join();
    EXPECT(found, got == 4 * test::scaled(20, 5));
  });
}

// PR12: the second object has the place of the first, which was told of a signal that nobody took.
TEST_CASE("signals that nobody took are not remembered for the next object", "[conformance][signals]") {
  {
    signals first({SIGUSR1});
    (void)::raise(SIGUSR1);
  }
  signals second({SIGUSR1});
  std::error_code ec;
  CHECK_FALSE(second.wait(ec, deadline(1ms)).has_value());
  CHECK_FALSE(ec);
  (void)::raise(SIGUSR1);
  CHECK(second.wait(ec, deadline(10s)) == SIGUSR1);
}

}  // namespace conformance_signals
