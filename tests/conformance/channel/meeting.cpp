// SPDX-License-Identifier: BSL-1.0
// How senders, receivers and closers of one channel meet: every rule by the one interleaving it is about.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_meeting {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::channel_status;
using namespace test;

// --- Admission ---

TEST_CASE("a send that finds the channel closed as it lists itself fails and keeps its element",
          "[conformance][channel]") {
  everywhere("false 1 0", [](others&) {
    channel_observer s;
    const channel<element> ch(0);
    s.step_in(channel_moment::will_publish, [&] { ch.close(); });
    element mine = make(1);
    const bool sent = ch.send(std::move(mine));
    return note(sent, mine, s.listed());
  });
}

TEST_CASE("a receive that finds the channel closed as it lists itself gets nothing and is not listed",
          "[conformance][channel]") {
  everywhere("nothing 0 closed", [](others&) {
    channel_observer s;
    const channel<element> ch(3);
    s.step_in(channel_moment::will_publish, [&] { ch.close(); });
    const auto got = ch.recv();
    return note(got, s.listed(), ch.try_recv().status());
  });
}

TEST_CASE("what comes just before an operation lists itself is not missed", "[conformance][channel]") {
  everywhere("7 true 1 0 | 8 moved 1", [](others&) {
    channel_observer s;
    const channel<element> ch(1);
    s.step_in(channel_moment::will_publish, [&] { (void)ch.try_send(make(7)); });
    const auto got = ch.recv();
    (void)ch.try_send(make(8));
    std::optional<element> first;
    s.step_in(channel_moment::will_publish, [&] { first = ch.try_recv().to_optional(); });
    element mine = make(9);
    const bool sent = ch.send(std::move(mine));
    return note(got, sent, ch.size(), s.listed(), "|", first, mine, ch.size());
  });
}

TEST_CASE("a partner may come between listing and parking", "[conformance][channel]") {
  everywhere("7 ok 0 | true 8 moved | 2 listed, 2 told, 0 withdrawn", [](others&) {
    channel_observer s;
    const channel<element> ch(0);
    channel_status sent{};
    s.step_in(channel_moment::has_published, [&] { sent = ch.try_send(make(7)); });
    const auto got = ch.recv();
    std::optional<element> taken;
    s.step_in(channel_moment::has_published, [&] { taken = ch.try_recv().to_optional(); });
    element mine = make(8);
    const bool done = ch.send(std::move(mine));
    return note(got, sent, ch.size(), "|", done, taken, mine, "|", s.listed(), "listed,",
                s.count(channel_moment::will_complete), "told,", s.count(channel_moment::will_unpublish), "withdrawn");
  });
}

TEST_CASE("a close may come between listing and parking", "[conformance][channel]") {
  everywhere("nothing | true moved 2 | 1 2 nothing", [](others&) {
    channel_observer s;
    const channel<element> empty(1), full(1);
    s.step_in(channel_moment::has_published, [&] { empty.close(); });
    const auto got = empty.recv();
    (void)full.try_send(make(1));
    s.step_in(channel_moment::has_published, [&] { full.close(); });
    element mine = make(2);
    const bool sent = full.send(std::move(mine));
    const auto len = full.size();
    const auto a = full.recv(), b = full.recv(), c = full.recv();
    return note(got, "|", sent, mine, len, "|", a, b, c);
  });
}

TEST_CASE("a waiting receiver gets the element directly although the buffer has room", "[conformance][channel]") {
  everywhere("0 0 5", [](others& them) {
    channel_observer s;
    const channel<int> ch(4);
    std::optional<int> got;
    them.spawn([&] { got = ch.recv(); });
    s.wait_listed(1);
    std::size_t while_told = 99;
    s.step_in(channel_moment::will_complete, [&] { while_told = ch.size(); });
    (void)ch.try_send(5);
    const auto after = ch.size();
    them.join();
    return note(while_told, after, got);
  });
}

