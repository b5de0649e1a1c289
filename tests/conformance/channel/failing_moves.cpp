// SPDX-License-Identifier: BSL-1.0
// Elements whose move throws, at every place where a channel moves one: whose exception it is, and that nothing else
// happens.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/number_in.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_failing_moves {

using namespace std::chrono_literals;
using ramie::channel;
using namespace test;

struct broken {};

// Moves number `first` to `last` from arm() on throw, or every `period`-th; the source is then as it was.
class throwing {
 public:
  throwing(int number, test::census& people) : number_(number), person_(people) {}
  throwing(throwing&& other) : number_(moved(other)), person_(std::move(other.person_)) {}
  [[nodiscard]] int number() const { return number_; }

  static void arm(int first, int last) {
    moves = 0;
    period = 0;
    first_failure = first;
    last_failure = last;
  }
  static void arm(int k) { arm(k, k); }
  static void arm_every(int k) {
    arm(0);
    period = k;
  }
  static void disarm() { arm(0); }
  static inline std::atomic<int> moves{0};

 private:
  static int moved(throwing& other) {
    const int k = moves.fetch_add(1) + 1;
    const bool fails = period > 0 ? k % period == 0 : k >= first_failure && k <= last_failure;
    if (fails) throw broken();
    return std::exchange(other.number_, -1);
  }
  static inline std::atomic<int> first_failure{0}, last_failure{0}, period{0};
  int number_;
  test::citizen person_;
};

using failing_channel = channel<throwing>;

std::string received(const failing_channel& ch) {
  try {
    const auto got = ch.recv();
    return got ? note(got->number()) : "nothing";
  } catch (const broken&) {
    return "broken";
  }
}
// Also says what became of the element.
std::string sent(const failing_channel& ch, throwing&& it) {
  try {
    const bool done = ch.send(std::move(it));
    return note(done ? "sent" : "refused", it.number());
  } catch (const broken&) {
    return note("broken", it.number());
  }
}

// Gives the body a census that must come out even.
template <class Body>
void everywhere_nobody_left(const std::string& expected, Body body) {
  everywhere(expected + "; 0 left", [&body](others& them) {
    test::census people;
    throwing::disarm();
    const std::string seen = body(them, people);
    throwing::disarm();
    return note(seen + ";", people.alive(), "left");
  });
}

TEST_CASE("a move into the buffer that fails leaves the element with its sender", "[conformance][channel]") {
  everywhere_nobody_left("broken 2, 1 there; sent -1; 1 2", [](others&, test::census& people) {
    const failing_channel ch(2);
    (void)ch.try_send(throwing(1, people));
    throwing mine(2, people);
    throwing::arm(1);
    const auto first = sent(ch, std::move(mine));
    const auto len = ch.size();
    const auto again = sent(ch, std::move(mine));
    const auto a = received(ch), b = received(ch);
    return note(first + ",", len, "there;", again + ";", a, b);
  });
}

TEST_CASE("a move out of the buffer that fails leaves the element there", "[conformance][channel]") {
  everywhere_nobody_left("broken, 2 there; 1 2", [](others&, test::census& people) {
    const failing_channel ch(2);
    (void)ch.try_send(throwing(1, people));
    (void)ch.try_send(throwing(2, people));
    throwing::arm(1);
    const auto first = received(ch);
    const auto len = ch.size();
    const auto a = received(ch), b = received(ch);
    return note(first + ",", len, "there;", a, b);
  });
}

TEST_CASE("a failed move to a waiting receiver is the sender's, and the receiver stays the first",
          "[conformance][channel]") {
  for (const std::size_t capacity : {0u, 2u}) {
    everywhere_nobody_left("broken 5; 10 11", [capacity](others& them, test::census& people) {
      channel_observer s;
      const failing_channel ch(capacity);
      std::array<std::string, 2> got;
      for (std::size_t i = 0; i < 2; ++i) {
        them.spawn([&, i] { got[i] = received(ch); });
        s.wait_listed(static_cast<int>(i) + 1);
      }
      throwing mine(5, people);
      throwing::arm(1);
      const auto first = sent(ch, std::move(mine));
      s.wait_listed(3);
      (void)ch.try_send(throwing(10, people));
      (void)ch.try_send(throwing(11, people));
      them.join();
      return note(first + ";", got[0], got[1]);
    });
  }
}

