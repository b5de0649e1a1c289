// SPDX-License-Identifier: BSL-1.0
// Waits on a channel that are cancelled: nothing is lost, nothing is taken, nobody stays listed.
#include <chrono>
#include <optional>

#include <ramie/ramie.hpp>
#include <support/reports.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_cancelling {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::channel;
using ramie::channel_status;
using ramie::nursery;
using namespace test;

// Whether f() was cut short by a cancellation, which goes on.
template <class F>
void notice(bool& cut_short, F f) {
  try {
    f();
  } catch (const cancelled&) {
    cut_short = true;
    throw;
  }
}

TEST_CASE("a cancelled send keeps its element, and nobody can receive it", "[conformance][channel][cancel]") {
  for (const std::size_t capacity : {0u, 1u}) {
    among_fibers("true 5 1 | " + note(capacity) + " 7", [capacity](others&) {
      channel_observer s;
      const channel<element> ch(capacity);
      for (std::size_t i = 0; i < capacity; ++i) (void)ch.try_send(make(7));
      element mine = make(5);
      bool cut_short = false;
      nursery n;
      n.spawn([&] { notice(cut_short, [&] { ch.send(std::move(mine)); }); });
      s.wait_listed(1);
      n.cancel();
      n.join();
      int received = 0;
      while (ch.try_recv()) ++received;
      const bool works = ch.try_send(make(7)) == (capacity == 0 ? channel_status::would_block : channel_status::ok);
      return note(cut_short, mine, s.count(channel_moment::will_unpublish), "|", received, works ? 7 : 0);
    });
  }
}

TEST_CASE("a cancelled receive takes nothing: the next receiver gets what comes", "[conformance][channel][cancel]") {
  for (const bool unlisted : {false, true}) {
    among_fibers("true 5 true", [unlisted](others&) {
      channel_observer s;
      const channel<int> ch(0);
      std::optional<int> got;
      bool cut_short = false;
      nursery patient;
      nursery hasty;
      hasty.spawn([&] { notice(cut_short, [&] { (void)ch.recv(); }); });
      s.wait_listed(1);
      patient.spawn([&] { got = ch.recv(); });
      s.wait_listed(2);
      hasty.cancel();
      if (unlisted) hasty.join();  // else it is woken, perhaps still listed, and must be passed over
      bool sent = false;
      {
        const ramie::shield from_our_own_cancellation;
        sent = ch.send(5);  // a try could come while the patient one is awake: any cancellation wakes who just parks
      }
      if (!unlisted) hasty.join();
      patient.join();
      return note(cut_short, got, sent);
    });
  }
}

TEST_CASE("a wait that has ended but is still listed is passed over", "[conformance][channel][cancel]") {
  among_fibers("would block true | would block 9", [](others&) {
    channel_observer s;
    const channel<element> ch(0);
    channel_status sent{}, received{};
    bool cut_short = false;
    nursery first;
    s.step_in(channel_moment::will_unpublish, [&] { sent = ch.try_send(make(1)); });
    first.spawn([&] { notice(cut_short, [&] { (void)ch.recv(); }); });
    s.wait_listed(1);
    first.cancel();
    first.join();
    element mine = make(9);
    nursery second;
    s.step_in(channel_moment::will_unpublish, [&] { received = ch.try_recv().status(); });
    second.spawn([&] { ch.send(std::move(mine)); });
    s.wait_listed(2);
    second.cancel();
    second.join();
    return note(sent, cut_short, "|", received, mine);
  });
}

TEST_CASE("who has found a partner can't be cancelled away", "[conformance][channel][cancel]") {
  among_fibers("7 true | true moved 8 true", [](others&) {
    channel_observer s;
    const channel<element> ch(0);
    std::optional<element> got, taken;
    bool noticed_later = false, sent = false, also_noticed = false;
    element mine = make(8);
    nursery receivers;
    receivers.spawn([&] {
      got = ch.recv();
      notice(noticed_later, [] { ramie::check_cancelled(); });
    });
    s.wait_listed(1);
    s.step_in(channel_moment::will_complete, [&] { receivers.cancel(); });
    (void)ch.try_send(make(7));
    receivers.join();
    nursery senders;
    senders.spawn([&] {
      sent = ch.send(std::move(mine));
      notice(also_noticed, [] { ramie::check_cancelled(); });
    });
    s.wait_listed(2);
    s.step_in(channel_moment::will_complete, [&] { senders.cancel(); });
    taken = ch.try_recv().to_optional();
    senders.join();
    return note(got, noticed_later, "|", sent, mine, taken, also_noticed);
  });
}