TEST_CASE("waiting receivers are served in the order they came", "[conformance][channel]") {
  everywhere("10 11 12 13", [](others& them) {
    channel_observer s;
    const channel<int> ch(2);
    std::array<std::optional<int>, 4> got;
    for (int i = 0; i < 4; ++i) {
      them.spawn([&, i] { got[static_cast<std::size_t>(i)] = ch.recv(); });
      s.wait_listed(i + 1);
    }
    for (int i = 0; i < 4; ++i) (void)ch.try_send(10 + i);
    them.join();
    return note(got[0], got[1], got[2], got[3]);
  });
}

TEST_CASE("waiting senders are served in the order they came, and move up into the buffer", "[conformance][channel]") {
  for (const std::size_t capacity : {0u, 1u, 2u}) {
    everywhere("len as before; 0 1 2 3 4 5 true", [capacity](others& them) {
      channel_observer s;
      const channel<int> ch(capacity);
      const int filled = static_cast<int>(capacity);
      for (int i = 0; i < filled; ++i) (void)ch.try_send(i);
      std::atomic<int> sent{0};
      for (int i = filled; i < 6; ++i) {
        them.spawn([&, i] { sent.fetch_add(ch.send(i)); });
        s.wait_listed(i - filled + 1);
      }
      std::array<std::optional<int>, 6> got;
      bool as_before = true;
      for (int i = 0; i < 6; ++i) {
        got[static_cast<std::size_t>(i)] = ch.try_recv().to_optional();
        if (i < 6 - filled) as_before = as_before && ch.size() == capacity;
      }
      them.join();
      return note(as_before ? "len as before;" : "len changed;", got[0], got[1], got[2], got[3], got[4], got[5],
                  sent.load() == 6 - filled);
    });
  }
}

// --- Closing ---

TEST_CASE("receivers that wait when the channel is closed are told once", "[conformance][channel]") {
  everywhere("true; closed; 3 empty-handed; 3 listed, 1 telling, 0 withdrawn", [](others& them) {
    channel_observer s;
    const channel<int> ch(1);
    std::atomic<int> empty_handed{0};
    for (int i = 0; i < 3; ++i) them.spawn([&] { empty_handed.fetch_add(!ch.recv().has_value()); });
    s.wait_listed(3);
    channel_status when_told{};
    s.step_in(channel_moment::will_complete, [&] { when_told = ch.try_send(1); });
    const bool first = ch.close();
    them.join();
    return note(first ? "true;" : "false;", note(when_told) + ";", empty_handed.load(), "empty-handed;", s.listed(),
                "listed,", s.count(channel_moment::will_complete), "telling,", s.count(channel_moment::will_unpublish),
                "withdrawn");
  });
}

TEST_CASE("senders that wait when the channel is closed have been admitted, and come behind the buffer",
          "[conformance][channel]") {
  for (const int capacity : {0, 1, 2}) {
    everywhere("true 5 closed; 0 1 2 3 4 nothing; all sent", [capacity](others& them) {
      channel_observer s;
      const channel<element> ch(static_cast<std::size_t>(capacity));
      for (int i = 0; i < capacity; ++i) (void)ch.try_send(make(i));
      std::atomic<int> sent{0};
      for (int i = capacity; i < 5; ++i) {
        them.spawn([&, i] { sent.fetch_add(ch.send(make(i))); });
        s.wait_listed(i - capacity + 1);
      }
      const bool first = ch.close();
      them.join();
      const auto len = ch.size();
      const auto late = ch.try_send(make(9));
      std::array<std::optional<element>, 6> got;
      for (auto& g : got) g = ch.recv();
      return note(first, len, note(late) + ";", got[0], got[1], got[2], got[3], got[4], note(got[5]) + ";",
                  sent.load() == 5 - capacity ? "all sent" : "some refused");
    });
  }
}

