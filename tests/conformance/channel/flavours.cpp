// SPDX-License-Identifier: BSL-1.0
// What the flavours of channels have in common: handles with nothing behind them, deadlines.
#include <string>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_channel_flavours {

using namespace std::chrono_literals;
using ramie::broadcast;
using ramie::channel_status;
using ramie::make_oneshot;
using ramie::nursery;
using ramie::usage_error;
using ramie::watch;
using namespace test;

template <class F>
bool misused(F f) {
  try {
    f();
  } catch (const usage_error&) {
    return true;
  }
  return false;
}

TEST_CASE("handles without anything behind them", "[conformance][flavours][misuse]") {
  as_thread_and_fiber([](findings& found) {
    ramie::oneshot_sender<int> no_sender;
    ramie::oneshot_receiver<int> no_receiver;
    EXPECT(found, misused([&] { no_sender.send(1); }), misused([&] { (void)no_sender.is_closed(); }));
    found.expect(!no_sender.valid());
    EXPECT(found, misused([&] { (void)no_receiver.recv(); }), misused([&] { (void)no_receiver.try_recv(); }));
    EXPECT(found, misused([&] { (void)no_receiver.recv_for(1s); }), !no_receiver.valid());
    auto used = make_oneshot<int>();
    used.tx.send(1);
    EXPECT(found, misused([&] { used.tx.send(2); }), misused([&] { (void)used.tx.is_closed(); }), used.rx.recv() == 1);
    found.expect(misused([] { broadcast<int> none(0); }));
    const broadcast<int> silent;
    EXPECT(found, misused([&] { silent.send(1); }), misused([&] { (void)silent.subscribe(); }));
    EXPECT(found, misused([&] { silent.close(); }), misused([&] { (void)silent.is_closed(); }));
    EXPECT(found, misused([&] { (void)silent.receivers(); }), !silent.valid());
    ramie::broadcast_receiver<int> deaf;
    EXPECT(found, misused([&] { (void)deaf.recv(); }), misused([&] { (void)deaf.try_recv(); }));
    EXPECT(found, misused([&] { (void)deaf.recv_for(1s); }), !deaf.valid());
    const watch<int> blind;
    EXPECT(found, misused([&] { blind.send(1); }), misused([&] { (void)blind.subscribe(); }));
    EXPECT(found, misused([&] { (void)blind.get(); }), misused([&] { blind.close(); }), !blind.valid());
    found.expect(misused([&] { (void)blind.is_closed(); }));
    ramie::watch_receiver<int> away;
    EXPECT(found, misused([&] { (void)away.get(); }), misused([&] { (void)away.peek(); }));
    EXPECT(found, misused([&] { (void)away.has_changed(); }), misused([&] { (void)away.changed(); }));
    broadcast<int> news(1);
    const auto taken = std::move(news);
    EXPECT(found, misused([&] { news.send(1); }), taken.send(1));  // NOLINT: moved from on purpose
  });
}

// What a misuse says, if it begins with the operation and ends with what to do.
template <class F>
bool says(F f, const std::string& operation, const char* what_to_do) {
  try {
    f();
  } catch (const usage_error& e) {
    const std::string text = e.what();
    return text.starts_with("ramie: " + operation + ": ") && text.find(what_to_do) != std::string::npos;
  }
  return false;
}