TEST_CASE("a failed move from a waiting sender is the receiver's, and the sender stays the first",
          "[conformance][channel]") {
  everywhere_nobody_left("broken 1 2; sent -1 sent -1", [](others& them, test::census& people) {
    channel_observer s;
    const failing_channel ch(0);
    std::array<std::string, 2> how;
    for (std::size_t i = 0; i < 2; ++i) {
      them.spawn([&, i] { how[i] = sent(ch, throwing(static_cast<int>(i) + 1, people)); });
      s.wait_listed(static_cast<int>(i) + 1);
    }
    throwing::arm(1);
    const auto first = received(ch);
    s.wait_listed(3);
    const auto a = received(ch), b = received(ch);
    them.join();
    return note(first, a, b + ";", how[0], how[1]);
  });
}

TEST_CASE("a waiting sender whose element can't be moved up tries again by itself", "[conformance][channel]") {
  everywhere_nobody_left("1 3 2; sent -1 sent -1", [](others& them, test::census& people) {
    channel_observer s;
    const failing_channel ch(1);
    (void)ch.try_send(throwing(1, people));
    std::array<std::string, 2> how;
    for (std::size_t i = 0; i < 2; ++i) {
      them.spawn([&, i] { how[i] = sent(ch, throwing(static_cast<int>(i) + 2, people)); });
      s.wait_listed(static_cast<int>(i) + 1);
    }
    throwing::arm(2);  // the receiver's own move is the first
    const auto a = received(ch);
    s.wait_listed(3);
    const auto b = received(ch), c = received(ch);
    them.join();
    return note(a, b, c + ";", how[0], how[1]);
  });
  // And when it fails again, that is its own exception. The receiver has noticed nothing.
  everywhere_nobody_left("1; broken 2; 0 there; sent -1", [](others& them, test::census& people) {
    channel_observer s;
    const failing_channel ch(1);
    (void)ch.try_send(throwing(1, people));
    std::string how;
    them.spawn([&] { how = sent(ch, throwing(2, people)); });
    s.wait_listed(1);
    throwing::arm(2, 3);
    const auto a = received(ch);
    them.join();
    const auto len = ch.size();
    return note(a + ";", how + ";", len, "there;", sent(ch, throwing(3, people)));
  });
}

TEST_CASE("a waiting sender whose element can't be moved at the close is refused, the others are not",
          "[conformance][channel]") {
  everywhere_nobody_left("sent -1 refused 2 sent -1; 1 3 nothing", [](others& them, test::census& people) {
    channel_observer s;
    const failing_channel ch(0);
    std::array<std::string, 3> how;
    for (std::size_t i = 0; i < 3; ++i) {
      them.spawn([&, i] { how[i] = sent(ch, throwing(static_cast<int>(i) + 1, people)); });
      s.wait_listed(static_cast<int>(i) + 1);
    }
    throwing::arm(2);
    ch.close();
    them.join();
    const auto a = received(ch), b = received(ch), c = received(ch);
    return note(how[0], how[1], how[2] + ";", a, b, c);
  });
}

