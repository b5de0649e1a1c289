// SPDX-License-Identifier: BSL-1.0
// Who waits on a channel: fibers and plain threads, out of turn, in several runtimes.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_waiting {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::nursery;
using namespace test;

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
    CHECK(ch.size() > 0);
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
