// SPDX-License-Identifier: BSL-1.0
// Signals and ends of children as cases of select: taken only by winning, and nothing is lost.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "channel/src/core.hpp"
#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/cancelling.hpp>
#include <support/each_mechanism.hpp>
#include <support/processes.hpp>
#include <support/signals.hpp>

namespace conformance_select_cases {

using namespace std::chrono_literals;
using ramie::exit_status;
using ramie::on_exit;
using ramie::on_recv;
using ramie::on_signal;
using ramie::on_timeout;
using ramie::otherwise;
using ramie::process;
using ramie::select;
using ramie::signals;
using namespace test;

void never(int) {}

// What a select takes from it now, or 0.
int taken_at_once(signals& from) {
  int got = 0;
  select(on_signal(from, [&](int number) { got = number; }), otherwise([] {}));
  return got;
}
// What a select that waits for it alone takes from it.
int taken(signals& from) {
  int got = 0;
  select(on_signal(from, [&](int number) { got = number; }));
  return got;
}

TEST_CASE("a select takes a signal that has come, or waits for one", "[conformance][signals][select]") {
  with_each_mechanism_and_without([](findings& found) {
    signals s{SIGUSR1, SIGUSR2};
    EXPECT(found, taken_at_once(s) == 0);
    (void)::raise(SIGUSR1);
    (void)::raise(SIGUSR2);
    const int first = taken_at_once(s), second = taken(s);
    EXPECT(found, first + second == SIGUSR1 + SIGUSR2, first != second, taken_at_once(s) == 0);
    std::thread later([] { send_signal(SIGUSR2); });
    EXPECT(found, taken(s) == SIGUSR2);
    later.join();
    EXPECT(found, taken_at_once(s) == 0);
    EXPECT(found, select(on_signal(s, never), on_timeout(1ms, [] {})) == 1);
    (void)::raise(SIGUSR1);
    EXPECT(found, s.wait() == SIGUSR1, taken_at_once(s) == 0);  // and the other way round
  });
}

TEST_CASE("a signal stays for the next one where another case wins", "[conformance][signals][select]") {
  with_each_mechanism_and_without([](findings& found) {
    signals s{SIGUSR1};
    ramie::channel<int> numbers(1);
    int signals_won = 0, numbers_won = 0;
    for (int i = 0; i < 40; ++i) {
      (void)::raise(SIGUSR1);
      (void)numbers.try_send(i);
      std::set<std::size_t> winners;
      for (int k = 0; k < 2; ++k) {
        winners.insert(select(on_signal(s, [&](int) { signals_won += k == 0; }),
                              on_recv(numbers, [&](std::optional<int>) { numbers_won += k == 0; })));
      }
      EXPECT(found, winners.size() == 2, taken_at_once(s) == 0);
    }
    EXPECT(found, signals_won + numbers_won == 40);
  });
}

TEST_CASE("each signal goes to one of those who select or wait", "[conformance][signals][select]") {
  const std::multiset<int> all{SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
  with_each_mechanism([&](findings& found) {
    signals s{SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
    std::mutex lock;
    std::multiset<int> got;
    ramie::nursery n;
    for (std::size_t i = 0; i < all.size(); ++i) {
      n.spawn([&, i] {
        const int number = i % 2 == 0 ? taken(s) : s.wait();
        const std::lock_guard hold(lock);
        got.insert(number);
      });
    }
    std::thread sender([&] {
      for (const int number : all) send_signal(number);
    });
    n.join();
    sender.join();
    EXPECT(found, got == all, taken_at_once(s) == 0);
    std::error_code ec;
    EXPECT(found, !s.wait(ec, 0s), !ec);
  });
}

TEST_CASE("a select that is cancelled takes no signal", "[conformance][signals][select][cancel]") {
  with_each_mechanism([](findings& found) {
    signals s{SIGUSR1};
    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)taken(s); }));
    int got = 0;
    for (int i = 0; i < 30; ++i) {  // whichever comes first
      std::thread sender([] { send_signal(SIGUSR1); });
      const auto in_time = ramie::with_timeout(10us, [&] { got += taken(s) == SIGUSR1; });
      sender.join();
      if (!in_time) got += taken(s) == SIGUSR1;
    }
    EXPECT(found, got == 30, taken_at_once(s) == 0);
  });
}