TEST_CASE("whichever move fails, every element is with exactly one party", "[conformance][channel]") {
  const auto script = [](std::size_t capacity, others& them, test::census& people) {
    const failing_channel ch(capacity);
    std::array<std::atomic<int>, 12> seen{};
    std::atomic<int> ready{0};
    const auto drain = [&](int most) {
      for (std::string got; most > 0 && (got = received(ch)) != "nothing"; --most) {
        if (got == "broken") continue;
        seen[static_cast<std::size_t>(test::number_in(got))].fetch_add(1);
      }
    };
    them.spawn([&] { drain(3); });
    for (int i = 0; i < 4; ++i) {
      them.spawn([&, i] {
        for (int k = 0; k < 3; ++k) {
          throwing mine(3 * i + k, people);
          while (sent(ch, std::move(mine)).starts_with("broken")) {
          }
          if (mine.number() >= 0) seen[static_cast<std::size_t>(mine.number())].fetch_add(1);
          if (k == 1) ready.fetch_add(1);
        }
      });
    }
    drain(4);
    test::yield_until([&] { return ready.load() > 0 || ch.size() == ch.capacity(); });
    ch.close();
    drain(1'000);
    them.join();
    drain(1'000);  // what the first receiver left
    int wrong = 0;
    for (const auto& times : seen) wrong += times.load() != 1;
    return note(wrong, "wrong");
  };
  for (const std::size_t capacity : {0u, 1u, 3u}) {
    for (int k = 1; k < test::scaled(30, 8); ++k) {
      INFO("capacity " << capacity << ", move " << k);
      everywhere_nobody_left("0 wrong", [&](others& them, test::census& people) {
        throwing::arm(k);
        return script(capacity, them, people);
      });
      if (k == 1) continue;
      everywhere_nobody_left("0 wrong", [&](others& them, test::census& people) {
        throwing::arm_every(k);
        return script(capacity, them, people);
      });
    }
  }
}

// Every way to receive an element: says its number, or throws what the move has thrown.
using way_to_receive = int (*)(const failing_channel&);
constexpr std::array<way_to_receive, 7> ways_to_receive{
    [](const failing_channel& ch) { return ch.recv()->number(); },
    [](const failing_channel& ch) { return ch.begin()->number(); },
    [](const failing_channel& ch) { return ch.try_recv()->number(); },
    [](const failing_channel& ch) { return ch.recv_for(1h)->number(); },
    [](const failing_channel& ch) {
      int number = 0;
      ramie::select(ramie::on_recv(ch, [&](std::optional<throwing>&& got) { number = got->number(); }));
      return number;
    },
    [](const failing_channel& ch) {
      int number = 0;
      ramie::select(ramie::on_recv(ch, [&](const auto& got) { number = got->number(); }), ramie::otherwise([] {}));
      return number;
    },
    [](const failing_channel& ch) {
      int number = 0;
      ramie::selector any;
      any.on_recv(ch, [&](auto&& got) { number = got->number(); });
      any.wait();
      return number;
    }};

// An element that leaves the channel has arrived: its sender was told so, and nobody else can get it any more.
TEST_CASE("whichever way an element is received, it is moved once, and stays where it is if that fails",
          "[conformance][channel]") {
  enum class from { buffer, sender, behind };
  for (const auto source : {from::buffer, from::sender, from::behind}) {
    for (std::size_t way = 0; way < ways_to_receive.size(); ++way) {
      for (int k = 1; k <= 3; ++k) {
        INFO("from " << static_cast<int>(source) << ", way " << way << ", move " << k);
        // The close moves a sender's element behind the buffer.
        const char* const retried = source == from::sender ? "broken, then 7, after 3 moves" : "broken, then 7, after 2 moves";
        const std::string expected = k == 1 ? retried : "7, after 1 moves";
        everywhere_nobody_left(expected + "; sent -1", [&](others& them, test::census& people) {
          channel_observer s;
          const failing_channel ch(source == from::buffer ? 1 : 0);
          std::string how;
          std::atomic<bool> told{false};
          if (source == from::buffer) {
            how = sent(ch, throwing(7, people));
          } else {
            them.spawn([&] {
              how = sent(ch, throwing(7, people));
              told.store(true);
            });
            s.wait_listed(1);
          }
          if (source == from::behind) ch.close();
          throwing::arm(k);
          std::string seen;
          try {
            seen = note(ways_to_receive[way](ch));
          } catch (const broken&) {
            // The sender is back in its place, or was told something wrong.
            if (source == from::sender) test::yield_until([&] { return s.listed() == 2 || told.load(); });
            ch.close();
            seen = note("broken, then", received(ch));
          }
          const int moves = throwing::moves.load();
          them.join();
          return note(seen + ", after", moves, "moves;", how);
        });
      }
    }
  }
}

TEST_CASE("a select that waits gets its element by one move, which is the sender's", "[conformance][channel]") {
  for (const bool by_selector : {false, true}) {
    everywhere_nobody_left("broken 7, then sent -1, after 2 moves; 7", [by_selector](others& them, test::census& people) {
      channel_observer s;
      const failing_channel ch(0);
      int got = 0;
      them.spawn([&] { got = ways_to_receive[by_selector ? 6 : 4](ch); });
      s.wait_listed(1);
      throwing mine(7, people);
      throwing::arm(1);
      const auto first = sent(ch, std::move(mine));
      const auto second = sent(ch, std::move(mine));
      them.join();
      const int moves = throwing::moves.load();
      return note(first + ", then", second + ", after", moves, "moves;", got);
    });
  }
}

TEST_CASE("the element of a case is gone when its handler has ended, also by an exception", "[conformance][channel]") {
  everywhere_nobody_left("1 there, 0 after; 1 there, 0 after", [](others&, test::census& people) {
    const failing_channel ch(1);
    ramie::selector any;
    long there = 0;
    bool fails = false;
    any.on_recv(ch, [&](std::optional<throwing>&&) {
      there = people.alive();
      if (fails) throw broken();
    });
    std::string seen;
    for (;; fails = true) {
      (void)ch.try_send(throwing(1, people));
      try {
        any.wait();
      } catch (const broken&) {
      }
      seen += note(there, "there,", people.alive(), "after");
      if (fails) return seen;
      seen += "; ";
    }
  });
}

}  // namespace conformance_channel_failing_moves
