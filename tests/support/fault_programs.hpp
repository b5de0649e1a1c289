// SPDX-License-Identifier: BSL-1.0
// Small programs that between them use everything there is. Whatever they can't get they let fall through; when they
// come to their end, all of it has happened.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <support/faults.hpp>

namespace test::faulty::programs {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::channel_status;
using ramie::nursery;

struct parcel {
  citizen who;
  std::unique_ptr<int> load;
  parcel(scene& s, int value) : who(s.things), load(std::make_unique<int>(value)) {}
};

inline void nothing(ramie::runtime& rt, scene& s) {
  rt.run([&] { s.ran.fetch_add(1); });
  s.expect(s.ran == 1);
}

// Branches with leaves that wait.
inline void tree(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> door(0);
    ramie::with_nursery([&](nursery& n) {
      for (int i = 0; i < 5; ++i) {
        n.spawn({.name = "a branch whose name needs memory"}, [&, who = citizen(s.things)] {
          nursery m;
          for (int j = 0; j < 4; ++j) {
            m.spawn([&, mine = citizen(s.things)] {
              (void)door.recv();
              s.ran.fetch_add(1);
            });
          }
          m.join();
          s.ran.fetch_add(1);
        });
      }
      for (int i = 0; i < 10; ++i) ramie::yield();
      door.close();
    });
  });
  s.expect(s.ran == 25);
}

// More stacks than the first mappings hold, of two sizes.
inline void many_stacks(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> door(0);
    ramie::with_nursery([&](nursery& n) {
      for (int i = 0; i < 60; ++i) {
        n.spawn({.stack_size = i % 5 == 0 ? std::size_t{128 * 1024} : 0}, [&, who = citizen(s.things)] {
          (void)door.recv();
          s.ran.fetch_add(1);
        });
      }
      for (int i = 0; i < 10; ++i) ramie::yield();
      door.close();
    });
  });
  s.expect(s.ran == 60);
}

// More frames and tasks than small slabs are for.
inline void many_frames(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    nursery n;
    for (int i = 0; i < 40'000; ++i) n.spawn([&s] { s.ran.fetch_add(1, std::memory_order_relaxed); });
    n.join();
  });
  s.expect(s.ran == 40'000);
}

inline void pipeline(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<parcel> raw(2), cooked(0);
    const channel<int> silent(0);
    int got = 0;
    ramie::with_nursery([&](nursery& n) {
      n.spawn([=, &s] {
        for (int i = 0; i < 6; ++i) raw.send(parcel(s, i));
        raw.close();
      });
      n.spawn([=, &s] {
        for (parcel& p : raw) s.expect(cooked.send_for(std::move(p), 1h) == channel_status::ok);
        cooked.close();
      });
      for (bool open = true; open;) {
        ramie::select(ramie::on_recv(cooked, [&](std::optional<parcel> p) { p ? void(++got) : void(open = false); }),
                      ramie::on_recv(silent, [&](std::optional<int>) { s.expect(false); }),
                      ramie::on_timeout(1h, [&] { s.expect(false); }));
      }
    });
    s.expect(got == 6);
    s.expect(silent.recv_for(100us).status() == channel_status::timed_out);
  });
}

// As many cases as need memory; senders that wait when the channel is closed.
inline void selecting(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    auto ends = ramie::make_channel<parcel>(0);
    std::vector<channel<int>> sources;
    for (int i = 0; i < 12; ++i) sources.emplace_back(1);
    ramie::selector any;
    int got = 0, left = 0;
    for (const auto& from : sources) any.on_recv(from, [&](std::optional<int> v) { got += v.value_or(0); });
    ramie::with_nursery([&](nursery& n) {
      n.spawn([&] {
        ramie::yield();
        sources[7].send(5);
      });
      (void)any.wait();
      for (int i = 0; i < 3; ++i) {
        n.spawn([&s, to = ends.tx] {
          parcel mine(s, 1);
          if (!to.send(std::move(mine))) s.expect(mine.load != nullptr);  // else it is the caller's still
          s.ran.fetch_add(1);
        });
      }
      for (int i = 0; i < 3; ++i) ramie::yield();
      (void)ends.tx.close();
      while (ends.rx.recv().has_value()) ++left;
    });
    s.expect(got == 5 && left <= 3);
  });
  s.expect(s.ran == 3);
}

