// SPDX-License-Identifier: BSL-1.0
// select: every case of a select that has to wait gets its share, whatever ends the wait.
//
// False alarms: let one case win each of n = 1,000 independent rounds with probability p. By Hoeffding's inequality it
// wins fewer than (p - t) n of them with probability at most exp(-2 n t^2). For p = 1/2 and 300 wins (t = 1/5) that is
// exp(-80) < 2e-35 a case; for p = 1/3 and 180 wins (t > 0.153) it is exp(-46.8) < 5e-21 a case. The whole file asks
// fewer than a hundred times, so a fair select fails here less than once in 10^18 runs. Without a shuffle the case that
// is listed first wins every round.
#include <array>
#include <functional>
#include <optional>
#include <string>

#include <ramie/ramie.hpp>
#include <support/findings.hpp>
#include <support/channel_observer.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_select_fair {

using namespace test;
using namespace test::select_words;

constexpr int rounds = 1'000;
constexpr int share_of_two = 300;
constexpr int share_of_three = 180;

// On one worker: `waits` is a select that has to wait; when it does, `serve` ends it. Says how often each case won.
template <std::size_t Cases, class Waits, class Serve>
std::array<int, Cases> wins(findings& found, Waits waits, Serve serve) {
  std::array<int, Cases> won{};
  for (int round = 0; round < rounds; ++round) {
    nursery n;
    auto which = n.spawn([&] { return waits(); });
    ramie::yield();
    found.expect(!which.done());
    serve(round);
    ++won[which.get()];
    n.join();
  }
  return won;
}

TEST_CASE("of several cases on one channel each wins its share of the waits", "[conformance][select][fair]") {
  as_fiber([](findings& found, auto&) {
    channel<int> c(0);
    const auto two = wins<2>(
        found, [&] { return select(on_recv(c, whatever), on_recv(c, whatever)); }, [&](int i) { c.send(i); });
    for (const int times : two) EXPECT(found, times >= share_of_two);
    const auto three = wins<3>(
        found, [&] { return select(on_recv(c, whatever), on_recv(c, whatever), on_recv(c, whatever)); },
        [&](int i) { c.send(i); });
    for (const int times : three) EXPECT(found, times >= share_of_three);
    int a = 1, b = 2;
    const auto senders =
        wins<2>(found, [&] { return select(on_send(c, a, whatever), on_send(c, b, whatever)); },
                [&](int) { found.expect(c.recv().has_value()); });
    for (const int times : senders) EXPECT(found, times >= share_of_two);
  });
}

TEST_CASE("a close is told to any of several cases on its channel", "[conformance][select][fair]") {
  as_fiber([](findings& found, auto&) {
    channel<int> c(0);
    const auto won = wins<2>(
        found,
        [&] {
          const channel<int> mine = c;  // which outlives the select; `c` is another one by then
          return select(on_recv(mine, whatever), on_recv(mine, whatever));
        },
        [&](int) {
          c.close();
          c = channel<int>(0);
        });
    for (const int times : won) EXPECT(found, times >= share_of_two);
  });
}

TEST_CASE("a full buffer takes from any of several cases that wait to send", "[conformance][select][fair]") {
  as_fiber([](findings& found, auto&) {
    channel<int> c(1);
    int a = 1, b = 2;
    std::array<int, 2> won{};
    c.send(0);
    for (int round = 0; round < rounds; ++round) {  // what is received makes room for the select's element
      nursery n;
      auto which = n.spawn([&] { return select(on_send(c, a, whatever), on_send(c, b, whatever)); });
      ramie::yield();
      EXPECT(found, c.try_recv().status() == channel_status::ok);
      const auto index = which.get();
      ++won[index];
      n.join();
      EXPECT(found, c.size() == 1);
    }
    for (const int times : won) EXPECT(found, times >= share_of_two);
  });
}

TEST_CASE("among several channels it is the partner that chooses", "[conformance][select][fair]") {
  as_fiber([](findings& found, auto&) {
    const channel<int> a(0), b(0);
    int x = 1, y = 2;
    // A select on the other side: it has shuffled its own cases.
    const auto with_select = wins<2>(
        found, [&] { return select(on_recv(a, whatever), on_recv(b, whatever)); },
        [&](int) { select(on_send(a, x, whatever), on_send(b, y, whatever)); });
    for (const int times : with_select) EXPECT(found, times >= share_of_two);
    // One that takes turns gets what it asks for. Of the two cases on `a` each has its share of those.
    std::array<int, 3> won{};
    for (int round = 0; round < 2 * rounds; ++round) {
      nursery n;
      auto which =
          n.spawn([&] { return select(on_recv(a, whatever), on_recv(b, whatever), on_recv(a, whatever)); });
      ramie::yield();
      (round % 2 == 0 ? a : b).send(round);
      const auto index = which.get();
      EXPECT(found, (index == 1) == (round % 2 == 1));
      ++won[index];
      n.join();
    }
    EXPECT(found, won[0] >= share_of_two, won[2] >= share_of_two);
  });
}

TEST_CASE("of several joinables that come true together each wins its share", "[conformance][select][fair]") {
  as_fiber([](findings& found, auto&) {
    const ramie::broadcast<int> news(1);
    std::array<int, 2> won{};
    for (int round = 0; round < rounds; ++round) {
      const auto first = news.subscribe(), second = news.subscribe();
      nursery n;
      auto which = n.spawn([&] { return select(on_ready(first, whatever), on_ready(second, whatever)); });
      ramie::yield();
      found.expect(!which.done());
      news.send(round);
      ++won[which.get()];
      n.join();
    }
    for (const int times : won) EXPECT(found, times >= share_of_two);
  });
}

// They come true after the select has asked and before it lists itself.
TEST_CASE("of several joinables that have come true while a select lists itself each wins its share",
          "[conformance][select][fair]") {
  as_thread_and_fiber([](findings& found) {
    test::channel_observer s;
    const channel<int> never(0);
    std::array<int, 3> won{};
    for (int round = 0; round < rounds; ++round) {
      auto one = ramie::make_oneshot<int>(), two = ramie::make_oneshot<int>();
      s.step_in(test::channel_moment::will_publish, [&] {
        one.tx.send(1);
        two.tx.send(2);
      });
      ++won[select(on_recv(never, whatever), on_ready(one.rx, whatever), on_ready(two.rx, whatever))];
    }
    EXPECT(found, won[0] == 0, won[1] >= share_of_two, won[2] >= share_of_two);
  });
}

// A stream: sometimes the select waits, sometimes its partner does, sometimes there is room.
TEST_CASE("a stream of bits from a select of both is neither all zeros nor all ones", "[conformance][select][fair]") {
  for (const std::size_t capacity : {0u, 1u, 1'000u}) {
    for (const unsigned workers : {1u, 2u}) {
      INFO("capacity " << capacity << ", workers " << workers);
      const int ones = ramie::run(test::with_workers(workers), [capacity] {
        const channel<int> bits(capacity);
        nursery n;
        auto sum = n.spawn([bits] {
          int all = 0;
          for (const int bit : bits) {
            all += bit;
            ramie::yield();
          }
          return all;
        });
        for (int round = 0; round < rounds; ++round) {
          int zero = 0, one = 1;
          select(on_send(bits, zero, whatever), on_send(bits, one, whatever));
        }
        bits.close();
        n.join();
        return sum.get();
      });
      CHECK(ones >= share_of_two);
      CHECK(ones <= rounds - share_of_two);
    }
  }
}

}  // namespace conformance_channel_select_fair