TEST_CASE("a cancellation between listing and parking is not missed, and leaves nothing behind",
          "[conformance][channel][cancel]") {
  among_fibers("true would block | true 6 would block", [](others&) {
    channel_observer s;
    const channel<element> ch(0);
    bool cut_short = false, too = false;
    element mine = make(6);
    nursery first;
    s.step_in(channel_moment::has_published, [&] { first.cancel(); });
    first.spawn([&] { notice(cut_short, [&] { (void)ch.recv(); }); });
    first.join();
    const auto sent = ch.try_send(make(1));
    nursery second;
    s.step_in(channel_moment::has_published, [&] { second.cancel(); });
    second.spawn([&] { notice(too, [&] { ch.send(std::move(mine)); }); });
    second.join();
    return note(cut_short, sent, "|", too, mine, ch.try_recv().status());
  });
}

TEST_CASE("an operation of a cancelled fiber does not begin, unless it can't wait", "[conformance][channel][cancel]") {
  test::reports about_the_swallowed_cancellation;
  among_fibers("true true 2 ok 1 | 2", [](others&) {
    const channel<element> ch(2);
    (void)ch.try_send(make(1));
    element mine = make(2);
    bool send_refused = false, recv_refused = false;
    channel_status sent{};
    std::optional<element> got;
    nursery n;
    n.cancel();
    try {
      ch.send(std::move(mine));
    } catch (const cancelled&) {
      send_refused = true;
    }
    try {
      (void)ch.recv();
    } catch (const cancelled&) {
      recv_refused = true;
    }
    const auto untouched = note(mine);
    sent = ch.try_send(std::move(mine));
    got = ch.try_recv().to_optional();
    n.join();
    return note(send_refused, recv_refused, untouched, sent, got, "|", ch.recv());
  });
}

TEST_CASE("a timeout around an operation loses nothing", "[conformance][channel][cancel]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    ramie::manual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    const channel<element> ch(0);
    element mine = make(3);
    bool in_time = true;
    std::optional<std::optional<element>> got = std::optional<element>();
    channel_observer s;
    ramie::run(o, [&] {
      nursery n;
      n.spawn([&] { in_time = ramie::with_timeout(10s, [&] { ch.send(std::move(mine)); }); });
      s.wait_listed(1);
      clock.advance(10s);
      n.join();
      nursery m;
      m.spawn([&] { got = ramie::with_timeout(10s, [&] { return ch.recv(); }); });
      s.wait_listed(2);
      clock.advance(10s);
      m.join();
    });
    CHECK_FALSE(in_time);
    CHECK(note(mine) == "3");
    CHECK_FALSE(got.has_value());
    CHECK(ch.try_recv().status() == channel_status::would_block);
    CHECK(ch.try_send(make(1)) == channel_status::would_block);
  }
}

// Everybody who is about to park when anything is cancelled wakes once for nothing.
TEST_CASE("a waiter woken for nothing keeps its place", "[conformance][channel][cancel]") {
  std::optional<int> first, second;
  ramie::run(with_workers(1), [&] {
    test::channel_observer s;
    const ramie::channel<int> c(0);
    ramie::nursery n, unrelated;
    s.step_in(test::channel_moment::has_published, [&] { unrelated.cancel(); });
    n.spawn([&] { first = c.recv(); });
    n.spawn([&] { second = c.recv(); });
    n.spawn([&] {
      s.wait_listed(3);  // the first one twice
      (void)c.try_send(1);
      (void)c.try_send(2);
    });
    unrelated.join();
    n.join();
  });
  CHECK(test::note(first, second) == "1 2");
}

// C13
TEST_CASE("no operation of a cancelled fiber begins, with a deadline or without", "[conformance][channel][cancel]") {
  const test::reports about_the_swallowed_cancellation;
  int refused = 0;
  std::size_t left = 99;
  ramie::run(with_workers(1), [&] {
    const channel<int> c(2);
    for (int i = 0; i < 200; ++i) (void)c.try_send(1), (void)c.try_recv();  // the lock is granted to the worker then
    (void)c.try_send(1);
    nursery n;
    n.cancel();
    const auto attempt = [&](auto operation) {
      try {
        operation();
      } catch (const cancelled&) {
        ++refused;
      }
    };
    attempt([&] { c.send(2); });
    attempt([&] { (void)c.recv(); });
    attempt([&] { (void)c.send_for(2, 1h); });
    attempt([&] { (void)c.recv_for(1h); });
    left = c.size();
  });
  CHECK(refused == 4);
  CHECK(left == 1);
}

}  // namespace conformance_channel_cancelling
