// SPDX-License-Identifier: BSL-1.0
// The interpreter of plans: one actor per fiber or thread, which does its steps and keeps a diary of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>

#include <support/random_program/guest.hpp>
#include <support/random_program/pieces.hpp>

namespace test::random_program {

class actor : public guest {
 public:
  actor(world& w, ground& home, const hall* halls, bool plain = false) : guest(w, home, halls, plain) {}

  // The whole life of a child; f(actor&).
  template <class F>
  long live(long heirloom_of_parent, F& f) {
    d_.expect(inherited() == heirloom_of_parent, "inherited value");
    d_.expect(own_number.find() == nullptr, "a fresh fiber has values of its own");
    own_number.set(d_.who);
    if (d_.who % 3 == 0) heritage.set(heirloom(d_.who));
    struct at_end {
      diary& d;
      ~at_end() { d.doing.store(0, std::memory_order_relaxed); }
    } const over{d_};
    try {
      return f(*this);
    } catch (const ramie::cancelled& c) {
      saw(c);
      throw;
    } catch (const mishap&) {
      const int number = w_.new_failure();
      d_.thrown.push_back(number);
      w_.cause(*home_, ramie::cancel_kind::sibling_failure, number);
      throw mishap{number};
    }
  }
  // Steps of a plain thread.
  void live_abroad(const node& p, held_task&& given) {
    own_number.set(d_.who);
    held_task held = std::move(given);
    held_ = &held;
    try {
      for (unsigned i = 0; i <= p.b; ++i) steps(p.inner);
    } catch (...) {
      d_.expect(false, "a thread was thrown out", p.tag);
    }
    d_.doing.store(0, std::memory_order_relaxed);
    held_ = nullptr;
  }

  void steps(const std::vector<node>& all) {
    for (const node& p : all) {
      (void)w_.now();
      d_.doing.store(static_cast<int>(p.what) << 16 | (p.tag & 0xffff), std::memory_order_relaxed);
      step(p);
      d_.expect(own_number.get() == d_.who, "a value of its own", p.tag);
    }
  }

