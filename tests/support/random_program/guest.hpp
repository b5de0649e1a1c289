// SPDX-License-Identifier: BSL-1.0
// What a party of a random program does for itself: it meets others on channels, waits for a task, passes cancellation
// points, and keeps a diary of that. Fibers and plain threads alike.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <support/random_program/world.hpp>
#include <support/number_in.hpp>

namespace test::random_program {

using held_task = ramie::task<long>;

class guest {
 public:
  // `home`: the scope it is a child of. A plain thread: the scope it may cancel.
  guest(world& w, ground& home, const hall* halls, bool plain)
      : w_(w), d_(w.open_diary()), here_(&home), home_(&home), halls_(halls), plain_(plain) {}
  guest(const guest&) = delete;
  guest& operator=(const guest&) = delete;

  diary& notes() { return d_; }

 protected:
  // A `cancelled` came by. It is not asked for its cause, which would be to receive that.
  void saw(const ramie::cancelled& c) {
    int tag = 0;
    const std::string& text = c.reason().text;
    if (c.kind() == ramie::cancel_kind::sibling_failure) {
      const std::string_view before = "failed: mishap ";
      const auto at = text.find(before);
      tag = at != std::string::npos ? number_in(std::string_view(text).substr(at + before.size())) : -1;
    } else if (text.starts_with("step ")) {
      tag = number_in(std::string_view(text).substr(5));
    }
    d_.sightings.push_back({here_->id, {c.kind(), tag}, w_.now()});
  }
  static int number_of(const std::exception_ptr& what) {
    try {
      if (what != nullptr) std::rethrow_exception(what);
    } catch (const mishap& m) {
      return m.number;
    } catch (...) {
    }
    return -1;
  }
  void received(const std::exception_ptr& what) { d_.received.push_back(number_of(what)); }

  // A cancellation point: must not return if somebody has already cancelled a scope around it.
  template <class Point>
  void pass(Point point) {
    const ground* overdue = nullptr;
    for (const ground* g = here_; !plain_ && g != nullptr && !g->shield; g = g->parent) {
      if (g->cancelled.load(std::memory_order_acquire)) overdue = g;
    }
    point();
    if (overdue != nullptr) d_.passages.push_back({here_->id, overdue->id});
  }

  static std::chrono::microseconds a_while(const node& p) { return std::chrono::microseconds(p.tag * 7 % 50); }

  void send(const node& p, place& at) {
    post(d_, at.number, [&](letter& l) {
      constexpr auto ok = ramie::channel_status::ok;
      if (p.c == 0) return at.channel.try_send(std::move(l)) == ok;
      if (p.c == 1) return at.channel.send_for(std::move(l), a_while(p)) == ok;
      return at.channel.send(std::move(l));
    });
  }

  // f() receives; it may find out what the channel was closed with.
  template <class F>
  void receiving(place& one, place& other, F f) {
    try {
      f();
    } catch (const closed_with& c) {
      d_.expect(c.tag == one.closed_with.load() || c.tag == other.closed_with.load(), "a receive threw", c.tag);
    }
  }
  void recv(const node& p, place& at) {
    receiving(at, at, [&] {
      if (p.c == 0) {
        take(d_, at.number, at.channel.try_recv());
      } else if (p.c == 1) {
        take(d_, at.number, at.channel.recv_for(a_while(p)));
      } else {
        take(d_, at.number, at.channel.recv());
      }
    });
  }
  void close(const node& p, place& at) {
    int none = 0;
    if (p.c == 0) {
      at.channel.close();
    } else if (at.closed_with.compare_exchange_strong(none, p.tag)) {
      at.channel.close(std::make_exception_ptr(closed_with{p.tag}));
    }
  }

  // One select, by flavour: whichever case happens, only that one has.
  void pick(const node& p, place& from, place& to) {
    receiving(from, to, [&] {
      post(d_, to.number, [&](letter& l) {
        bool sent = false;
        int happened = 0;
        const auto once = [&] { ++happened; };
        const auto got_from = [&](place& at) {
          return [&, number = at.number](std::optional<letter> arrived) {
            once();
            take(d_, number, std::move(arrived));
          };
        };
        const auto was_sent = [&](bool accepted) {
          once();
          sent = accepted;
        };
        auto receive = ramie::on_recv(from.channel, got_from(from));
        auto give = ramie::on_send(to.channel, l, was_sent);
        const held_task nothing;
        switch (p.d) {
          case 0: ramie::select(receive, give, ramie::otherwise(once)); break;
          case 1: ramie::select(give, receive, ramie::on_timeout(a_while(p), once)); break;
          case 2: ramie::select(receive, give); break;
          case 3: ramie::select(ramie::on_ready(held_ != nullptr ? *held_ : nothing, once), receive, give); break;
          case 4: ramie::select(receive, ramie::on_recv(to.channel, got_from(to))); break;
          default: {
            ramie::selector several;
            several.on_recv(from.channel, got_from(from)).on_send(to.channel, l, was_sent);
            several.on_recv(ramie::channel<letter>(), got_from(from));
            if (p.tag % 2 == 0) several.on_timeout(a_while(p), once);
            (void)several.wait();
          }
        }
        d_.expect(happened == 1, "handlers called by a select", p.tag);
        return sent;
      });
    });
  }

  void await(const node& p) {
    if (held_ == nullptr || !held_->valid()) return;
    switch (p.a) {
      case 0: held_->reset(); return;
      case 1:
        if (!held_->done()) return;
        break;
      case 2: {
        bool ended = false;
        ramie::select(ramie::on_timeout(a_while(p), [] {}), ramie::on_ready(*held_, [&] { ended = true; }));
        if (!ended) return;
        break;
      }
      default: held_->wait(); break;
    }
    check_task(p, *held_);
  }
  // It has ended, or this waits for it; its end is not ours.
  void check_task(const node& p, held_task& t) {
    t.wait();
    d_.expect(t.done(), "a task that was waited for", p.tag);
    try {
      d_.expect(t.get() > 1'000, "the value of a task", p.tag);
    } catch (const ramie::cancelled& c) {
      if (c.is_own()) throw;  // else it is not to end us
    } catch (const mishap& m) {
      d_.received.push_back(m.number);
    }
    t.reset();
  }

  void wait_for_ever(const node& p) {
    ramie::channel<long> nobody(0);
    long stays = 1;
    switch (p.a) {
      case 0: (void)nobody.recv(); break;
      case 1: (void)nobody.send(1); break;
      case 2:
        ramie::select(ramie::on_recv(nobody, [](std::optional<long>) {}), ramie::on_send(nobody, stays, [](bool) {}));
        break;
      case 3: {
        auto ends = ramie::make_oneshot<long>();
        (void)ends.rx.recv();
        break;
      }
      default:
        for (;;) pass([] { ramie::yield(); });
    }
    d_.expect(false, "for ever is over", p.tag);
  }

  world& w_;
  diary& d_;
  ground* here_;  // the innermost scope
  ground* home_;  // the innermost nursery
  const hall* const halls_;
  const bool plain_;
  held_task* held_ = nullptr;
};

}  // namespace test::random_program