TEST_CASE("an operation on nothing is named, with what to do", "[conformance][channel][flavours][misuse]") {
  findings found;
  const ramie::channel<int> nothing;
  EXPECT(found, says([&] { nothing.send(1); }, "channel::send", "make_channel<T>"));
  EXPECT(found, says([&] { (void)nothing.recv(); }, "channel::recv", "make_channel<T>"));
  EXPECT(found, says([&] { (void)nothing.try_recv(); }, "channel::try_recv", "make_channel<T>"));
  EXPECT(found, says([&] { (void)nothing.send_for(1, 1s); }, "channel::send_until", "make_channel<T>"));
  EXPECT(found, says([&] { nothing.close(); }, "channel::close", "make_channel<T>"));
  EXPECT(found, says([&] { (void)nothing.size(); }, "channel::size", "make_channel<T>"));
  EXPECT(found, says([&] { (void)nothing.begin(); }, "channel::recv", "make_channel<T>"));
  EXPECT(found, says([] { ramie::sender<int>().send(1); }, "sender::send", "make_channel<T>"));
  EXPECT(found, says([] { (void)ramie::receiver<int>().recv(); }, "receiver::recv", "make_channel<T>"));
  EXPECT(found, says([] { (void)ramie::receiver<int>().size(); }, "receiver::size", "make_channel<T>"));
  EXPECT(found, says([] { ramie::oneshot_sender<int>().send(1); }, "oneshot_sender::send", "make_oneshot<T>()"));
  EXPECT(found, says([] { (void)ramie::oneshot_sender<int>().is_closed(); }, "oneshot_sender::is_closed", "make_oneshot<T>()"));
  EXPECT(found, says([] { (void)ramie::oneshot_receiver<int>().recv(); }, "oneshot_receiver::recv", "make_oneshot<T>()"));
  EXPECT(found, says([] { broadcast<int>().send(1); }, "broadcast::send", "broadcast<T>(capacity)"));
  EXPECT(found, says([] { broadcast<int> none(0); }, "broadcast::broadcast", "at least one"));
  EXPECT(found, says([] { watch<int>().close(); }, "watch::close", "watch<T>(first)"));
  EXPECT(found, says([] { (void)ramie::broadcast_receiver<int>().recv(); }, "broadcast_receiver::recv", "subscribe()"));
  EXPECT(found, says([] { (void)ramie::watch_receiver<int>().changed(); }, "watch_receiver::changed", "subscribe()"));
  CHECK(found.wrong() == "");
}

TEST_CASE("a deadline is a point in time, a duration, or a deadline", "[conformance][channel][flavours]") {
  as_thread_and_fiber([](findings& found) {
    const ramie::channel<int> none(0), some(1);
    auto ends = make_oneshot<int>();
    const broadcast<int> news(1);
    auto listener = news.subscribe();
    const watch<int> value(1);
    auto viewer = value.subscribe();
    const auto end_at_once = [&](auto until) {
      EXPECT(found, none.recv_until(until).status() == channel_status::timed_out);
      EXPECT(found, none.send_until(1, until) == channel_status::timed_out);
      EXPECT(found, ends.rx.recv_until(until).status() == channel_status::timed_out);
      EXPECT(found, listener.recv_until(until).status() == channel_status::timed_out);
      EXPECT(found, viewer.changed_until(until) == channel_status::timed_out);
    };
    end_at_once(0s);
    end_at_once(ramie::deadline(0s));
    end_at_once(ramie::deadline(0s).when());
    const auto in_time = [&](auto until) {
      EXPECT(found, some.send_until(1, until) == channel_status::ok, some.recv_until(until).value() == 1);
      news.send(2);
      EXPECT(found, listener.recv_until(until).value() == 2);
      value.send(3);
      EXPECT(found, viewer.changed_until(until) == channel_status::ok);
    };
    in_time(1h);
    in_time(ramie::deadline());
    in_time(ramie::deadline(1h).when());
    ends.tx.send(4);
    EXPECT(found, ends.rx.recv_until(ramie::deadline()).value() == 4);
  });
}

TEST_CASE("broadcast and watch with a deadline", "[conformance][flavours][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    broadcast<int> news(2);
    watch<int> level(0);
    auto reader = news.subscribe();
    auto viewer = level.subscribe();
    EXPECT(found, reader.recv_for(0s).status() == channel_status::timed_out);
    EXPECT(found, viewer.changed_until(ramie::now() - 1s) == channel_status::timed_out);
    for (const bool comes : {false, true}) {
      nursery n;
      auto heard = n.spawn([&] { return reader.recv_for(1s).status(); });
      auto seen = n.spawn([&] { return viewer.changed_for(1s); });
      ramie::yield();
      clock.advance(999ms);
      ramie::yield();
      EXPECT(found, !heard.done(), !seen.done());
      if (comes) {
        news.send(1);
        level.send(1);
      }
      clock.advance(1ms);
      const auto expected = comes ? channel_status::ok : channel_status::timed_out;
      EXPECT(found, heard.get() == expected, seen.get() == expected);
      n.join();
    }
    bool ended = true;  // a cancelled wait leaves nothing listed
    nursery n;
    n.spawn([&] { ended = ramie::with_timeout(1s, [&] { (void)reader.recv(); }); });
    ramie::yield();
    clock.advance(1s);
    n.join();
    news.send(9);
    EXPECT(found, !ended, *reader.recv() == 9);
  });
}

}  // namespace conformance_channel_flavours