TEST_CASE("a receiver that comes between the two steps of a close takes a waiting sender's element directly",
          "[conformance][channel]") {
  everywhere("closed 0 1 closed; 2 3 nothing; 3 sent", [](others& them) {
    channel_observer s;
    const channel<element> ch(1);
    (void)ch.try_send(make(0));
    std::atomic<int> sent{0};
    for (int i = 1; i < 4; ++i) {
      them.spawn([&, i] { sent.fetch_add(ch.send(make(i))); });
      s.wait_listed(i);
    }
    std::optional<element> a, b;
    channel_status late{}, refused{};
    s.step_in(channel_moment::has_closed, [&] {
      late = ch.try_send(make(9));
      a = ch.try_recv().to_optional();  // from the buffer; the first sender moves up
      b = ch.try_recv().to_optional();
      refused = ch.try_send(make(9));
    });
    ch.close();
    them.join();
    const auto c = ch.recv(), d = ch.recv(), e = ch.recv();
    return note(late, a, b, note(refused) + ";", c, d, note(e) + ";", sent.load(), "sent");
  });
  everywhere("4 0 nothing; 1 sent", [](others& them) {  // a rendezvous: nothing is left for the second step
    channel_observer s;
    const channel<element> ch(0);
    std::atomic<int> sent{0};
    them.spawn([&] { sent.fetch_add(ch.send(make(4))); });
    s.wait_listed(1);
    std::optional<element> got;
    s.step_in(channel_moment::has_closed, [&] { got = ch.try_recv().to_optional(); });
    ch.close();
    them.join();
    const auto len = ch.size();
    return note(got, len, note(ch.recv()) + ";", sent.load(), "sent");
  });
}

TEST_CASE("closing again, even halfway through a close, is harmless and says no", "[conformance][channel]") {
  everywhere("true false false; 1 nothing; true", [](others& them) {
    channel_observer s;
    const channel<int> ch(0);
    bool sent = false, inner = true;
    them.spawn([&] { sent = ch.send(1); });
    s.wait_listed(1);
    s.step_in(channel_moment::has_closed, [&] { inner = ch.close(); });
    const bool first = ch.close();
    const bool again = ch.close(std::make_exception_ptr(7));
    them.join();
    const auto a = ch.recv(), b = ch.recv();
    return note(first, inner, note(again) + ";", a, note(b) + ";", sent);
  });
  for (int round = 0; round < test::scaled(50, 10); ++round) {
    everywhere("1", [](others& them) {
      const channel<int> ch(0);
      std::atomic<int> closers{0};
      for (int i = 0; i < 4; ++i) them.spawn([&] { closers.fetch_add(ch.close()); });
      them.join();
      return note(closers.load());
    });
  }
}

// The number that fell out, or what the call gave.
template <class F>
std::string caught(F f) {
  try {
    return note(f());
  } catch (int e) {
    return "threw " + std::to_string(e);
  }
}

TEST_CASE("what a channel is closed with comes after its elements, to every receiver", "[conformance][channel]") {
  everywhere("1 2 3; threw 42 threw 42 threw 42 threw 42 threw 42", [](others& them) {
    channel_observer s;
    const channel<int> ch(1);
    (void)ch.try_send(1);
    for (int i = 2; i < 4; ++i) {
      them.spawn([&, i] { ch.send(i); });
      s.wait_listed(i - 1);
    }
    ch.close(std::make_exception_ptr(42));
    ch.close(std::make_exception_ptr(43));
    them.join();
    const auto a = ch.try_recv().to_optional(), b = ch.recv(), c = ch.recv_for(1h).to_optional();
    return note(a, b, note(c) + ";", caught([&] { return ch.recv(); }), caught([&] { return ch.try_recv().status(); }),
                caught([&] { return ch.recv_for(1h).status(); }), caught([&] { return *ch.begin(); }), caught([&] {
                  for (const int v : ch) return v;
                  return -1;
                }));
  });
  everywhere("threw 42 threw 42", [](others& them) {
    channel_observer s;
    const channel<int> ch(1);
    std::array<std::string, 2> got;
    them.spawn([&] { got[0] = caught([&] { return ch.recv(); }); });
    them.spawn([&] { got[1] = caught([&] { return ch.recv_for(1h).status(); }); });
    s.wait_listed(2);
    ch.close(std::make_exception_ptr(42));
    them.join();
    return note(got[0], got[1]);
  });
}

