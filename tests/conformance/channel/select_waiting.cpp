// SPDX-License-Identifier: BSL-1.0
// select: how long it waits, and for what besides channels.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_select_waiting {

using ramie::on_deadline;
using ramie::usage_error;
using namespace test;
using namespace test::select_words;

TEST_CASE("without a case that can happen: a fiber waits for its end, a thread is told",
          "[conformance][select][misuse]") {
  CHECK_THROWS_AS(select(), usage_error);
  const ramie::task<int> no_task;
  CHECK_THROWS_AS(select(on_recv(channel<int>(), whatever), on_ready(no_task, whatever)), usage_error);
  CHECK_THROWS_AS(ramie::selector().wait(), usage_error);
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    int ended = 0;
    nursery n;
    n.spawn([&] { ended += !ramie::with_timeout(1s, [] { select(); }); });
    n.spawn([&] { ended += !ramie::with_timeout(1s, [] { ramie::selector().wait(); }); });
    n.spawn([&] { ended += !ramie::with_timeout(1s, [] { select(on_recv(channel<int>(), whatever)); }); });
    ramie::yield();
    EXPECT(found, ended == 0);
    clock.advance(1s);
    n.join();
    EXPECT(found, ended == 3);
  });
}

TEST_CASE("timeouts: the earliest, and only if nothing happened before", "[conformance][select][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    channel<int> c(0), ready(1);
    const auto the_end = std::chrono::steady_clock::time_point::max();
    nursery n;
    auto earliest = n.spawn([&] {
      return select(on_timeout(3s, whatever), on_deadline(ramie::now() + 1s, whatever), on_timeout(2s, whatever),
                    on_recv(c, whatever), on_deadline(the_end, whatever),
                    on_timeout(std::chrono::hours::max(), whatever));
    });
    ramie::yield();
    clock.advance(999ms);
    ramie::yield();
    found.expect(!earliest.done());
    clock.advance(1ms);
    EXPECT(found, earliest.get() == 1);
    EXPECT(found, c.try_send(1) == channel_status::would_block);

    int got = 0;
    auto in_time = n.spawn([&] { return select(on_timeout(1s, whatever), on_recv(c, [&](auto v) { got = *v; })); });
    ramie::yield();
    EXPECT(found, c.try_send(9) == channel_status::ok);
    clock.advance(5s);  // too late: it has happened, though the fiber has not run yet
    EXPECT(found, in_time.get() == 1, got == 9);

    for (int round = 0; round < 20; ++round) {
      ready.send(round);
      EXPECT(found, select(on_timeout(0s, whatever), on_timeout(-1h, whatever), on_recv(ready, whatever)) == 2);
      EXPECT(found, select(on_timeout(1s, whatever), on_recv(c, whatever), on_timeout(-1s, whatever)) == 2);
      const auto long_ago = std::chrono::steady_clock::time_point::min();
      EXPECT(found, select(on_recv(c, whatever), on_deadline(long_ago, whatever), on_timeout(0s, whatever)) == 1);
    }

    ramie::selector again;  // a timeout counts from each wait
    again.on_recv(c, whatever).on_timeout(1s, whatever);
    for (int round = 0; round < 3; ++round) {
      auto waits = n.spawn([&] { return again.wait(); });
      ramie::yield();
      clock.advance(999ms);
      ramie::yield();
      found.expect(!waits.done());
      clock.advance(1ms);
      EXPECT(found, waits.get() == 1);
    }
    n.join();
  });
}

TEST_CASE("otherwise: when nothing else is ready now", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> a(1), b(1), full(1);
    full.send(0);
    int element = 3, fell_back = 0;
    const auto fall_back = [&] { ++fell_back; };
    for (int round = 0; round < 50; ++round) {
      EXPECT(found, select(on_recv(a, whatever), otherwise(fall_back), on_recv(b, whatever)) == 1);
      EXPECT(found, select(on_timeout(0s, whatever), on_send(full, element, whatever), otherwise(fall_back)) == 2);
      b.send(1);
      EXPECT(found, select(otherwise(fall_back), on_recv(a, whatever), on_recv(b, whatever)) == 2);
      EXPECT(found, select(otherwise(fall_back), on_send(a, element, whatever)) == 1);
      (void)a.recv();
    }
    EXPECT(found, fell_back == 100, full.size() == 1);
    a.close();
    EXPECT(found, select(otherwise(fall_back), on_recv(a, whatever)) == 1);
  });
  as_fiber([](findings& found, auto&) {
    channel<int> a(0);
    bool told = false;
    nursery n;
    n.spawn([&] {
      n.cancel();
      try {
        select(on_recv(a, whatever), otherwise(whatever));
      } catch (const ramie::cancelled&) {
        told = true;
        throw;
      }
    });
    n.join();
    found.expect(told);
  });
}

