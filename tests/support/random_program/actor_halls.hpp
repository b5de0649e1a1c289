// SPDX-License-Identifier: BSL-1.0
// What an actor does in a hall: channels that fibers and threads share, opened, filled, closed and emptied.
#pragma once

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <support/random_program/actor.hpp>

namespace test::random_program {

// Threads of a hall, and the end of its channels: on every path closed, and the threads awaited, before the nursery
// ends.
class actor::closing_time {
 public:
  closing_time(actor& self, hall& h) : self_(self), hall_(h) {}
  ~closing_time() { finish(); }
  closing_time(const closing_time&) = delete;
  closing_time& operator=(const closing_time&) = delete;

  void start_thread(ground& g, const node& p, held_task held) {
    auto ends = ramie::make_oneshot<int>();
    waiting_.push_back(std::move(ends.rx));
    threads_.emplace_back(
        [&w = self_.w_, &g, h = &hall_, &p, t = std::move(held), tx = std::move(ends.tx)]() mutable {
          actor(w, g, h, true).live_abroad(p, std::move(t));
          tx.send(1);
        });
  }
  void finish() {
    for (place& each : hall_.places) each.channel.close();
    const ramie::shield shielded;
    for (auto& rx : waiting_) (void)rx.recv();
    waiting_.clear();
    for (auto& t : threads_) t.join();
    threads_.clear();
  }

 private:
  actor& self_;
  hall& hall_;
  std::vector<ramie::oneshot_receiver<int>> waiting_;
  std::vector<std::thread> threads_;
};

inline void actor::gather(const node& p) {
  hall h;
  h.outer = halls_;
  h.level = halls_ != nullptr ? halls_->level + 1 : 0;
  for (unsigned i = 0; i < p.b; ++i) h.places.emplace_back(w_.new_channel(), p.c >> 2 * i & 3);
  struct cleaning {
    actor& self;
    hall& h;
    bool thorough;
    ~cleaning() {
      if (thorough) self.drain(h);
    }
  } const afterwards{*this, h, p.tag % 3 != 0};
  contain(p, [&] {
    in_nursery(p, [&](ramie::nursery& n, ground& g) {
      closing_time closing(*this, h);
      held_task last;
      if (p.d == 1) {
        w_.cause(g, ramie::cancel_kind::deadline, 0);
        n.cancel_after(std::chrono::microseconds(p.c * 4));
      }
      spawn_parties(n, g, &h, p, last);
      for (const node& each : p.inner) {
        if (each.what == act::thread) closing.start_thread(g, each, each.a != 0 ? std::move(last) : held_task());
      }
      steps(p.inner.back().inner);
      linger(g, p.inner.back());
      if (p.d == 2) cancel_ground(g, p.tag);
      closing.finish();
      if (last.valid() && p.d == 3) check_task(p, last);
    });
  });
}

// While things go on in the hall, but not for ever.
inline void actor::linger(const ground& g, const node& p) {
  const ramie::channel<int> nobody(0);
  for (unsigned left = p.a, idle = 0; left > 0 && idle < 4; --left) {
    if (g.closures.load(std::memory_order_relaxed) == 0) return;
    const stamp before = w_.latest();
    for (int i = 0; i < 8; ++i) pass([] { ramie::yield(); });
    if (w_.latest() != before) continue;
    ++idle;
    (void)nobody.recv_for(std::chrono::microseconds(20));
  }
}

// What is left in closed channels.
inline void actor::drain(hall& h) {
  for (place& each : h.places) {
    try {
      while (take(d_, each.number, each.channel.try_recv())) {
      }
    } catch (const closed_with& c) {
      d_.expect(c.tag == each.closed_with.load(), "what the channel was closed with", c.tag);
    }
    d_.drained.push_back(each.number);
  }
}

// Counted ends; receivers may go before all has come.
inline void actor::leak(const node& p) {
  const int number = w_.new_channel();
  contain(p, [&] {
    in_nursery(p, [&](ramie::nursery& n, ground& g) {
      auto ends = ramie::make_channel<letter>(p.d);
      for (unsigned i = 0; i < p.a; ++i) {
        spawn(n, g, halls_, [number, tx = ends.tx, count = p.c](actor& me) {
          for (unsigned left = count; left > 0; --left) {
            if (!post(me.d_, number, [&](letter& l) { return tx.send(std::move(l)); })) break;
          }
          return 1'001L;
        });
      }
      for (unsigned i = 0; i < p.b; ++i) {
        spawn(n, g, halls_, [number, rx = ends.rx, count = p.c, patient = (p.tag >> i & 1) == 0](actor& me) {
          for (unsigned left = count; patient || left > 0; --left) {
            if (take(me.d_, number, rx.recv())) continue;
            me.d_.drained.push_back(number);
            break;
          }
          return 1'001L;
        });
      }
    });
  });
}

}  // namespace test::random_program