  // Steps as a party of a nursery; takes over its sibling's task.
  static long act_out(actor& self, const node& p, held_task& held) {
    self.held_ = &held;
    for (unsigned i = 0; i <= p.b; ++i) self.steps(p.inner);
    if (p.what == act::party && p.c != 0) throw mishap{};
    return value_of(p);
  }
  static long value_of(const node& p) { return 1'000 + p.tag; }

 private:
  void step(const node& p) {
    switch (p.what) {
      case act::pause:
        for (unsigned i = 0; i < p.a; ++i) pass([] { ramie::yield(); });
        break;
      case act::look: pass([] { ramie::check_cancelled(); }); break;
      case act::send: send(p, halls_->at(p.a, p.b)); break;
      case act::recv: recv(p, halls_->at(p.a, p.b)); break;
      case act::pick: pick(p, halls_->at(p.a, p.b), halls_->at(p.a, p.c)); break;
      case act::close: close(p, halls_->at(p.a, p.b)); break;
      case act::cancel: cancel(p); break;
      case act::fail: throw mishap{};
      case act::await: await(p); break;
      case act::forever: wait_for_ever(p); break;
      case act::sprout: sprout(p); break;
      case act::make: home_->home->make<citizen>(w_.objects); break;
      case act::sum: run_sum(d_, p); break;
      case act::pipe: run_pipe(d_, p); break;
      case act::leak: leak(p); break;
      case act::ask: run_ask(d_, p); break;
      case act::news: run_news(w_, d_, p); break;
      case act::gauge: run_gauge(d_, p); break;
      case act::contest: run_contest(d_, p); break;
      case act::each: run_each(d_, p); break;
      case act::merge: run_merge(d_, p); break;
      case act::permits: run_permits(d_, p); break;
      case act::abroad: run_abroad(d_, p); break;
      case act::siege: siege(p); break;
      case act::limit: fit_for_a_destructor(p) ? while_unwinding(p) : limit(p); break;
      case act::guard: guard(p); break;
      case act::brood: brood(p); break;
      case act::hall: gather(p); break;
      case act::party:
      case act::thread:
      case act::body: break;
    }
  }

  // Scopes ------------------------------------------------------------------------------------------

  class inside {
   public:
    inside(actor& self, ground& g, ramie::nursery* n) : self_(self), here_(self.here_), home_(self.home_) {
      self.here_ = &g;
      if (n == nullptr) return;
      g.home = n;
      self.home_ = &g;
    }
    ~inside() {
      self_.here_ = here_;
      self_.home_ = home_;
    }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;

   private:
    actor& self_;
    ground* const here_;
    ground* const home_;
  };

  // The body of a nursery that f(n, g) fills. its_own: whether what it threw belongs to the nursery itself.
  template <class F>
  void fill(const node& p, ramie::nursery& n, ground& g, bool& its_own, bool join, F& f) {
    const inside in(*this, g, &n);
    bool joining = false;
    try {
      f(n, g);
      joining = true;
      if (join) n.join();
    } catch (const ramie::cancelled& c) {
      saw(c);
      its_own = n.owns(c);
      d_.expect(!joining || !its_own, "a join threw its own nursery's cancellation", p.tag);
      w_.cause(g, ramie::cancel_kind::requested, 0);  // "its nursery ended without a join()"
      throw;
    } catch (...) {
      w_.cause(g, ramie::cancel_kind::requested, 0);
      throw;
    }
  }

  // A nursery that is unwound through, left with the exception in the hand, or with_nursery; left joined if all is
  // well. Or unwound through by something else than its own cancellation, and then the failure behind that is lost.
  struct something_else {};
  template <class F>
  void in_nursery(const node& p, F f) {
    ground& g = w_.open(here_);
    bool its_own = false;
    std::exception_ptr out;
    try {
      if (p.a % 3 == 0) {
        ramie::nursery n;
        try {
          fill(p, n, g, its_own, true, f);
        } catch (const ramie::cancelled&) {
          if (!its_own || p.a % 2 == 0) throw;
          throw something_else();
        }
      } else if (p.a % 3 == 1) {
        ramie::nursery n;
        try {
          fill(p, n, g, its_own, true, f);
        } catch (...) {
          out = std::current_exception();
        }
      } else {
        ramie::with_nursery([&](ramie::nursery& n) { fill(p, n, g, its_own, false, f); });
      }
    } catch (...) {
      out = std::current_exception();
      if (p.a % 3 == 2) its_own = false;  // with_nursery has dealt with it
    }
    w_.close(g, d_, p.tag);
    if (out == nullptr) return;
    try {
      std::rethrow_exception(out);
    } catch (const ramie::cancelled& c) {
      if (!its_own) throw;
      const std::exception_ptr behind = c.cause();
      if (behind == nullptr) return;
      received(behind);
      std::rethrow_exception(behind);
    } catch (const something_else&) {
    } catch (const mishap& m) {
      d_.received.push_back(m.number);
      throw;
    }
  }

  // Failures end here, mostly.
  template <class F>
  void contain(const node& p, F f) {
    try {
      f();
    } catch (const mishap&) {
      if (p.tag % 4 == 0 && home_->home != nullptr) throw;
    }
  }

  template <class F>
  auto spawn(ramie::nursery& n, ground& g, const hall* halls, F f) {
    return n.spawn([&w = w_, &g, halls, load = cargo(w_, g), value = inherited(), f = std::move(f)]() mutable -> long {
      actor me(w, g, halls);
      return me.live(value, f);
    });
  }
  held_task spawn_party(ramie::nursery& n, ground& g, const hall* halls, const node& p, held_task held) {
    return spawn(n, g, halls, [&p, held = std::move(held)](actor& me) mutable { return act_out(me, p, held); });
  }

  // The children of a nursery: some take their older sibling's task, some tasks are dropped.
  void spawn_parties(ramie::nursery& n, ground& g, const hall* halls, const node& p, held_task& last) {
    for (const node& each : p.inner) {
      if (each.what == act::party) last = spawn_party(n, g, halls, each, each.a != 0 ? std::move(last) : held_task());
    }
  }

  struct leave {
    actor& self;
    ground& g;
    int tag;
    ~leave() { self.w_.close(g, self.d_, tag); }
  };

  void limit(const node& p) {
    ground& g = w_.open(here_);
    const auto how_long = std::chrono::microseconds(p.a);
    const auto when = ramie::now() + how_long;
    w_.cause(g, ramie::cancel_kind::deadline, 0);
    bool reached = false, in_time = false;
    const leave at_end{*this, g, p.tag};
    const auto run = [&] {
      const inside in(*this, g, nullptr);
      try {
        steps(p.inner);
        if (p.a == 0) pass([] { ramie::check_cancelled(); });
        reached = true;
      } catch (const ramie::cancelled& c) {
        saw(c);
        throw;
      }
    };
    in_time = p.tag % 2 == 0 ? ramie::with_timeout(how_long, run) : ramie::with_deadline(when, run);
    if (!in_time) ++d_.timeouts;
    d_.expect(in_time == reached, "with_timeout tells what happened", p.tag);
    d_.expect(in_time || ramie::now() >= when, "a timeout before its time", p.tag);
    d_.expect(in_time || p.a != an_hour, "an hour has gone by", p.tag);
    d_.expect(!in_time || p.a != 0, "no time is no time", p.tag);
  }

  // Nothing that may throw there but the timeout's own cancellation, and no wait that only somebody else could end.
  static bool fit_for_a_destructor(const node& p) {
    const auto fit = [](const node& s) {
      switch (s.what) {
        case act::pause:
        case act::look:
        case act::send:
        case act::recv:
        case act::pick:
        case act::forever:
        case act::make: return true;
        default: return false;
      }
    };
    return p.tag % 3 != 0 && p.a != an_hour && std::all_of(p.inner.begin(), p.inner.end(), fit);
  }
  // To scopes from before that is like a shield.
  void while_unwinding(const node& p) {
    struct unwound {};
    ground& g = w_.open(here_, true);
    const leave at_end{*this, g, p.tag};
    struct last_thing {
      actor& self;
      ground& g;
      const node& p;
      ~last_thing() {
        const inside in(self, g, nullptr);
        self.limit(p);
      }
    };
    try {
      const last_thing in_a_destructor{*this, g, p};
      throw unwound();
    } catch (const unwound&) {
    }
  }

  void guard(const node& p) {
    ground& g = w_.open(here_, true);
    const leave at_end{*this, g, p.tag};
    const ramie::shield shielded;
    const inside in(*this, g, nullptr);
    try {
      steps(p.inner);
    } catch (const ramie::cancelled& c) {
      saw(c);  // nothing can explain it
      throw;
    }
  }

  void brood(const node& p) {
    const auto by = static_cast<brood_end>(p.b);
    std::stop_source stop;
    contain(p, [&] {
      in_nursery(p, [&](ramie::nursery& n, ground& g) {
        if (by == brood_end::deadline) {
          w_.cause(g, ramie::cancel_kind::deadline, 0);
          n.cancel_after(std::chrono::microseconds(p.c));
        }
        if (by == brood_end::stop_token) {
          w_.cause(g, ramie::cancel_kind::requested, 0);
          n.cancel_on(stop.get_token());
        }
        (void)spawn(n, g, halls_, [&p, by, stop](actor& me) mutable {
          held_task none;
          const long value = act_out(me, p.inner.front(), none);
          if (by == brood_end::failure) throw mishap{};
          if (by == brood_end::stop_token) {
            stop.request_stop();
            me.home_->cancelled.store(true, std::memory_order_release);
          }
          return value;
        });
        held_task last;
        for (std::size_t i = 1; i < p.inner.size(); ++i) {
          const node& each = p.inner[i];
          last = spawn_party(n, g, halls_, each, each.a != 0 ? std::move(last) : held_task());
        }
        if (by == brood_end::cancelled) {
          for (unsigned i = 0; i < p.c % 8; ++i) pass([] { ramie::yield(); });
          cancel_ground(g, p.tag);
        }
      });
    });
  }

  // Asks politely first.
  void siege(const node& p) {
    unsigned stubborn = 0, late = 0;
    bool ended = false;
    contain(p, [&] {
      in_nursery(p, [&](ramie::nursery& n, ground& g) {
        for (unsigned i = 0; i < p.b; ++i) {
          n.spawn({.name = "polite"}, [&n, load = cargo(w_, g)] {
            while (!n.closing()) ramie::yield();
          });
        }
        for (unsigned i = 0; i < p.c; ++i) {
          n.spawn({.name = "stubborn"}, [load = cargo(w_, g)] { (void)ramie::channel<int>(0).recv(); });
        }
        w_.cause(g, ramie::cancel_kind::shutdown, 0);
        const auto found = n.shutdown(std::chrono::microseconds(p.a));
        for (const auto& name : found.stragglers) ++(name.find("stubborn") != std::string::npos ? stubborn : late);
        ended = g.closures.load(std::memory_order_relaxed) == 0;
      });
    });
    if (ramie::stop_requested()) return;  // somebody else may have ended them
    d_.expect(ended, "children after a shutdown", p.tag);
    d_.expect(stubborn == p.c && late <= p.b, "stragglers", p.tag);
  }

  void cancel_ground(ground& g, int tag) {
    w_.cause(g, ramie::cancel_kind::requested, tag);
    g.home->cancel("step " + std::to_string(tag));
    g.cancelled.store(true, std::memory_order_release);
  }
  void cancel(const node& p) {
    ground* g = home_;
    for (unsigned up = p.a; up > 0; --up) {
      ground* next = g->parent;
      while (next != nullptr && next->home == nullptr) next = next->parent;
      if (next != nullptr) g = next;
    }
    if (g->home != nullptr) cancel_ground(*g, p.tag);
  }

  void sprout(const node& p) {
    if (home_->home != nullptr) (void)spawn_party(*home_->home, *home_, halls_, p, {});
  }

  // Halls (actor_halls.hpp) -------------------------------------------------------------------------

  class closing_time;
  void gather(const node& p);
  void linger(const ground& g, const node& p);
  void drain(hall& h);
  void leak(const node& p);
};

}  // namespace test::random_program

#include <support/random_program/actor_halls.hpp>  // the rest of its members