TEST_CASE("a select that is cancelled leaves nothing behind", "[conformance][select][cancel]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    channel<int> a(0);
    channel<std::unique_ptr<int>> b(0);
    auto mine = std::make_unique<int>(1);
    int next_got = 0, ran = 0;
    bool ended = true;
    nursery n;
    n.spawn([&] {
      ended = ramie::with_timeout(1s, [&] {
        select(on_recv(a, [&](auto) { ++ran; }), on_send(b, mine, [&](bool) { ++ran; }),
               on_recv(a, [&](auto) { ++ran; }));
      });
    });
    ramie::yield();
    auto next = n.spawn([&] { next_got = *a.recv(); });
    ramie::yield();
    clock.advance(1s);
    EXPECT(found, a.try_send(5) == channel_status::ok);  // before the first one has run: for the next one
    EXPECT(found, a.try_send(6) == channel_status::would_block);
    EXPECT(found, b.try_recv().status() == channel_status::would_block);
    n.join();
    EXPECT(found, next_got == 5, ran == 0, !ended, mine != nullptr);
    EXPECT(found, a.try_send(7) == channel_status::would_block);
    EXPECT(found, b.try_recv().status() == channel_status::would_block);
  });
}

TEST_CASE("plain threads and fibers select among the same channels", "[conformance][select]") {
  const int each = test::scaled(1'000, 150);
  channel<int> a(0), b(3);
  std::atomic<long> sum{0}, received{0};
  const auto produce = [&, a, b](int from) {
    for (int i = from; i < from + each; ++i) {
      int element = i;
      select(on_send(a, element, whatever), on_send(b, element, whatever));
    }
  };
  const auto consume = [&, a, b] {
    channel<int> one = a, two = b;
    const auto take = [&](channel<int>& from, std::optional<int> v) {
      if (!v) return void(from = {});
      sum.fetch_add(*v);
      received.fetch_add(1);
    };
    while (one.valid() || two.valid()) {
      select(on_recv(one, [&](auto v) { take(one, v); }), on_recv(two, [&](auto v) { take(two, v); }));
    }
  };
  std::vector<std::thread> consumers, producers;
  for (int i = 0; i < 2; ++i) consumers.emplace_back(consume);
  for (int i = 0; i < 2; ++i) producers.emplace_back(produce, i * each);
  ramie::run(with_workers(2), [&] {
    nursery all;
    all.spawn(consume);
    nursery n;
    for (int i = 2; i < 4; ++i) n.spawn([&, i] { produce(i * each); });
    n.join();
    for (auto& t : producers) t.join();
    a.close();
    b.close();
    all.join();
  });
  for (auto& t : consumers) t.join();
  const long total = 4L * each;
  CHECK(received.load() == total);
  CHECK(sum.load() == total * (total - 1) / 2);
  CHECK(select(on_recv(channel<int>(0), whatever), on_timeout(1ms, whatever)) == 1);  // by the machine's clock
}

TEST_CASE("a task that ends is a case: before, meanwhile, failed, cancelled", "[conformance][select][join]") {
  as_fiber([](findings& found, auto&) {
    channel<int> never(0);
    {
      nursery n;
      auto before = n.spawn([] { return 5; });
      before.wait();
      int got = 0;
      EXPECT(found, select(on_recv(never, whatever), on_ready(before, [&] { got = before.get(); })) == 1, got == 5);
      auto meanwhile = n.spawn([&] { return ramie::yield(), 6; });
      EXPECT(found, select(on_ready(meanwhile, whatever), on_recv(never, whatever)) == 0);
      EXPECT(found, meanwhile.get() == 6);
      auto late = n.spawn([] { ramie::yield(); });
      auto later = n.spawn([] {
        for (int i = 0; i < 5; ++i) ramie::yield();
      });
      EXPECT(found, select(on_ready(later, whatever), on_ready(late, whatever), on_ready(late, whatever)) != 0);
      EXPECT(found, select(on_ready(later, whatever), on_recv(never, whatever)) == 0);
      n.join();
    }
    nursery watching;
    std::string ends;
    {
      nursery failing;
      ramie::task<void> bad, stuck;
      watching.spawn([&] {  // a task of another nursery
        select(on_recv(never, whatever), on_ready(bad, [&] { ends += 'f'; }));
        select(on_ready(stuck, [&] { ends += 'c'; }), on_recv(never, whatever));
      });
      bad = failing.spawn([] {
        ramie::yield();
        throw std::runtime_error("bad");
      });
      stuck = failing.spawn([&] { (void)never.recv(); });
      try {
        for (;;) ramie::yield();
      } catch (const ramie::cancelled&) {
      }
      try {
        failing.join();
      } catch (const std::runtime_error&) {
        ends += 'j';
      }
      ramie::shield until_watched;
      watching.join();
    }
    EXPECT(found, ends == "jfc" || ends == "fjc" || ends == "fcj");
    EXPECT(found, never.try_send(1) == channel_status::would_block);
  });
}

TEST_CASE("a plain thread waits for a task or a channel", "[conformance][select][join]") {
  std::atomic<int> first{-1}, second{-1}, gone{0};
  channel<int> c(0);
  std::thread outside;
  ramie::run(with_workers(2), [&] {
    channel<int> let_go(0);
    nursery n;
    auto t = n.spawn([&] { (void)let_go.recv(); });
    outside = std::thread([&] {
      first.store(static_cast<int>(select(on_ready(t, whatever), on_recv(c, whatever))));
      second.store(static_cast<int>(select(on_recv(c, whatever), on_ready(t, whatever))));
      gone.store(1);
    });
    c.send(1);
    let_go.send(1);
    n.join();
    while (gone.load() == 0) ramie::yield();
  });
  outside.join();
  CHECK(first.load() == 1);
  CHECK(second.load() == 1);
  CHECK_THROWS_AS(ramie::run(with_workers(1),
                             [&] {
                               ramie::task<void> homeless;
                               {
                                 nursery n;
                                 homeless = n.spawn([] {});
                                 n.join();
                               }
                               select(on_ready(homeless, whatever), on_recv(c, whatever));
                             }),
                  ramie::usage_error);
}

TEST_CASE("receivers of oneshots, broadcasts and watches are cases", "[conformance][select][join]") {
  as_fiber([](findings& found, auto&) {
    channel<int> never(0);
    auto one = ramie::make_oneshot<int>();
    ramie::broadcast<int> news(4);
    auto reader = news.subscribe();
    ramie::watch<int> level(1);
    auto viewer = level.subscribe();
    const auto any = [&] {
      return select(on_recv(never, whatever), on_ready(one.rx, whatever), on_ready(reader, whatever),
                    on_ready(viewer, whatever), on_ready(one.rx, whatever));
    };
    const auto waits_until = [&](auto make_true) {
      nursery n;
      auto which = n.spawn(any);
      ramie::yield();
      found.expect(!which.done());
      make_true();
      return which.get();
    };
    EXPECT(found, waits_until([&] { news.send(5); }) == 2);
    EXPECT(found, any() == 2);  // nothing is consumed by being told
    EXPECT(found, *reader.try_recv() == 5);
    EXPECT(found, waits_until([&] { level.send(2); }) == 3);
    EXPECT(found, viewer.changed(), *viewer.get() == 2);
    const auto which = waits_until([&] { one.tx.send(9); });
    EXPECT(found, which == 1 || which == 4);
    const auto at_once = any();
    EXPECT(found, at_once == 1 || at_once == 4);
    EXPECT(found, one.rx.recv() == 9);
    one = ramie::make_oneshot<int>();
    EXPECT(found, waits_until([&] { level = ramie::watch<int>(); }) == 3);  // closed: no wait would be left
    viewer = {};
    EXPECT(found, waits_until([&] { news.close(); }) == 2);
    reader = {};
    EXPECT(found, waits_until([&] { one.tx = {}; }) % 3 == 1);
    found.expect(!one.rx.recv());
    EXPECT(found, never.try_send(1) == channel_status::would_block);
  });
}

TEST_CASE("a task's end and a channel at the same time: one of them", "[conformance][select][join]") {
  const int rounds = test::scaled(2'000, 200);
  for (const unsigned workers : {2u, 4u}) {
    findings found;
    ramie::run(with_workers(workers), [&] {
      for (int round = 0; round < rounds; ++round) {
        channel<int> c(0);
        nursery n;
        auto end = n.spawn([] {});
        auto sends = n.spawn([&] { return c.try_send(round); });
        int got = -1;
        const auto which =
            select(on_recv(c, [&](auto v) { got = *v; }), on_ready(end, whatever), on_ready(sends, whatever));
        n.join();
        const bool sent = sends.get() == channel_status::ok;
        EXPECT(found, sent == (which == 0), (got == round) == sent);
        EXPECT(found, c.try_send(1) == channel_status::would_block);
      }
    });
    CHECK(found.wrong() == "");
  }
}

TEST_CASE("what came true before the time was up wins, though the fiber ran later", "[conformance][select][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    auto one = ramie::make_oneshot<int>();
    ramie::watch<int> level(0);
    auto viewer = level.subscribe();
    nursery n;
    auto first = n.spawn([&] { return select(on_ready(one.rx, whatever), on_timeout(1s, whatever)); });
    auto second = n.spawn([&] { return select(on_ready(viewer, whatever), on_timeout(1s, whatever)); });
    ramie::yield();
    one.tx.send(1);
    level.send(1);
    clock.advance(2s);
    EXPECT(found, first.get() == 0);
    EXPECT(found, second.get() == 0);
    n.join();
  });
}

TEST_CASE("a selector asks a broadcast receiver where it is now", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    ramie::broadcast<int> news(4);
    auto reader = news.subscribe();
    ramie::selector any;
    int read = 0;
    any.on_ready(reader, [&] { read += reader.try_recv() ? 1 : 100; }).otherwise(whatever);
    news.send(1);
    EXPECT(found, any.wait() == 0, read == 1);
    EXPECT(found, any.wait() == 1, read == 1);
  });
}

}  // namespace conformance_channel_select_waiting
