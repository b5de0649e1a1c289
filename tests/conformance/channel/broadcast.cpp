// SPDX-License-Identifier: BSL-1.0
// broadcast: every message to everybody.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/throwing_moves.hpp>
#include <support/test.hpp>

namespace conformance_channel_broadcast {

using namespace std::chrono_literals;
using ramie::broadcast;
using ramie::channel_status;
using ramie::nursery;
using ramie::watch;
using namespace test;

TEST_CASE("every receiver of a broadcast gets every message, at its own pace", "[conformance][flavours][broadcast]") {
  as_thread_and_fiber([](findings& found) {
    const broadcast<std::string> news(8);
    auto quick = news.subscribe(), slow = news.subscribe();
    EXPECT(found, quick.try_recv().status() == channel_status::would_block);
    for (const auto* text : {"a", "b", "c"}) {
      found.expect(news.send(text));
      auto m = quick.recv();
      EXPECT(found, m, *m == text, m.lost() == 0);
    }
    EXPECT(found, quick.try_recv().status() == channel_status::would_block);
    EXPECT(found, *slow.recv() == "a");
    auto copy = slow;  // goes on by itself from the same position
    EXPECT(found, *slow.recv() == "b", *slow.recv() == "c", *copy.recv() == "b");
    auto late = news.subscribe();
    EXPECT(found, news.receivers() == 4, late.try_recv().status() == channel_status::would_block);
    news.send("d");
    EXPECT(found, *late.recv() == "d", *copy.recv() == "c", *copy.recv() == "d", *slow.recv() == "d");
    { const auto gone = std::move(late); }
    EXPECT(found, news.receivers() == 3, !late.valid());  // NOLINT: moved from on purpose
  });
}

TEST_CASE("a receiver that falls behind is told how many it lost", "[conformance][flavours][broadcast]") {
  as_thread_and_fiber([](findings& found) {
    for (const std::uint64_t capacity : {1u, 2u, 4u, 7u}) {
      const broadcast<std::uint64_t> news(capacity);
      auto reader = news.subscribe();
      std::uint64_t sent = 0, position = 0, random = 12345;
      for (int round = 0; round < 200; ++round) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        for (std::uint64_t k = (random >> 33) % 12; k != 0; --k) news.send(sent++);
        for (std::uint64_t k = (random >> 45) % 6; k != 0; --k) {
          auto m = reader.try_recv();
          const auto oldest = sent > capacity ? sent - capacity : 0;
          const auto expected = std::max(position, oldest);
          if (expected == sent) {
            EXPECT(found, m.status() == channel_status::would_block, !m, m.lost() == 0);
            continue;
          }
          EXPECT(found, m, *m == expected, m.lost() == expected - position);
          position = expected + 1;
        }
      }
    }
  });
}

TEST_CASE("a broadcast closes: by hand, or with its last sender", "[conformance][flavours][broadcast]") {
  as_thread_and_fiber([](findings& found) {
    for (const bool by_hand : {true, false}) {
      auto news = std::make_unique<broadcast<int>>(4);
      auto twin = std::make_unique<broadcast<int>>(*news);
      auto reader = news->subscribe();
      news->send(1);
      twin->send(2);
      if (by_hand) {
        EXPECT(found, twin->close(), !twin->close(), !news->close());
        EXPECT(found, news->is_closed(), !news->send(3));
        auto after = news->subscribe();
        EXPECT(found, after.recv().status() == channel_status::closed);
      } else {
        news.reset();
        found.expect(!twin->is_closed());
        twin.reset();
      }
      EXPECT(found, *reader.recv() == 1, *reader.try_recv() == 2);
      EXPECT(found, reader.recv().status() == channel_status::closed);
      EXPECT(found, reader.try_recv().status() == channel_status::closed);
      EXPECT(found, reader.recv_for(1h).status() == channel_status::closed);
    }
  });
}