inline void flavours(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    ramie::broadcast<std::string> news(2);
    ramie::watch<std::string> level(std::string(40, 'a'));
    auto ends = ramie::make_oneshot<parcel>();
    ramie::with_nursery([&](nursery& n) {
      for (int i = 0; i < 2; ++i) {
        n.spawn([&s, from = news.subscribe()]() mutable {
          while (from.recv()) s.ran.fetch_add(1);
        });
      }
      n.spawn([&s, gauge = level.subscribe()]() mutable {
        if (gauge.changed()) s.expect(gauge.get()->size() == 50);
      });
      n.spawn([&s, out = std::move(ends.tx)]() mutable { out.send(parcel(s, 7)); });
      const auto value = ends.rx.recv();  // nothing: the sender could not start
      if (value) s.ran.fetch_add(*value->load);
      for (int i = 0; i < 2; ++i) {
        s.expect(news.send(std::string(40, 'n')));
        for (int k = 0; k < 3; ++k) ramie::yield();
      }
      s.expect(level.send(std::string(50, 'b')));
      news.close();
    });
  });
  s.expect(s.ran == 11);
}

// Two plain threads, one of which runs a fiber, and this one.
inline void threads(ramie::runtime& rt, scene& s) {
  const channel<parcel> mail(0), back(1);
  std::exception_ptr failures[3];
  const auto guarded = [&](int who, auto f) {
    try {
      f();
    } catch (...) {
      failures[who] = std::current_exception();
    }
    mail.close();
    if (who != 0 || failures[who] != nullptr) back.close();
  };
  std::thread others[2];
  {
    const spared_allocations for_the_test;
    others[0] = std::thread([&] {
      guarded(0, [&] {
        for (int i = 0; i < 4; ++i) mail.send(parcel(s, i));
      });
    });
    others[1] = std::thread([&] {
      guarded(1, [&] {
        rt.run([&] {
          while (auto p = mail.recv()) back.send(std::move(*p));
        });
      });
    });
  }
  int got = 0;
  guarded(2, [&] {
    while (back.recv_for(1h)) ++got;
  });
  for (auto& t : others) t.join();
  for (auto& f : failures) {
    if (f != nullptr) std::rethrow_exception(f);
  }
  s.expect(got == 4);
}

// Memory of a nursery: objects, closures of all sizes, children of children.
inline void owning(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    nursery n;
    for (int i = 0; i < 3; ++i) {
      n.make<citizen>(s.things);
      n.make<std::array<char, 3'000>>();
      n.make<parcel>(s, i);
      n.spawn([&s, mine = citizen(s.things), big = std::array<char, 900>()] { s.ran.fetch_add(big[0] + 1); });
      n.spawn([&s, &n, mine = citizen(s.things)] {
        for (int k = 0; k < 6; ++k) n.spawn([&s, his = citizen(s.things)] { s.ran.fetch_add(1); });
        n.make<citizen>(s.things);
      });
    }
    std::vector<ramie::task<parcel>> results;
    for (int i = 0; i < 12; ++i) results.push_back(n.spawn([&s, i] { return parcel(s, i); }));
    s.expect(*results[5].get().load == 5);
    n.join();
  });
  s.expect(s.ran == 21);
}

// Each time deeper than ever before: nurseries are pooled for the life of the process.
inline int descend(int depth, scene& s) {
  return ramie::with_nursery([&](nursery& n) {
    const auto child = n.spawn([who = citizen(s.things)] {});
    return depth == 0 ? 0 : descend(depth - 1, s) + 1;
  });
}
inline void deeper(ramie::runtime& rt, scene& s) {
  static int depth = 10;
  depth += 2;
  rt.run([&] { s.expect(descend(depth, s) == depth); });
}

