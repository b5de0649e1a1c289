// SPDX-License-Identifier: BSL-1.0
// select when others are busy at the same time: meetings of selects, exact interleavings, moves that throw.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/throwing_moves.hpp>
#include <support/starting_line.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

#include "channel/src/core.hpp"

namespace conformance_channel_select_races {

using ramie::channel_internal::channel_moment;
using namespace test;
using namespace test::select_words;

// Does something at the first such moment. It runs inside the operation that has come there and must not wait.
class step_in {
 public:
  step_in(channel_moment when, std::function<void()> what) {
    next(when, std::move(what));
    ramie::channel_internal::on_channel_moment.store([](channel_moment now, ramie::channel_internal::channel_core&) {
      if (now != moment || action == nullptr) return;
      const auto once = std::exchange(action, nullptr);
      once();
    });
  }
  ~step_in() { ramie::channel_internal::on_channel_moment.store(nullptr); }
  step_in(const step_in&) = delete;
  step_in& operator=(const step_in&) = delete;
  // Inside an action: what comes after it.
  static void next(channel_moment when, std::function<void()> what) {
    moment = when;
    action = std::move(what);
  }
  [[nodiscard]] static bool happened() { return action == nullptr; }

 private:
  static inline channel_moment moment{};
  static inline std::function<void()> action;
};

// One of two that meet. Each select can be ended by the other's only: they must agree which way it went.
template <class Before>
std::vector<int> talk(const channel<int>& out, const channel<int>& in, int sign, int rounds, Before each_round) {
  std::vector<int> said;
  for (int i = 1; i <= rounds; ++i) {
    each_round();
    int mine = sign * i;
    select(on_send(out, mine, [&](bool) { said.push_back(sign * i); }),
           on_recv(in, [&](std::optional<int> v) { said.push_back(v.value_or(0)); }));
  }
  return said;
}

void check_talk(const std::vector<int>& left, const std::vector<int>& right, int rounds) {
  CHECK(left.size() == static_cast<std::size_t>(rounds));
  CHECK(left == right);
  const auto one_way = std::count_if(left.begin(), left.end(), [](int v) { return v > 0; });
  CHECK((one_way > rounds / 20 && one_way < rounds - rounds / 20));
}

TEST_CASE("two selects meet each other, either way", "[conformance][select]") {
  const int rounds = test::scaled(20'000, 1'000);
  const channel<int> x(0), y(0);
  for (const unsigned setup : {1u, 2u, 4u, 8u, 100u, 101u}) {
    auto o = with_workers(setup < 100 ? setup : setup - 96);
    if (setup >= 100) o.chaos = ramie::chaos_mode{setup};
    std::vector<int> left, right;
    ramie::run(o, [&] {
      nursery n;
      n.spawn([&] { left = talk(x, y, 1, rounds, whatever); });
      n.spawn([&] { right = talk(y, x, -1, rounds, whatever); });
      n.join();
    });
    check_talk(left, right, rounds);
  }
  std::vector<int> right;
  test::starting_line at_once;
  std::thread other([&] { right = talk(y, x, -1, rounds, [&] { at_once.meet(); }); });
  const auto left = talk(x, y, 1, rounds, [&] { at_once.meet(); });
  other.join();
  check_talk(left, right, rounds);
}

TEST_CASE("many selects meet on a few channels, in both directions", "[conformance][select]") {
  const int fibers = test::scaled(16, 8), meetings = test::scaled(20'000, 2'000);
  for (const unsigned setup : {1u, 2u, 4u, 8u, 100u}) {
    auto o = with_workers(setup < 100 ? setup : 4);
    if (setup >= 100) o.chaos = ramie::chaos_mode{setup};
    std::atomic<long> sent{0}, received{0}, sends{0};
    long left_over = 0;
    ramie::run(o, [&] {
      const channel<int> c[3] = {channel<int>(0), channel<int>(0), channel<int>(1)};
      nursery n;
      for (int f = 0; f < fibers; ++f) {
        n.spawn([&, f] {
          const auto &x = c[f % 3], &y = c[(f + 1) % 3];  // some lock them in another order than they name them
          for (bool open = true; open;) {
            int a = f + 1, b = f + 1000;
            const auto given = [&](int what, bool done) {
              open = open && done;
              if (done) sent.fetch_add(what);
              if (done && sends.fetch_add(1) == meetings) {
                for (const auto& each : c) each.close();
              }
            };
            const auto taken = [&](std::optional<int> v) {
              open = open && v.has_value();
              received.fetch_add(v.value_or(0));
            };
            select(on_send(x, a, [&](bool done) { given(f + 1, done); }), on_recv(x, taken),
                   on_send(y, b, [&](bool done) { given(f + 1000, done); }), on_recv(y, taken));
          }
        });
      }
      n.join();
      for (const auto& each : c) {
        for (const int v : each) left_over += v;
      }
    });
    CHECK(sends.load() > meetings);
    CHECK(sent.load() == received.load() + left_over);
  }
}

TEST_CASE("a channel becomes ready between the asking and the listing", "[conformance][select][exact]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> a(0), b(1);
    channel<std::unique_ptr<int>> full(1);
    full.send(std::make_unique<int>(1));
    auto mine = std::make_unique<int>(2);
    int got = 0;
    const auto keep = [&](std::optional<int> v) { got = v ? *v : -1; };
    const auto meanwhile = [&](auto act) {
      const step_in then(channel_moment::will_publish, act);
      const auto which = select(on_recv(a, keep), on_recv(b, keep), on_send(full, mine, whatever));
      found.expect(then.happened());
      return which;
    };
    EXPECT(found, meanwhile([&] { b.send(7); }) == 1, got == 7, mine != nullptr);
    EXPECT(found, meanwhile([&] { (void)full.try_recv(); }) == 2, mine == nullptr, full.size() == 1);
    mine = std::make_unique<int>(3);
    EXPECT(found, meanwhile([&] { b.close(); }) == 1, got == -1);
    b = channel<int>(0);
    got = 0;
    EXPECT(found, meanwhile([&] { full.close(); }) == 2, mine != nullptr, got == 0);
    full = channel<std::unique_ptr<int>>(0);
    bool threw = false;
    try {
      (void)meanwhile([&] { a.close(std::make_exception_ptr(std::logic_error("closed"))); });
    } catch (const std::logic_error&) {
      threw = true;
    }
    EXPECT(found, threw, got == 0, b.try_send(1) == channel_status::would_block);
  });
}