TEST_CASE("without memory at the close, waiting senders are refused and keep their elements",
          "[conformance][channel][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  everywhere("true 1; false 1 false 2; 0 nothing", [](others& them) {
    channel_observer s;
    const channel<element> ch(1);
    (void)ch.try_send(make(0));
    std::array<element, 2> theirs{make(1), make(2)};
    std::array<bool, 2> sent{true, true};
    for (std::size_t i = 0; i < 2; ++i) {
      them.spawn([&, i] { sent[i] = ch.send(std::move(theirs[i])); });
      s.wait_listed(static_cast<int>(i) + 1);
    }
    s.step_in(channel_moment::has_closed, [] { test::fail_allocation(1); });
    const bool closed = ch.close();
    test::fail_allocation(0);
    const auto len = ch.size();
    them.join();
    const auto a = ch.recv(), b = ch.recv();
    return note(closed, note(len) + ";", sent[0], theirs[0], sent[1], note(theirs[1]) + ";", a, b);
  });
}

// --- Counted ends ---

TEST_CASE("the last sender closes the channel", "[conformance][channel]") {
  everywhere("1 nothing false true", [](others& them) {
    channel_observer s;
    auto ends = ramie::make_channel<int>(1);
    auto second = ends.tx;
    std::optional<int> a, b;
    them.spawn([&] {
      a = ends.rx.recv();
      b = ends.rx.recv();
    });
    s.wait_listed(1);
    (void)ends.tx.try_send(1);
    s.wait_listed(2);
    ends.tx.reset();
    const bool early = ends.rx.is_closed();
    second = {};
    them.join();
    return note(a, b, early, ends.rx.is_closed());
  });
}

TEST_CASE("the last receiver gives waiting senders their elements back and destroys what was buffered",
          "[conformance][channel]") {
  everywhere("3 2; false kept false kept closed", [](others& them) {
    channel_observer s;
    test::census people;
    using person = std::unique_ptr<test::citizen>;
    auto ends = ramie::make_channel<person>(1);
    auto second = ends.rx;
    (void)ends.tx.try_send(std::make_unique<test::citizen>(people));
    std::array<person, 2> theirs{std::make_unique<test::citizen>(people), std::make_unique<test::citizen>(people)};
    std::array<bool, 2> sent{true, true};
    for (std::size_t i = 0; i < 2; ++i) them.spawn([&, i] { sent[i] = ends.tx.send(std::move(theirs[i])); });
    s.wait_listed(2);
    ends.rx.reset();
    const auto before = people.alive();
    second.reset();
    const auto after = people.alive();
    them.join();
    return note(before, note(after) + ";", sent[0], theirs[0] ? "kept" : "lost", sent[1], theirs[1] ? "kept" : "lost",
                ends.tx.try_send(nullptr));
  });
}

// C20
TEST_CASE("a channel is one allocation, its operations are none", "[conformance][channel][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  std::uint64_t making = 99, using_it = 99;
  ramie::run(with_workers(1), [&] {
    const auto before = test::allocations();
    channel<std::array<long, 40>> c(2);
    making = test::allocations() - before;
    channel<int> back(0);
    ramie::nursery n;
    n.spawn([&] {
      for (int i = 0; i < 100; ++i) (void)c.recv(), back.send(i);
    });
    const auto round = [&] {
      c.send({});
      (void)back.recv();
    };
    round();
    const auto at_work = test::allocations();
    for (int i = 1; i < 100; ++i) round();
    using_it = test::allocations() - at_work;
    n.join();
  });
  CHECK(making == 1);
  CHECK(using_it == 0);
}

}  // namespace conformance_channel_meeting