// A failure that must arrive, through two nurseries.
inline void failing(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> never(0);
    ramie::with_nursery([&](nursery& outer) {
      outer.spawn([&, who = citizen(s.things)] {
        nursery n;
        for (int i = 0; i < 3; ++i) n.spawn([&, mine = citizen(s.things)] { (void)never.recv(); });
        n.spawn({.name = "the one that fails, by name"}, [mine = citizen(s.things)] { throw deliberate(); });
        n.join();
      });
      (void)never.recv();
    });
  });
  s.expect(false);
}

// The same with code that is cut short, and nobody who joins.
inline void unwinding(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> never(0);
    nursery outer;
    outer.spawn([&, who = citizen(s.things)] {
      nursery n;
      n.spawn([&, mine = citizen(s.things)] { (void)never.recv(); });
      n.spawn([mine = citizen(s.things)] {
        ramie::yield();
        throw deliberate();
      });
      (void)never.recv();
    });
    outer.join();
  });
  s.expect(false);
}

// An exception of the owner's own, while children wait.
inline void leaving(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> never(0);
    nursery n;
    for (int i = 0; i < 3; ++i) n.spawn([&, who = citizen(s.things)] { (void)never.recv(); });
    for (int i = 0; i < 3; ++i) ramie::yield();
    throw deliberate();
  });
}

inline void failures(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([who = citizen(s.things)] {
        const ramie::shield not_yet;
        ramie::yield();
        throw deliberate();
      });
    }
    const ramie::shield not_yet;
    while (n.live_fibers() != 0) ramie::yield();
    (void)n.failures();
    n.join();
  });
  s.expect(false);
}

// Names and values of fibers and of a plain thread.
inline void locals(ramie::runtime& rt, scene& s) {
  static ramie::fiber_local<std::string, ramie::inherit::yes> greeting;
  static ramie::fiber_local<int> number;
  const auto use = [&s] {
    const bool none = number.find() == nullptr;
    number.set(3);
    greeting.get() = std::string(40, 'g');
    s.expect(none && *number == 3);
    ramie::this_fiber::set_name("a name that is longer than most");
    s.expect(ramie::this_fiber::name().size() == 31);
  };
  rt.run([&] {
    use();
    nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn({.name = "a child whose name needs memory"}, [&s, who = citizen(s.things)] {
        s.expect(greeting->size() == 40 && number.find() == nullptr);
        s.ran.fetch_add(1);
      });
    }
    n.join();
  });
  s.expect(s.ran == 3);
  std::exception_ptr failure;
  std::thread other;
  {
    const spared_allocations for_the_test;
    other = std::thread([&] {
      try {
        use();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  other.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

inline void gathering(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> never(0);
    const auto [a, b] = ramie::join_all([&] { return parcel(s, 1); }, [&] { return parcel(s, 2); });
    s.expect(*a.load + *b.load == 3);
    const int first = ramie::race([&, who = citizen(s.things)] { return never.recv().value_or(0); }, [] { return 9; });
    s.expect(first == 9);
    std::vector<std::function<parcel()>> all;
    for (int i = 0; i < 3; ++i) all.emplace_back([&s, i] { return parcel(s, i); });
    const auto range = ramie::join_all(all);
    s.expect(range.size() == 3);
    const auto outcomes = ramie::try_join_all([&] { return parcel(s, 1); }, []() -> int { throw deliberate(); });
    s.expect(!std::get<1>(outcomes));
    if (!std::get<0>(outcomes)) std::rethrow_exception(std::get<0>(outcomes).failure());
  });
}

// Deadlines, tokens, shutdowns.
inline void stopping(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    channel<int> never(0);
    s.expect(!ramie::with_timeout(100us, [&] { (void)never.recv(); }));
    std::stop_source outside;
    {
      nursery n;
      n.cancel_after(1h);
      n.cancel_on(outside.get_token());
      const std::stop_token inside = n.get_stop_token();
      n.spawn([&, who = citizen(s.things)] { (void)never.recv(); });
      ramie::yield();
      outside.request_stop();
      n.join();
      s.expect(inside.stop_requested());
    }
    nursery n;
    n.spawn({.name = "a straggler with a name of some length"}, [&, who = citizen(s.things)] { (void)never.recv(); });
    const auto report = n.shutdown(50us);
    n.join();
    s.expect(report.stragglers.size() == 1);
  });
}