TEST_CASE("a partner comes between the listing and the sleep", "[conformance][select][exact]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> a(0), b(0);
    channel<std::unique_ptr<int>> out(0);
    auto mine = std::make_unique<int>(2);
    int got = 0;
    const auto keep = [&](std::optional<int> v) { got = v ? *v : -1; };
    const auto meanwhile = [&](channel_moment when, auto act) {
      const step_in then(when, act);
      const auto which = select(on_recv(a, keep), on_recv(b, keep), on_send(out, mine, whatever));
      found.expect(then.happened());
      return which;
    };
    const auto off = [&] {  // nobody is to be met any more
      return a.try_send(1) == channel_status::would_block && b.try_send(1) == channel_status::would_block &&
             out.try_recv().status() == channel_status::would_block;
    };
    std::size_t which =
        meanwhile(channel_moment::has_published, [&] { EXPECT(found, b.try_send(7) == channel_status::ok, off()); });
    EXPECT(found, which == 1, got == 7, mine != nullptr, off());
    which = meanwhile(channel_moment::has_published, [&] {
      const auto r = out.try_recv();
      EXPECT(found, r, **r == 2, off());
    });
    EXPECT(found, which == 2, mine == nullptr, off());
    which = meanwhile(channel_moment::has_published, [&] {
      step_in::next(channel_moment::will_unpublish, [&] { found.expect(off()); });
      EXPECT(found, a.try_send(8) == channel_status::ok);
    });
    EXPECT(found, which == 0, got == 8, off());
    mine = std::make_unique<int>(3);
    EXPECT(found, meanwhile(channel_moment::has_published, [&] {
                    b.close();
                    a.close();
                    out.close();
                  }) == 1);
    EXPECT(found, got == -1, mine != nullptr, out.size() == 0);
  });
}

TEST_CASE("a select that is unlisting itself can't be met any more", "[conformance][select][exact]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    channel<int> a(0), b(0);
    nursery n;
    auto late = n.spawn([&] { return select(on_recv(a, whatever), on_recv(b, whatever), on_timeout(1s, whatever)); });
    ramie::yield();
    auto next = n.spawn([&] { return b.recv(); });
    ramie::yield();
    const step_in then(channel_moment::will_unpublish, [&] {
      EXPECT(found, a.try_send(1) == channel_status::would_block);
      EXPECT(found, b.try_send(2) == channel_status::ok);
      EXPECT(found, b.try_send(3) == channel_status::would_block);
    });
    clock.advance(1s);
    EXPECT(found, late.get() == 2, next.get() == 2, then.happened());
    n.join();
  });
}

