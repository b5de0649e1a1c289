// SPDX-License-Identifier: BSL-1.0
// Waits on a channel that end because it is too late.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include <ramie/ramie.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_deadlines {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::channel_status;
using ramie::nursery;
using namespace test;

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
  channel_observer s;
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
  CHECK(empty.size() == 1);
  CHECK(note(full.try_recv().to_optional()) == "0");
  CHECK(full.size() == 0);
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
    channel_observer s;
    ramie::run(o, [&] {
      nursery n;
      n.spawn([&] { got = ch.recv_for(10s).to_optional(); });
      s.wait_listed(1);
      s.step_in(channel_moment::will_complete, [&] { clock.advance(1h); });
      (void)ch.try_send(make(7));
      n.join();
      nursery m;
      m.spawn([&] { sent = ch.send_for(make(8), 10s); });
      s.wait_listed(2);
      s.step_in(channel_moment::will_complete, [&] { clock.advance(1h); });
      taken = ch.try_recv().to_optional();
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
    channel_observer s;
    const channel<element> ch(1);
    element mine = make(2);
    const auto room = ch.send_for(make(1), -1s);
    const auto no_room = ch.send_until(std::move(mine), ramie::now() - 1h);
    const auto there = ch.recv_for(0s).to_optional();
    const auto not_there = ch.recv_until(std::chrono::steady_clock::time_point::min()).status();
    s.step_in(channel_moment::will_publish, [&] { (void)ch.try_send(make(6)); });
    const auto just_now = ch.recv_for(0s).to_optional();
    return note(room, no_room, mine, "|", there, not_there, "|", just_now, ch.recv_for(0s).status());
  });
}

TEST_CASE("deadlines beyond all time, and closes before them", "[conformance][channel][time]") {
  everywhere("closed closed 4 | closed closed", [](others& them) {
    channel_observer s;
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

}  // namespace conformance_channel_deadlines