// A runtime of its own, whose time is made by hand, and a channel between the two.
inline void clocked(ramie::runtime& rt, scene& s) {
  ramie::manual_clock clock;
  ramie::options o;
  o.workers = 1;
  o.clock = &clock;
  ramie::runtime own(o);
  const channel<parcel> across(1);
  own.run([&] {
    const channel<int> silent(0);
    nursery n;
    n.spawn([&] { s.ran.fetch_add(!ramie::with_timeout(1s, [&] { (void)silent.recv(); })); });
    while (s.ran == 0) {
      ramie::yield();
      clock.advance(2s);
    }
    n.join();
    across.send(parcel(s, 1));
  });
  rt.run([&] { s.ran.fetch_add(*across.recv().value().load); });
  s.expect(s.ran == 2);
}

// Calls on threads of the pool, more than it may have; pauses; what was left behind.
inline void calling(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    nursery n;
    for (int i = 0; i < 4; ++i) {
      n.spawn([&s, i, who = citizen(s.things)] {
        const auto got = ramie::blocking([&] { return parcel(s, i); });
        s.expect(*got.load == i);
        s.ran.fetch_add(1);
      });
    }
    n.join();
    const int once = ramie::blocking(ramie::detach_on_cancel, [p = parcel(s, 5)] { return *p.load; });
    s.expect(once == 5);
    (void)ramie::with_timeout(0s, [&] { ramie::blocking(ramie::detach_on_cancel, [p = parcel(s, 6)] {}); });
    ramie::rate_limiter limit(1'000'000, 1);
    int tries = 0;
    ramie::retry({.attempts = 3, .first_delay = 1us}, [&] {
      limit.acquire();
      if (++tries < 2) throw deliberate();
    });
    s.expect(tries >= 2);
  });
  s.expect(s.ran == 4);
}

// Lines through small buffers and a small duplex, with deadlines; then a shutdown that waits for who wrote them.
inline void streaming(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    ramie::shutdown_source over;
    bool told = false;
    const auto callback = over.get_token().on_request([&told, who = citizen(s.things)] { told = true; });
    auto ends = ramie::make_duplex(64);
    nursery n;
    n.spawn([&ends, work = over.get_token().guard("who writes the lines"), who = citizen(s.things)] {
      ramie::buffered_writer out(ends.first, 16);
      for (int i = 0; i < 20; ++i) out.write("a line that is longer than the buffers\r\n", ramie::deadline(1h));
      out.flush();
      ends.first.shutdown(ramie::shutdown_part::write);
    });
    ramie::buffered_reader in(ends.second, 8);
    for (const std::string& line : in.lines(100)) s.ran.fetch_add(line.size() == 38);
    s.expect(over.request() && told && over.wait_pending().all_done());
    n.join();
  });
  s.expect(s.ran == 20);
}

// The only worker is blocked until somebody else has run, or its patience is at an end.
inline void blocking(ramie::runtime& rt, scene& s) {
  rt.run([&] {
    nursery n;
    n.spawn([&s, who = citizen(s.things)] { s.ran.fetch_add(1); });
    const auto patience = std::chrono::steady_clock::now() + 100ms;
    while (s.ran == 0 && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(1ms);
    n.join();
  });
  s.expect(s.ran == 1);
}

}  // namespace test::faulty::programs