TEST_CASE("a channel and a joinable at once: exactly one", "[conformance][select][exact]") {
  as_thread_and_fiber([](findings& found) {
    for (const bool channel_first : {true, false}) {
      channel<int> c(0);
      auto one = ramie::make_oneshot<int>();
      ramie::broadcast<int> news(2);
      auto reader = news.subscribe();
      const step_in then(channel_moment::has_published, [&] {
        const auto join = [&] { EXPECT(found, one.tx.send(1), news.send(2)); };
        if (!channel_first) join();
        const auto expected = channel_first ? channel_status::ok : channel_status::would_block;
        EXPECT(found, c.try_send(5) == expected);
        if (channel_first) join();
      });
      int got = 0;
      const auto which =
          select(on_ready(one.rx, whatever), on_recv(c, [&](auto v) { got = *v; }), on_ready(reader, whatever));
      EXPECT(found, then.happened(), (which == 1) == channel_first, (got == 5) == channel_first);
      EXPECT(found, one.rx.recv() == 1, *reader.recv() == 2);
      EXPECT(found, c.try_send(1) == channel_status::would_block);
    }
    for (const bool channel_too : {false, true}) {  // true before anything is listed
      channel<int> c(1);
      ramie::watch<int> level(0);
      auto viewer = level.subscribe();
      const step_in then(channel_moment::will_publish, [&] {
        level.send(1);
        if (channel_too) c.send(2);
      });
      const auto which = select(on_recv(c, whatever), on_ready(viewer, whatever));
      EXPECT(found, (which == 1 || channel_too), c.size() == (channel_too && which == 1));
      EXPECT(found, viewer.changed(), *viewer.get() == 1);
    }
  });
}

TEST_CASE("a handler that throws has happened", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> a(1), b(1);
    a.send(1);
    int element = 2;
    const auto fails = [](auto&&...) { throw std::runtime_error("handler"); };
    const auto throws = [&](auto&&... cases) {
      try {
        select(cases...);
      } catch (const std::runtime_error&) {
        return true;
      }
      return false;
    };
    EXPECT(found, throws(on_recv(a, fails), on_recv(b, fails)), a.size() == 0);
    EXPECT(found, throws(on_send(b, element, fails), on_recv(a, fails)), b.size() == 1);
    found.expect(throws(on_recv(a, whatever), otherwise(fails)));
    EXPECT(found, b.recv() == 2, a.try_recv().status() == channel_status::would_block);
  });
}

TEST_CASE("a move that throws under a select loses nothing", "[conformance][select]") {
  const auto keep = [](int& into) { return [&into](std::optional<throwing>&& v) { into = v->value(); }; };
  as_thread_and_fiber([&](findings& found) {  // at once
    channel<throwing> a(1), other(0);
    throwing mine(7);
    int got = 0;
    found.expect(falls(1, [&] { select(on_recv(other, whatever), on_send(a, mine, whatever)); }));
    EXPECT(found, mine.value() == 7, a.size() == 0);
    select(on_recv(other, whatever), on_send(a, mine, whatever));
    found.expect(falls(1, [&] { select(on_recv(a, keep(got)), on_recv(other, keep(got))); }));
    EXPECT(found, a.size() == 1, got == 0);
    select(on_recv(a, keep(got)), on_recv(other, keep(got)));
    EXPECT(found, got == 7);
  });
  as_fiber([&](findings& found, auto&) {  // waiting: the partner's move throws, and the select goes on waiting, first
    channel<throwing> c(0), other(0);
    int got = 0, next = 0;
    nursery n;
    n.spawn([&] { select(on_recv(other, whatever), on_recv(c, keep(got))); });
    ramie::yield();
    n.spawn([&] { next = c.recv()->value(); });
    ramie::yield();
    throwing mine(5);
    EXPECT(found, falls(1, [&] { (void)c.try_send(std::move(mine)); }), mine.value() == 5);
    ramie::yield();
    EXPECT(found, got == 0, next == 0);
    EXPECT(found, c.try_send(std::move(mine)) == channel_status::ok, c.try_send(throwing(6)) == channel_status::ok);
    n.join();
    EXPECT(found, got == 5, next == 6);
  });
  as_fiber([&](findings& found, auto&) {  // the same with a sending case
    channel<throwing> c(0), other(0);
    throwing mine(5), his(6);
    bool sent = false;
    nursery n;
    n.spawn([&] { select(on_recv(other, whatever), on_send(c, mine, [&](bool done) { sent = done; })); });
    ramie::yield();
    n.spawn([&] { c.send(std::move(his)); });
    ramie::yield();
    found.expect(falls(1, [&] { (void)c.try_recv(); }));
    ramie::yield();
    EXPECT(found, !sent, mine.value() == 5);
    EXPECT(found, c.recv()->value() == 5, c.recv()->value() == 6);
    n.join();
    found.expect(sent);
  });
}

TEST_CASE("a oneshot that settles between the asking and the listing ends the select", "[conformance][select][exact]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> never(0);
    auto one = ramie::make_oneshot<int>();
    const step_in then(channel_moment::will_publish, [&] { one.tx.send(1); });
    EXPECT(found, select(on_recv(never, whatever), on_ready(one.rx, whatever)) == 1, one.rx.recv() == 1);
  });
}

}  // namespace conformance_channel_select_races