// The event of the signal may have been told before the select lists itself.
TEST_CASE("a signal that comes just before a select lists itself is noticed", "[conformance][signals][select]") {
  using ramie::channel_internal::channel_moment;
  using ramie::channel_internal::on_channel_moment;
  static std::atomic<bool> raises{false};
  on_channel_moment.store([](channel_moment now, ramie::channel_internal::channel_core&) {
    if (now != channel_moment::will_publish || !raises.exchange(false)) return;
    (void)::raise(SIGUSR1);
    for (int i = 0; i < 20; ++i) std::this_thread::yield();  // lets the watcher have a look
  });
  const auto run = [](findings& found) {
    signals s{SIGUSR1};
    ramie::channel<int> silent(0);
    for (int i = 0; i < 50; ++i) {
      int got = 0;
      raises = true;
      select(on_signal(s, [&](int number) { got = number; }), on_recv(silent, [](std::optional<int>) {}));
      EXPECT(found, got == SIGUSR1);
    }
  };
  with_each_mechanism_and_without(run);
  on_channel_moment.store(nullptr);
}

TEST_CASE("a selector with a case on a signal is used again and again", "[conformance][signals][select]") {
  with_each_mechanism([](findings& found) {
    signals s{SIGUSR1};
    int got = 0;
    ramie::selector all;
    all.add(on_signal(s, [&](int number) { got += number == SIGUSR1; })).on_timeout(1h, [] {});
    for (int i = 0; i < 5; ++i) {
      std::thread sender([] { send_signal(SIGUSR1); });
      EXPECT(found, all.wait() == 0);
      sender.join();
    }
    EXPECT(found, got == 5);
  });
}

exit_status end_of(const process& p) {
  auto how = exit_status::unknown();
  select(on_exit(p, [&](exit_status status) { how = status; }));
  return how;
}

TEST_CASE("a select waits for the end of a child", "[conformance][processes][select]") {
  with_each_mechanism_and_without([](findings& found) {
    process p = test::waiting_child().spawn();
    EXPECT(found, select(on_exit(p, [](exit_status) {}), otherwise([] {})) == 1);
    EXPECT(found, select(on_exit(p, [](exit_status) {}), on_timeout(1ms, [] {})) == 1);
    p.standard_input().close();
    EXPECT(found, end_of(p) == test::found_its_end, end_of(p) == test::found_its_end);  // it says so again
    EXPECT(found, p.wait() == test::found_its_end);
    process waited = test::shell("exit 3").spawn();
    EXPECT(found, waited.wait() == exit_status::exited(3), end_of(waited) == exit_status::exited(3));
    process killed = test::waiting_child().spawn();
    killed.kill(SIGKILL);
    EXPECT(found, end_of(killed) == exit_status::killed(SIGKILL));
  });
}

TEST_CASE("all who select or wait for a child are told of its end", "[conformance][processes][select]") {
  with_each_mechanism([](findings& found) {
    process p = test::waiting_child().spawn();
    std::atomic<int> told{0};
    ramie::nursery n;
    for (int i = 0; i < 6; ++i) {
      n.spawn([&, i] { told += (i % 2 == 0 ? end_of(p) : p.wait()) == test::found_its_end; });
    }
    std::thread outside([&] { told += end_of(p) == test::found_its_end; });
    ramie::testing::wait_all_blocked();
    p.standard_input().close();
    n.join();
    outside.join();
    EXPECT(found, told == 7);
  });
}

TEST_CASE("a child that is not ours any more is an error of the select, none never ends",
          "[conformance][processes][select]") {
  with_each_mechanism_and_without([](findings& found) {
    auto ends = ramie::make_pipe();
    process p = ramie::process_builder("cat")
                    .standard_input(ramie::stdio::descriptor(ends.reader.native_handle()))
                    .spawn();
    const int id = p.id();
    p.detach();
    EXPECT(found, error_of([&] { (void)end_of(p); }) == std::errc::no_child_process);
    const process none;
    EXPECT(found, select(on_exit(none, [](exit_status) {}), otherwise([] {})) == 1);
    ends.writer.close();
    test::until([&] { return ::kill(id, 0) != 0; });
    test::let_reaper_finish();
  });
}

TEST_CASE("a select that is cancelled leaves its child alone", "[conformance][processes][select][cancel]") {
  with_each_mechanism([](findings& found) {
    process p = test::waiting_child().spawn();
    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)end_of(p); }), !p.try_wait());
    p.standard_input().close();
    EXPECT(found, end_of(p) == test::found_its_end);
  });
}

}  // namespace conformance_select_cases
