// SPDX-License-Identifier: BSL-1.0
// Programs as Go programmers write them: what they rely on holds here, too.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_go {

using test::findings;
using test::with_workers;
using namespace test::select_words;

TEST_CASE("what happened before a send is seen after the receive, and the other way round", "[conformance][go]") {
  const int rounds = test::scaled(5'000, 500);
  for (const unsigned workers : {1u, 2u, 4u}) {
    for (const std::size_t capacity : {0u, 1u}) {
      int plain = 0, wrong = 0;  // no atomics: the channels alone order the accesses
      ramie::run(with_workers(workers), [&] {
        channel<int> there(capacity), back(capacity);
        nursery n;
        n.spawn([&] {
          for (int i = 1; i <= rounds; ++i) {
            plain = i;
            there.send(i);
            (void)back.recv();
            if (plain != -i) ++wrong;
          }
          there.close();
        });
        n.spawn([&] {
          for (const int i : there) {
            if (plain != i) ++wrong;
            plain = -i;
            back.send(i);
          }
        });
        n.join();
      });
      CHECK(wrong == 0);
    }
    // A receive from a rendezvous channel is before the end of the send.
    int written = 0, seen = -1;
    ramie::run(with_workers(workers), [&] {
      channel<int> c(0);
      nursery n;
      n.spawn([&] {
        written = 5;
        (void)c.recv();
      });
      c.send(1);
      seen = written;
      n.join();
    });
    CHECK(seen == 5);
  }
}

TEST_CASE("a close reaches everybody who waits", "[conformance][go]") {
  const int waiting = test::scaled(2'000, 200);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> told{0}, started{0};
    ramie::run(with_workers(workers), [&] {
      channel<int> c(0);
      nursery n;
      for (int i = 0; i < waiting; ++i) {
        n.spawn([&, i] {
          started.fetch_add(1);
          if (i % 2 == 0) {
            if (!c.recv()) told.fetch_add(1);
          } else {
            select(on_recv(c, [&](auto v) { told.fetch_add(!v); }), on_recv(channel<int>(), whatever));
          }
        });
      }
      while (started.load() != waiting) ramie::yield();
      c.close();
      n.join();
    });
    CHECK(told.load() == waiting);
  }
}

TEST_CASE("ping-pong", "[conformance][go]") {
  const int rounds = test::scaled(20'000, 2'000);
  for (const unsigned workers : {1u, 2u, 4u}) {
    int last = 0;
    ramie::run(with_workers(workers), [&] {
      channel<int> ping(0), pong(0);
      nursery n;
      n.spawn([&] {
        for (const int ball : ping) pong.send(ball + 1);
      });
      for (int i = 0; i < rounds; ++i) {
        ping.send(last);
        last = pong.recv().value_or(-1);
      }
      ping.close();
      n.join();
    });
    CHECK(last == rounds);
  }
}

TEST_CASE("two busy channels get their share of a select", "[conformance][go]") {
  const int rounds = test::scaled(10'000, 1'000);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::array<int, 2> taken{};
    ramie::run(with_workers(workers), [&] {
      channel<int> a(8), b(8), done(0);
      nursery n;
      for (const auto& c : {a, b}) {
        n.spawn([&done, c] {
          int element = 1;
          for (bool stop = false; !stop;) {
            select(on_send(c, element, whatever), on_recv(done, [&](auto) { stop = true; }));
          }
        });
      }
      for (int i = 0; i < rounds;) {
        if (a.size() == 0 || b.size() == 0) {  // nobody else takes: what is there stays there
          ramie::yield();
          continue;
        }
        ++taken[select(on_recv(a, whatever), on_recv(b, whatever))];
        ++i;
      }
      done.close();
      n.join();
    });
    CHECK(std::abs(taken[0] - taken[1]) < 7 * std::sqrt(rounds));  // seven standard deviations
  }
}

TEST_CASE("producers and consumers lose and double nothing", "[conformance][go]") {
  const int each = test::scaled(3'000, 300);
  for (const unsigned workers : {1u, 2u, 4u}) {
    for (const std::size_t capacity : {0u, 1u, 64u}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(4 * each));
      std::atomic<int> out_of_order{0};
      ramie::run(with_workers(workers), [&] {
        auto [tx, rx] = ramie::make_channel<int>(capacity);
        nursery n;
        for (int p = 0; p < 4; ++p) {
          n.spawn([=, tx = tx] {
            for (int i = 0; i < each; ++i) tx.send(p * each + i);
          });
        }
        tx.reset();  // the last producer to end closes the channel
        for (int c = 0; c < 3; ++c) {
          n.spawn([&, rx = rx] {
            std::array<int, 4> last{-1, -1, -1, -1};
            for (const int v : rx) {
              times[static_cast<std::size_t>(v)].fetch_add(1);
              int& before = last[static_cast<std::size_t>(v / each)];
              if (v <= before) out_of_order.fetch_add(1);
              before = v;
            }
          });
        }
        n.join();
      });
      CHECK(std::all_of(times.begin(), times.end(), [](const auto& t) { return t.load() == 1; }));
      CHECK(out_of_order.load() == 0);
    }
  }
}

