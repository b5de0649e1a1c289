// SPDX-License-Identifier: BSL-1.0
// Closed pieces of random programs: parties that wait only for each other, with a result that is known beforehand.
// Whatever is cancelled from outside unwinds; what returns is checked.
#pragma once

#include <functional>
#include <thread>

#include <support/random_program/world.hpp>

namespace test::random_program {

// Fork-join: a tree of random shape.
inline long leaf(std::uint64_t seed) {
  return static_cast<long>(seed % 1'000);
}
inline long sum_of(std::uint64_t seed, unsigned depth) {
  dice d(seed);
  long sum = leaf(d());
  if (depth == 0) return sum;
  for (unsigned children = d.below(4); children > 0; --children) sum += sum_of(d(), depth - 1);
  return sum;
}
inline long forked_sum(std::uint64_t seed, unsigned depth) {
  dice d(seed);
  const std::uint64_t mine = d();
  long sum = leaf(mine);
  if (depth == 0) {
    if (mine % 3 == 0) ramie::yield();
    return sum;
  }
  ramie::nursery n;
  std::vector<ramie::task<long>> tasks;
  for (unsigned children = d.below(4); children > 0; --children) {
    tasks.push_back(n.spawn([s = d(), depth] { return forked_sum(s, depth - 1); }));
  }
  if (mine % 2 == 0) n.join();
  for (auto& t : tasks) sum += t.get();
  if (mine % 2 != 0) n.join();
  return sum;
}
inline void run_sum(diary& d, const node& p) {
  d.expect(forked_sum(p.a, p.b) == sum_of(p.a, p.b), "fork-join sum", p.tag);
}

// Numbers through stages that add one. Flavours: closed by hand; counted ends; a failure as the end.
template <class Out>
void pump(const Out& out, unsigned count) {
  for (unsigned i = 1; i <= count; ++i) {
    if (!out.send(i)) return;
  }
}
template <class In, class Out>
void add_one(const In& in, const Out& out) {
  for (const long v : in) {
    if (!out.send(v + 1)) return;
  }
}
inline void run_pipe(diary& d, const node& p) {
  const long expected = static_cast<long>(p.a) * (p.a + 1) / 2 + static_cast<long>(p.a) * p.b;
  long sum = 0;
  bool broke = false;
  ramie::nursery n;
  if (p.d == 1) {
    auto ends = ramie::make_channel<long>(p.c);
    n.spawn([tx = std::move(ends.tx), count = p.a] { pump(tx, count); });
    for (unsigned stage = 0; stage < p.b; ++stage) {
      auto next = ramie::make_channel<long>((p.c + stage) % 4);
      n.spawn([rx = std::move(ends.rx), tx = std::move(next.tx)] { add_one(rx, tx); });
      ends.rx = std::move(next.rx);
    }
    for (const long v : ends.rx) sum += v;
  } else {
    ramie::channel<long> in(p.c);
    n.spawn([in, count = p.a, how = p.d, tag = p.tag] {
      pump(in, count);
      in.close(how == 2 ? std::make_exception_ptr(closed_with{tag}) : nullptr);
    });
    for (unsigned stage = 0; stage < p.b; ++stage) {
      ramie::channel<long> out((p.c + stage) % 4);
      n.spawn([in, out] {
        try {
          add_one(in, out);
          out.close();
        } catch (const closed_with&) {
          out.close(std::current_exception());
        }
      });
      in = out;
    }
    try {
      for (const long v : in) sum += v;
    } catch (const closed_with& c) {
      broke = c.tag == p.tag;
    }
  }
  n.join();
  d.expect(sum == expected, "pipeline sum", p.tag);
  d.expect(broke == (p.d == 2), "what the pipeline was closed with", p.tag);
}

// Requests with a oneshot for the answer.
inline void run_ask(diary& d, const node& p) {
  struct question {
    long number;
    ramie::oneshot_sender<long> answer;
  };
  std::atomic<unsigned> right{0};
  auto ends = ramie::make_channel<question>(p.tag % 3u);
  ramie::nursery n;
  n.spawn([rx = std::move(ends.rx)] {
    for (question& q : rx) q.answer.send(q.number * q.number);
  });
  for (unsigned client = 0; client < p.a; ++client) {
    n.spawn([&right, tx = ends.tx, client, count = p.b] {
      for (unsigned i = 0; i < count; ++i) {
        const long number = client * 100 + i;
        auto reply = ramie::make_oneshot<long>();
        tx.send({number, std::move(reply.tx)});
        std::optional<long> answer;
        if (i % 2 == 0) {
          answer = reply.rx.recv();
        } else {
          ramie::select(ramie::on_ready(reply.rx, [&] { answer = reply.rx.try_recv().to_optional(); }));
        }
        if (answer == number * number) right.fetch_add(1);
      }
    });
  }
  ends.tx.reset();
  n.join();
  d.expect(right.load() == p.a * p.b, "answers", p.tag);
}

// Every receiver gets all messages in order, those it is told it lost included.
inline void run_news(world& w, diary& d, const node& p) {
  struct message {
    unsigned number;
    citizen counted;
  };
  std::atomic<unsigned> satisfied{0};
  ramie::broadcast<message> out(p.a);
  ramie::nursery n;
  for (unsigned reader = 0; reader < p.c; ++reader) {
    n.spawn([&satisfied, rx = out.subscribe(), count = p.b]() mutable {
      unsigned next = 0;
      for (bool in_order = true; in_order;) {
        const auto m = rx.recv();
        if (!m) break;
        next += static_cast<unsigned>(m.lost());
        in_order = m->number == next++;
      }
      if (next == count) satisfied.fetch_add(1);
    });
  }
  for (unsigned i = 0; i < p.b; ++i) {
    out.send({i, citizen(w.objects)});
    if (i % 3 == 2) ramie::yield();
  }
  out.close();
  n.join();
  d.expect(satisfied.load() == p.c, "broadcast", p.tag);
}

// Never backwards; the last value is seen.
inline void run_gauge(diary& d, const node& p) {
  ramie::watch<unsigned> level(0);
  auto rx = level.subscribe();
  bool backwards = false;
  unsigned last = 0;
  ramie::nursery n;
  n.spawn([out = std::move(level), count = p.a] {
    for (unsigned i = 1; i <= count; ++i) {
      out.send(i);
      ramie::yield();
    }
  });
  while (rx.changed()) {
    const unsigned seen = *rx.get();
    backwards = backwards || seen < std::exchange(last, seen);
  }
  n.join();
  d.expect(!backwards && last == p.a, "watch", p.tag);
}

// Only one runner can win: the others wait for a gun that nobody fires. Some fail when they have lost.
inline void run_contest(diary& d, const node& p) {
  ramie::channel<int> gun(0);
  std::vector<std::function<long()>> runners;
  for (unsigned i = 0; i < p.a; ++i) {
    runners.emplace_back([gun, wins = i == p.b, fails = p.c != 0, tag = p.tag]() -> long {
      try {
        if (!wins) (void)gun.recv();
      } catch (const ramie::cancelled& c) {
        if (c.reason().text == "the race is over" && tag % 2 == 0) throw closed_with{-tag};
        throw;
      }
      ramie::yield();
      if (fails) throw closed_with{tag};
      return tag;
    });
  }
  long got = 0;
  try {
    got = ramie::race(runners);
  } catch (const closed_with& c) {
    got = -c.tag;
  }
  d.expect(got == (p.c != 0 ? -p.tag : p.tag), "race", p.tag);
}

inline void run_each(diary& d, const node& p) {
  std::vector<std::function<unsigned()>> all;
  for (unsigned i = 0; i < p.a; ++i) {
    all.emplace_back([i, fails = (p.b >> i & 1) != 0] {
      ramie::yield();
      if (fails) throw closed_with{static_cast<int>(i)};
      return i;
    });
  }
  const unsigned failing = p.b & ((1u << p.a) - 1);
  if (p.c == 0) {
    const auto outcomes = ramie::try_join_all(all);
    for (unsigned i = 0; i < p.a; ++i) {
      d.expect(outcomes[i].has_value() == ((failing >> i & 1) == 0), "try_join_all", p.tag);
    }
    return;
  }
  try {
    const auto values = ramie::join_all(all);
    d.expect(failing == 0 && values.size() == p.a && values.back() == p.a - 1, "join_all", p.tag);
  } catch (const closed_with& c) {
    d.expect((failing >> c.tag & 1) != 0, "join_all threw", p.tag);
  }
}

// Everything from several sources by one selector.
inline void run_merge(diary& d, const node& p) {
  std::vector<ramie::channel<long>> sources;
  for (unsigned i = 0; i < p.a; ++i) sources.emplace_back(i % 3);
  ramie::nursery n;
  for (unsigned i = 0; i < p.a; ++i) {
    n.spawn([s = sources[i], count = p.b] {
      pump(s, count);
      s.close();
    });
  }
  long sum = 0;
  unsigned open = p.a;
  for (std::size_t happened = 0, waits = 0; open > 0; ++waits) {
    ramie::selector any;
    for (auto& s : sources) {
      any.on_recv(s, [&](std::optional<long> v) {
        ++happened;
        if (v) {
          sum += *v;
        } else {
          s = {};
          --open;
        }
      });
    }
    if (p.c != 0) any.on_timeout(std::chrono::microseconds(20), [&] { ++happened; });
    (void)any.wait();
    d.expect(happened == waits + 1, "one handler a select", p.tag);
  }
  n.join();
  d.expect(sum == static_cast<long>(p.a) * p.b * (p.b + 1) / 2, "merged sum", p.tag);
}

// A buffered channel as a semaphore.
inline void run_permits(diary& d, const node& p) {
  ramie::channel<char> room(p.a);
  std::atomic<unsigned> inside{0}, most{0}, done{0};
  ramie::nursery n;
  for (unsigned i = 0; i < p.b; ++i) {
    n.spawn([&, room] {
      room.send('x');
      const unsigned now = inside.fetch_add(1) + 1;
      unsigned seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      ramie::yield();
      inside.fetch_sub(1);
      (void)room.recv();
      done.fetch_add(1);
    });
  }
  n.join();
  d.expect(done.load() == p.b && most.load() <= p.a, "permits", p.tag);
}

// Numbers to or from a plain thread. If we are cancelled, the channel is closed, and that ends the thread.
inline void run_abroad(diary& d, const node& p) {
  const long expected = static_cast<long>(p.a) * (p.a + 1) / 2;
  ramie::channel<long> way(p.b);
  long theirs = 0, ours = 0;
  const auto add = [way](long& sum) {
    for (const long v : way) sum += v;
  };
  {
    struct traveller {
      ramie::channel<long> way;
      std::thread thread;
      ~traveller() {
        way.close();
        thread.join();
      }
    };
    if (p.c == 0) {
      const traveller t{way, std::thread([way, count = p.a] {
                          pump(way, count);
                          way.close();
                        })};
      add(ours);
    } else {
      const traveller t{way, std::thread([&theirs, add] { add(theirs); })};
      pump(way, p.a);
    }
  }
  d.expect(ours + theirs == expected, "sum abroad", p.tag);
}

}  // namespace test::random_program