TEST_CASE("a message or the close wakes all who wait for it", "[conformance][flavours][broadcast]") {
  const int waiting = test::scaled(500, 100);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> started{0}, got{0}, closed{0};
    broadcast<int> news(2);
    const auto listen = [&](ramie::broadcast_receiver<int> from) {
      started.fetch_add(1);
      auto m = from.recv();
      if (m && *m == 7 && m.lost() == 0) got.fetch_add(1);
      if (from.recv().status() == channel_status::closed) closed.fetch_add(1);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(listen, news.subscribe());
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < waiting; ++i) n.spawn(listen, news.subscribe());
      while (started.load() != waiting + 3) ramie::yield();
      news.send(7);
      while (got.load() != waiting + 3) ramie::yield();
      news = {};  // the last sender
      n.join();
    });
    for (auto& t : threads) t.join();
    CHECK(got.load() == waiting + 3);
    CHECK(closed.load() == waiting + 3);
  }
}

TEST_CASE("senders and receivers of a broadcast in a hurry: received and lost add up",
          "[conformance][flavours][broadcast]") {
  const int each = test::scaled(5'000, 500);
  for (const unsigned workers : {2u, 4u}) {
    findings found;
    ramie::run(with_workers(workers), [&] {
      broadcast<int> news(16);
      nursery n;
      for (int r = 0; r < 4; ++r) {
        n.spawn([&, from = news.subscribe()]() mutable {
          std::uint64_t all = 0;
          std::array<int, 2> last{-1, -1};
          for (auto m = from.recv(); m; m = from.recv()) {
            all += 1 + m.lost();
            int& before = last[static_cast<std::size_t>(*m / each)];
            EXPECT(found, *m > before);
            before = *m;
          }
          EXPECT(found, all == 2 * static_cast<std::uint64_t>(each));
        });
      }
      for (int s = 0; s < 2; ++s) {
        n.spawn([&, s, to = news] {
          for (int i = 0; i < each; ++i) {
            to.send(s * each + i);
            if (i % 64 == 0) ramie::yield();
          }
        });
      }
      news = {};
      n.join();
    });
    CHECK(found.wrong() == "");
  }
}

TEST_CASE("a copy that throws leaves the message the next one", "[conformance][flavours][broadcast]") {
  as_thread_and_fiber([](findings& found) {
    const broadcast<throwing> news(2);
    auto reader = news.subscribe();
    for (int i = 1; i <= 5; ++i) news.send(throwing(i));
    found.expect(falls(1, [&] { (void)reader.try_recv(); }));
    found.expect(falls(1, [&] { (void)reader.recv(); }));
    auto m = reader.recv();
    EXPECT(found, m, m->value() == 4, m.lost() == 3);
    found.expect(falls(1, [&] { news.send(throwing(6)); }));  // nothing was sent
    m = reader.recv();
    EXPECT(found, m, m->value() == 5, m.lost() == 0);
    EXPECT(found, reader.try_recv().status() == channel_status::would_block);
  });
}

TEST_CASE("messages are destroyed when nobody can read them any more", "[conformance][flavours][broadcast]") {
  test::census all;
  {
    const broadcast<test::citizen> news(3);
    auto reader = news.subscribe();
    for (int i = 0; i < 10; ++i) news.send(test::citizen(all));
    CHECK(all.alive() == 3);
    CHECK(reader.recv().lost() == 7);
    const watch<test::citizen> latest{test::citizen(all)};
    const auto held = latest.get();
    latest.send(test::citizen(all));
    latest.send(test::citizen(all));
    CHECK(all.alive() == 5);
  }
  CHECK(all.alive() == 0);
}

TEST_CASE("a broadcast keeps nothing for nobody", "[conformance][flavours][broadcast]") {
  test::census all;
  const broadcast<test::citizen> news(20);
  CHECK(news.send(test::citizen(all)));  // nobody listens
  CHECK(all.alive() == 0);
  auto first = news.subscribe();
  auto second = news.subscribe();
  CHECK(first.try_recv().status() == channel_status::would_block);
  for (int i = 0; i < 18; ++i) news.send(test::citizen(all));
  CHECK(all.alive() == 18);
  first = {};
  CHECK(all.alive() == 18);
  auto copy = second;
  second = {};
  CHECK(copy.try_recv().lost() == 0);
  CHECK(all.alive() == 18);  // kept until 20 newer ones have come
  copy = {};
  CHECK(all.alive() == 0);
  CHECK(news.receivers() == 0);
  auto late = news.subscribe();  // from now on
  CHECK(late.try_recv().status() == channel_status::would_block);
  for (int i = 0; i < 30; ++i) news.send(test::citizen(all));
  CHECK(all.alive() == 20);
  CHECK(late.try_recv().lost() == 10);
  late = {};
  CHECK(all.alive() == 0);
  const watch<test::citizen> latest{test::citizen(all)};
  (void)latest.subscribe();
  CHECK(all.alive() == 1);  // a watch shows its value to whoever comes
  CHECK(latest.get() != nullptr);
}

// What nobody can read dies without the lock, a few at a time: a destructor may subscribe and send.
TEST_CASE("a broadcast that forgets keeps what is sent meanwhile", "[conformance][flavours][broadcast]") {
  const broadcast<std::shared_ptr<int>> news(20);
  auto reader = news.subscribe();
  ramie::broadcast_receiver<std::shared_ptr<int>> late;
  const auto last_words = [&](const int* number) {
    delete number;
    late = news.subscribe();
    for (int i = 0; i < 20; ++i) news.send(std::make_shared<int>(100 + i));
  };
  news.send(std::shared_ptr<int>(new int(0), last_words));
  for (int i = 1; i < 19; ++i) news.send(std::make_shared<int>(i));
  reader = {};
  std::vector<int> got;
  while (const auto message = late.try_recv()) got.push_back(*message != nullptr ? **message : -1);
  REQUIRE(got.size() == 20);
  for (int i = 0; i < 20; ++i) CHECK(got[static_cast<std::size_t>(i)] == 100 + i);
}

TEST_CASE("receivers of a broadcast come and go while it is sent to", "[conformance][flavours][broadcast]") {
  findings found;
  const broadcast<int> news(4);
  std::atomic<int> sent{0};
  std::atomic<bool> over{false};
  const auto listen = [&] {
    for (bool last = false; !last; last = over.load()) {
      const int before = sent.load();
      auto reader = news.subscribe();
      std::optional<int> expected;
      for (int k = 0; k < 3; ++k) {
        const auto got = reader.recv();
        if (!got) break;
        if (expected) EXPECT(found, *got == *expected + static_cast<int>(got.lost()));
        EXPECT(found, *got >= before);
        expected = *got + 1;
      }
    }
  };
  std::thread one(listen), other(listen);
  for (int i = 0; i < test::scaled(50'000, 5'000); ++i) {
    news.send(i);
    sent.store(i + 1);
  }
  over.store(true);
  news.close();
  one.join();
  other.join();
  CHECK(found.wrong() == "");
}

TEST_CASE("a broadcast that never waits lets its receivers have their turn", "[conformance][flavours][broadcast]") {
  as_fiber([](findings& found, auto&) {
    const broadcast<int> news(1'024);
    nursery n;
    std::uint64_t heard = 0, lost = 0;
    n.spawn([&, reader = news.subscribe()]() mutable {
      for (auto m = reader.recv(); m; m = reader.recv()) {
        lost += m.lost();
        ++heard;
      }
    });
    for (int i = 0; i < 10'000; ++i) news.send(i);
    news.close();
    n.join();
    EXPECT(found, heard + lost == 10'000);
    EXPECT(found, heard > 5'000);  // not just what is left at the end
  });
}

}  // namespace conformance_channel_broadcast