TEST_CASE("fan out to a pool of workers, fan in their results", "[conformance][go]") {
  const int jobs = test::scaled(5'000, 500);
  for (const unsigned workers : {1u, 2u, 4u}) {
    long sum = 0;
    int results = 0;
    ramie::run(with_workers(workers), [&] {
      auto [jobs_tx, jobs_rx] = ramie::make_channel<long>(16);
      auto [done_tx, done_rx] = ramie::make_channel<long>(0);
      nursery n;
      for (int w = 0; w < 8; ++w) {
        n.spawn([in = jobs_rx, out = done_tx] {
          for (const long job : in) out.send(job * job);
        });
      }
      done_tx.reset();
      n.spawn([&, tx = std::move(jobs_tx)] {
        for (int i = 1; i <= jobs; ++i) tx.send(i);
      });
      for (const long r : done_rx) {
        sum += r;
        ++results;
      }
      n.join();
    });
    const long k = jobs;
    CHECK(results == jobs);
    CHECK(sum == k * (k + 1) * (2 * k + 1) / 6);
  }
}

TEST_CASE("a buffered channel is a semaphore", "[conformance][go]") {
  const int fibers = test::scaled(500, 100);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> inside{0}, most{0}, ran{0};
    ramie::run(with_workers(workers), [&] {
      channel<std::monostate> slots(3);
      nursery n;
      for (int i = 0; i < fibers; ++i) {
        n.spawn([&] {
          slots.send({});
          const int now = inside.fetch_add(1) + 1;
          for (int m = most.load(); now > m && !most.compare_exchange_weak(m, now);) {
          }
          ramie::yield();
          inside.fetch_sub(1);
          ran.fetch_add(1);
          (void)slots.recv();
        });
      }
      n.join();
    });
    CHECK(ran.load() == fibers);
    CHECK(most.load() <= 3);
    CHECK(most.load() > 1);
  }
}

TEST_CASE("a channel of channels: ask and be answered", "[conformance][go]") {
  struct request {
    int question = 0;
    channel<int> answer;
  };
  const int clients = test::scaled(200, 50);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> right{0};
    ramie::run(with_workers(workers), [&] {
      channel<request> server(0);
      nursery serving;
      for (int i = 0; i < 2; ++i) {
        serving.spawn([=] {
          for (request& r : server) r.answer.send(r.question * 2);
        });
      }
      nursery n;
      for (int i = 0; i < clients; ++i) {
        n.spawn([&, i] {
          channel<int> reply(0);
          for (int k = 0; k < 10; ++k) {
            server.send(request{i * k, reply});
            if (reply.recv() == i * k * 2) right.fetch_add(1);
          }
        });
      }
      n.join();
      server.close();
      serving.join();
    });
    CHECK(right.load() == clients * 10);
  }
}

TEST_CASE("a tee gives both sides everything, whoever is faster", "[conformance][go]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::vector<int> left, right;
    ramie::run(with_workers(workers), [&] {
      channel<int> in(0), a(0), b(0);
      nursery n;
      n.spawn([=] {
        for (const int v : in) {
          channel<int> to_a = a, to_b = b;
          for (int element = v, twin = v; to_a.valid() || to_b.valid();) {
            select(on_send(to_a, element, [&](bool) { to_a = {}; }), on_send(to_b, twin, [&](bool) { to_b = {}; }));
          }
        }
        a.close();
        b.close();
      });
      n.spawn([&] {
        for (const int v : a) left.push_back(v);
      });
      n.spawn([&] {
        for (const int v : b) {
          if (v % 3 == 0) ramie::yield();
          right.push_back(v);
        }
      });
      for (int i = 0; i < 500; ++i) in.send(i);
      in.close();
      n.join();
    });
    CHECK(left.size() == 500);
    CHECK(std::is_sorted(left.begin(), left.end()));
    CHECK(left == right);
  }
}

TEST_CASE("give up after a while, and hear of it when it is done", "[conformance][go]") {
  test::as_fiber([](findings& found, ramie::manual_clock& clock) {
    channel<int> slow(1), done(0);
    std::string said;
    nursery n;
    n.spawn([&] {
      for (bool waiting = true; waiting;) {
        select(on_recv(slow,
                       [&](auto v) {
                         said += v == 42 ? "answer" : "?";
                         waiting = false;
                       }),
               on_timeout(1s, [&] { said += "late "; }));
      }
    });
    auto idle = n.spawn([&] {  // a loop with a done channel
      int turns = 0;
      for (bool stop = false; !stop;) {
        select(on_recv(done, [&](auto) { stop = true; }), otherwise([&] { ++turns; }));
        ramie::yield();
      }
      return turns;
    });
    for (int i = 0; i < 3; ++i) {
      ramie::yield();
      clock.advance(1s);
    }
    ramie::yield();
    slow.send(42);
    ramie::yield();
    done.close();
    EXPECT(found, idle.get() > 3);
    n.join();
    EXPECT(found, said == "late late late answer");
  });
}

TEST_CASE("merging: a channel that is drained is put out of the select", "[conformance][go]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::vector<int> all;
    ramie::run(with_workers(workers), [&] {
      channel<int> a(0), b(2);
      nursery n;
      n.spawn([=] {
        for (int i = 0; i < 100; ++i) a.send(2 * i);
        a.close();
      });
      n.spawn([=] {
        for (int i = 0; i < 200; ++i) b.send(2 * i + 1);
        b.close();
      });
      channel<int> even = a, odd = b;
      while (even.valid() || odd.valid()) {
        const auto take = [&](channel<int>& from, std::optional<int> v) { v ? all.push_back(*v) : void(from = {}); };
        select(on_recv(even, [&](auto v) { take(even, v); }), on_recv(odd, [&](auto v) { take(odd, v); }));
      }
      n.join();
    });
    CHECK(all.size() == 300);
    for (const int rest : {0, 1}) {
      std::vector<int> of_one;
      std::copy_if(all.begin(), all.end(), std::back_inserter(of_one), [&](int v) { return v % 2 == rest; });
      CHECK(of_one.size() == (rest == 0 ? 100u : 200u));
      CHECK(std::is_sorted(of_one.begin(), of_one.end()));
    }
  }
}

}  // namespace conformance_channel_go
