// SPDX-License-Identifier: BSL-1.0
// Waits on a channel that end otherwise: cancelled, too late, on plain threads, out of turn, in another runtime.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/reports.hpp>
#include <support/stage.hpp>
#include <support/test.hpp>

namespace conformance_channel_waiting {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::channel;
using ramie::channel_status;
using ramie::nursery;
using test::among_fibers;
using test::channel_moment;
using test::element;
using test::everywhere;
using test::make;
using test::note;
using test::others;
using test::stage;
using test::with_workers;

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

// --- Cancelled ---

TEST_CASE("a cancelled send keeps its element, and nobody can receive it", "[conformance][channel][cancel]") {
  for (const std::size_t capacity : {0u, 1u}) {
    among_fibers("true 5 1 | " + note(capacity) + " 7", [capacity](others&) {
      stage s;
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
      stage s;
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
    stage s;
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
    stage s;
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
    taken = ch.try_recv().value();
    senders.join();
    return note(got, noticed_later, "|", sent, mine, taken, also_noticed);
  });
}

TEST_CASE("a cancellation between listing and parking is not missed, and leaves nothing behind",
          "[conformance][channel][cancel]") {
  among_fibers("true would block | true 6 would block", [](others&) {
    stage s;
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
    got = ch.try_recv().value();
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
    stage s;
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

// --- Too late ---

TEST_CASE("an operation with a deadline ends when the time has come, not before", "[conformance][channel][time]") {
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  const channel<element> empty(1), full(1);
  (void)full.try_send(make(0));
  element mine = make(4);
  std::atomic<int> ended{0};
  std::array<channel_status, 2> how{};
  int early = -1;
  stage s;
  ramie::run(o, [&] {
    nursery n;
    n.spawn([&] {
      how[0] = empty.recv_for(10s).status();
      ended.fetch_add(1);
    });
    n.spawn([&] {
      how[1] = full.send_until(std::move(mine), clock.now() + 10s);
      ended.fetch_add(1);
    });
    s.wait_listed(2);
    clock.advance(10s - 1ns);
    for (int i = 0; i < 20; ++i) ramie::yield();
    early = ended.load();
    clock.advance(1ns);
    n.join();
  });
  CHECK(early == 0);
  CHECK(how[0] == channel_status::timed_out);
  CHECK(how[1] == channel_status::timed_out);
  CHECK(note(mine) == "4");
  CHECK(empty.try_send(make(1)) == channel_status::ok);
  CHECK(empty.len() == 1);
  CHECK(note(full.try_recv().value()) == "0");
  CHECK(full.len() == 0);
}

TEST_CASE("who has found a partner is not too late any more", "[conformance][channel][time]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    ramie::manual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    const channel<element> ch(0);
    std::optional<element> got, taken;
    channel_status sent{};
    std::string too_late, passed_over;
    stage s;
    ramie::run(o, [&] {
      nursery n;
      n.spawn([&] { got = ch.recv_for(10s).value(); });
      s.wait_listed(1);
      s.step_in(channel_moment::will_complete, [&] { clock.advance(1h); });
      (void)ch.try_send(make(7));
      n.join();
      nursery m;
      m.spawn([&] { sent = ch.send_for(make(8), 10s); });
      s.wait_listed(2);
      s.step_in(channel_moment::will_complete, [&] { clock.advance(1h); });
      taken = ch.try_recv().value();
      m.join();
      nursery k;  // the other way round: too late, but still listed
      k.spawn([&] { too_late = note(ch.recv_for(10s).status()); });
      s.wait_listed(3);
      s.step_in(channel_moment::will_unpublish, [&] { passed_over = note(ch.try_send(make(9))); });
      clock.advance(10s);
      k.join();
    });
    CHECK(note(got, taken, sent) == "7 8 ok");
    CHECK(too_late == "timed out");
    CHECK(passed_over == "would block");
    CHECK(ch.try_recv().status() == channel_status::would_block);
  }
}

TEST_CASE("a deadline that has passed still tries once", "[conformance][channel][time]") {
  everywhere("ok timed out 2 | 1 timed out | 6 timed out", [](others&) {
    stage s;
    const channel<element> ch(1);
    element mine = make(2);
    const auto room = ch.send_for(make(1), -1s);
    const auto no_room = ch.send_until(std::move(mine), ramie::now() - 1h);
    const auto there = ch.recv_for(0s).value();
    const auto not_there = ch.recv_until(std::chrono::steady_clock::time_point::min()).status();
    s.step_in(channel_moment::will_publish, [&] { (void)ch.try_send(make(6)); });
    const auto just_now = ch.recv_for(0s).value();
    return note(room, no_room, mine, "|", there, not_there, "|", just_now, ch.recv_for(0s).status());
  });
}

TEST_CASE("deadlines beyond all time, and closes before them", "[conformance][channel][time]") {
  everywhere("closed closed 4 | closed closed", [](others& them) {
    stage s;
    const channel<element> ch(0), other(0);
    std::array<channel_status, 2> how{};
    element mine = make(4);
    them.spawn([&] { how[0] = ch.recv_for(std::chrono::hours::max()).status(); });
    them.spawn([&] { how[1] = other.recv_until(std::chrono::steady_clock::time_point::max()).status(); });
    s.wait_listed(2);
    ch.close();
    other.close();
    them.join();
    return note(how[0], how[1], mine, "|", ch.send_for(std::move(mine), 1h), ch.recv_for(1h).status());
  });
}

TEST_CASE("a plain thread's deadline is by the machine's clock", "[conformance][channel][time]") {
  const channel<element> ch(0);
  const auto before = std::chrono::steady_clock::now();
  element mine = make(4);
  CHECK(ch.recv_for(2ms).status() == channel_status::timed_out);
  CHECK(ch.send_for(std::move(mine), 2ms) == channel_status::timed_out);
  CHECK(std::chrono::steady_clock::now() - before >= 4ms);
  CHECK(note(mine) == "4");
  CHECK(ch.try_send(make(1)) == channel_status::would_block);
}

// --- Everybody ---

TEST_CASE("threads and fibers send to each other, with and without a runtime", "[conformance][channel]") {
  const long each = test::scaled(2'000, 200);
  for (const std::size_t capacity : {0u, 1u, 16u}) {
    everywhere("all of it", [=](others& them) {
      const channel<long> there(capacity), back(capacity);
      std::array<std::atomic<long>, 3> sums{};
      std::atomic<int> senders{3};
      for (int i = 0; i < 3; ++i) {
        them.spawn([&] {
          for (long k = 1; k <= each; ++k) there.send(k);
          if (senders.fetch_sub(1) == 1) there.close();
        });
      }
      std::atomic<int> relays{2};
      for (int i = 0; i < 2; ++i) {
        them.spawn([&] {
          for (const long k : there) back.send(k);
          if (relays.fetch_sub(1) == 1) back.close();
        });
      }
      std::thread outside([&] {
        for (const long k : back) sums[0].fetch_add(k);
      });
      for (const long k : back) sums[1].fetch_add(k);
      them.join();
      outside.join();
      return note(sums[0].load() + sums[1].load() == 3 * each * (each + 1) / 2 ? "all of it" : "something is lost");
    });
  }
}

TEST_CASE("fibers that never wait let a third have its turn", "[conformance][channel]") {
  constexpr long enough = 1'000'000;
  std::array<long, 3> turns{};
  const auto nuisance = [&](auto use) {
    ramie::run(with_workers(1), [&] {
      std::atomic<bool> stop{false};
      nursery n;
      for (std::size_t i = 0; i < 2; ++i) {
        n.spawn([&, i] {
          long k = 0;
          while (k < enough && !stop.load()) use(k++);
          turns[i] = k;
        });
      }
      n.spawn([&] {
        for (int i = 0; i < 10; ++i) ramie::yield();
        stop.store(true);
      });
      n.join();
    });
    return turns[0] < enough && turns[1] < enough;
  };
  const channel<long> ch(128), one(1), full(1);
  (void)full.try_send(0);
  CHECK(nuisance([&](long k) {
    ch.send(k);
    (void)ch.try_recv();
  }));
  CHECK(nuisance([&](long k) {
    (void)one.try_send(k);
    (void)one.recv_for(0s);
  }));
  CHECK(nuisance([&](long k) { (void)full.send_for(k, 0s); }));
}

TEST_CASE("two that keep handing each other elements let a third have its turn", "[conformance][channel]") {
  constexpr long enough = 1'000'000;
  for (const std::size_t capacity : {0u, 1u}) {
    long rounds = 0;
    ramie::run(with_workers(1), [&] {
      const channel<long> there(capacity), back(capacity);
      std::atomic<bool> stop{false};
      nursery n;
      n.spawn([&] {
        for (; rounds < enough && !stop.load(); ++rounds) {
          there.send(rounds);
          (void)back.recv();
        }
        there.close();
      });
      n.spawn([&] {
        for (const long k : there) back.send(k);
      });
      n.spawn([&] {
        for (int i = 0; i < 10; ++i) ramie::yield();
        stop.store(true);
      });
      n.join();
    });
    CHECK(rounds < enough);
  }
}

TEST_CASE("a channel outlives nurseries and runtimes, and is used by others", "[conformance][channel]") {
  const channel<element> ch(500);
  std::atomic<long> sent{0}, received{0};
  const auto use = [&] {  // takes what others have left, and leaves something itself
    nursery n;
    for (int i = 0; i < 2; ++i) {
      n.spawn([&] {
        while (const auto got = ch.try_recv()) received.fetch_add(**got);
        for (int k = 1; k <= 300; ++k) {
          ch.send(make(k));
          sent.fetch_add(k);
          if (k % 4 == 0) continue;
          received.fetch_add(**ch.recv());
        }
      });
    }
    n.join();
  };
  for (const unsigned workers : {1u, 4u, 2u, 1u}) {
    ramie::runtime rt(with_workers(workers));
    rt.run(use);
    rt.run(use);
    CHECK(ch.len() > 0);
    received.fetch_add(**ch.recv());
  }
  while (const auto got = ch.try_recv()) received.fetch_add(**got);
  CHECK(received.load() == sent.load());
}

TEST_CASE("fibers of two runtimes meet", "[conformance][channel]") {
  const int count = test::scaled(2'000, 200);
  for (const std::size_t capacity : {0u, 3u}) {
    const channel<int> there(capacity), back(capacity);
    long sum = 0;
    std::thread elsewhere([&] {
      ramie::run(with_workers(1), [&] {
        for (const int k : there) back.send(k);
        back.close();
      });
    });
    ramie::run(with_workers(2), [&] {
      nursery n;
      n.spawn([&] {
        for (int k = 1; k <= count; ++k) there.send(k);
        there.close();
      });
      for (const int k : back) sum += k;
      n.join();
    });
    elsewhere.join();
    CHECK(sum == static_cast<long>(count) * (count + 1) / 2);
  }
}

// Everybody who is about to park when anything is cancelled wakes once for nothing.
TEST_CASE("a waiter woken for nothing keeps its place", "[conformance][channel][cancel]") {
  std::optional<int> first, second;
  ramie::run(with_workers(1), [&] {
    test::stage s;
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

// An object that a thread made before its first wait is destroyed after what belongs to its waits.
TEST_CASE("a thread may wait in the destructor of a thread-local object", "[conformance][channel]") {
  static const ramie::channel<int> last_words(0);
  struct speaker {
    ~speaker() { (void)last_words.send(7); }
  };
  const ramie::channel<int> before(0), other(0);
  std::thread dying([&] {
    static thread_local const speaker s;
    (void)&s;
    (void)before.recv();
  });
  (void)before.send(0);
  int heard = 0;
  for (int round = 0; round < 3; ++round) {  // others wait while it does
    std::thread living([&] { heard += *other.recv(); });
    (void)other.send(1);
    living.join();
  }
  const auto said = last_words.recv();
  dying.join();
  CHECK(heard == 3);
  CHECK(said == 7);
}

}  // namespace conformance_channel_waiting
