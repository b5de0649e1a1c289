// SPDX-License-Identifier: BSL-1.0
// Random programs as plans: trees of steps, the same for the same seed on every platform.
//
// A plan can't deadlock. Its waits are of these kinds:
//   PL1  for time, which goes on by itself (a ticker moves manual clocks until the program ends);
//   PL2  on a channel of a hall around the step. A hall's owner closes its channels after its own body, and that body
//        uses only channels of halls further out. So the outermost hall is closed after a finite time, then the next
//        one, and so on; no wait on them lasts for ever, not even under a shield;
//   PL3  for the end of a child, of an older sibling, or of a thread of the hall that was closed: downwards or
//        backwards in the order in which the tree was made;
//   PL4  inside a closed piece (fork-join, pipeline, …) whose parties wait only for each other and end by counting;
//   PL5  for ever (`forever`), below a scope that is certain to be cancelled: with a deadline, or a nursery one of
//        whose children does nothing but PL1 to PL4 and then ends it. Never under a shield opened below that scope, and
//        nobody who has to end the scope waits for such a child.
// Every piece ends its waits before it waits for its parties, so a program that hangs is the runtime's fault.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <support/seeds.hpp>

namespace test::random_program {

enum class act : std::uint8_t {
  // steps
  pause,    // a yields
  look,     // a cancellation point that may be overdue
  send,     // hall a, channel b, patience c
  recv,     // the same
  pick,     // select: hall a, channels b and c, flavour d
  close,    // hall a, channel b, with an exception if c
  cancel,   // the nursery a further out
  fail,     // throw
  await,    // the task it was given: flavour a
  forever,  // flavour a
  sprout,   // a child of the home nursery: inner
  make,     // an object of the home nursery
  // closed pieces
  sum,      // fork-join: seed a, depth b
  pipe,     // a numbers through b stages of capacity c, flavour d
  leak,     // counted ends, receivers that go early: a senders, b receivers, c letters
  ask,      // a clients, b questions each
  news,     // broadcast: capacity a, b messages, c receivers
  gauge,    // watch: a values
  contest,  // race: a runners, winner b
  each,     // try_join_all or join_all: a functions, those in mask b fail
  merge,    // selector: a sources of b numbers, with timeouts if c
  permits,  // a at a time, b fibers
  abroad,   // a plain thread and a fiber: a numbers of capacity b, direction c
  siege,    // shutdown: grace a, b polite and c stubborn children
  // scopes with steps in them
  limit,  // with_timeout: a microseconds (0 to few, or an hour): inner
  guard,  // shield: inner
  brood,  // a nursery: style a, ended by b, after c; inner: parties, the first one ends it
  hall,   // a nursery with channels: style a, b channels of capacity 0 to 3 (c), cancelled if d; inner: parties,
          // threads, body
  // inside those
  party,   // a: takes its older sibling's task; does its steps b more times; fails at last if c
  thread,  // the same, plain
  body,    // of a hall's owner, who lingers for a while: at most a looks
};

enum class brood_end : std::uint8_t { none, failure, cancelled, deadline, stop_token };
inline constexpr unsigned an_hour = 3'600'000'000u;

struct node {
  act what = act::pause;
  int tag = 0;  // its number in the plan, from 1
  unsigned a = 0, b = 0, c = 0, d = 0;
  std::vector<node> inner{};
};

struct plan {
  bool manual_clock = false;
  std::vector<node> steps;
  int size = 0;
};

class planner {
 public:
  explicit planner(std::uint64_t seed, int budget) : dice_(seed), budget_(budget) {}

  [[nodiscard]] plan make() {
    plan p;
    p.manual_clock = dice_.one_in(3);
    while (budget_ > 0) p.steps.push_back(dice_.one_in(3) ? brood({0, 4, false, false}) : hall({0, 4, false, false}));
    p.size = tags_;
    return p;
  }

 private:
  // Where a step stands: halls it may use, how deep scopes may still nest, below a scope that is sure to be cancelled,
  // with an older sibling's task.
  struct spot {
    unsigned halls;
    int depth;
    bool doomed;
    bool has_task;
  };

  node make(act what, unsigned a = 0, unsigned b = 0, unsigned c = 0, unsigned d = 0) {
    --budget_;
    return {what, ++tags_, a, b, c, d, {}};
  }
  // Innermost halls more often.
  unsigned some_hall(const spot& at) { return dice_.one_in(3) ? dice_.below(at.halls) : at.halls - 1; }

  std::vector<node> steps(spot at, unsigned most) {
    std::vector<node> all;
    for (unsigned left = 1 + dice_.below(most); left > 0 && budget_ > 0; --left) all.push_back(step(at));
    if (at.doomed && dice_.one_in(2)) all.push_back(make(act::forever, dice_.below(5)));
    return all;
  }

  node step(const spot& at) {
    const unsigned roll = dice_.below(100);
    if (at.halls > 0 && roll < 50) return meeting(at);
    if (at.depth > 0 && roll < 64) return scope(at);
    if (roll < 78) return piece();
    if (roll < 82 && at.has_task) return make(act::await, dice_.below(5));
    if (roll < 85) return make(act::make);
    if (roll < 88 && at.depth > 0) {
      node n = make(act::sprout);
      n.inner = steps({at.halls, at.depth - 1, false, false}, 3);
      return n;
    }
    if (roll == 88 && dice_.one_in(2)) return make(act::fail);
    if (roll == 89 && dice_.one_in(2)) return make(act::cancel, dice_.one_in(4) ? 1 : 0);
    return roll < 95 ? make(act::pause, dice_.below(4)) : make(act::look);
  }

  // What plain threads can do as well, on channels of halls.
  node meeting(const spot& at) {
    const unsigned in = some_hall(at), one = dice_.below(8), other = dice_.below(8);
    const unsigned roll = dice_.below(32);
    if (roll < 10) return make(act::send, in, one, dice_.below(4));
    if (roll < 20) return make(act::recv, in, one, dice_.below(4));
    if (roll == 20) return make(act::close, in, one, dice_.below(2));
    return make(act::pick, in, one, other, dice_.below(6));
  }
  node plain_step(const spot& at) {
    const unsigned roll = dice_.below(16);
    if (roll == 0 && at.has_task) return make(act::await, dice_.below(5));
    if (roll == 1) return make(act::pause, dice_.below(4));
    if (roll == 2 && dice_.one_in(4)) return make(act::cancel, 0);
    return meeting(at);
  }

  node scope(const spot& at) {
    switch (dice_.below(8)) {
      case 0:
      case 1: return hall(at);
      case 2:
      case 3: return brood(at);
      case 4: {
        node n = make(act::guard);
        n.inner = steps({at.halls, at.depth - 1, false, at.has_task}, 4);
        return n;
      }
      case 5: return make(act::siege, dice_.below(3) * 50, dice_.below(3), dice_.below(3));
      default: {
        const unsigned mood = dice_.below(4);
        node n = make(act::limit, mood == 0 ? 0 : mood == 1 ? an_hour : dice_.below(300));
        n.inner = steps({at.halls, at.depth - 1, at.doomed || mood != 1, at.has_task}, 4);
        return n;
      }
    }
  }

  node piece() {
    switch (dice_.below(12)) {
      case 0:
      case 1: return make(act::sum, static_cast<unsigned>(dice_()), 1 + dice_.below(4));
      case 2: return make(act::pipe, dice_.below(20), 1 + dice_.below(3), dice_.below(4), dice_.below(3));
      case 3: return make(act::leak, 1 + dice_.below(3), 1 + dice_.below(3), dice_.below(12), dice_.below(4));
      case 4: return make(act::ask, 1 + dice_.below(3), 1 + dice_.below(4));
      case 5: return make(act::news, 1 + dice_.below(4), dice_.below(12), 1 + dice_.below(3));
      case 6: return make(act::gauge, 1 + dice_.below(8));
      case 7: {
        const unsigned runners = 1 + dice_.below(4);
        return make(act::contest, runners, dice_.below(runners), dice_.below(2));
      }
      case 8: return make(act::each, 1 + dice_.below(4), dice_.below(16), dice_.below(2));
      case 9: return make(act::merge, 1 + dice_.below(4), dice_.below(6), dice_.below(2));
      case 10: return make(act::permits, 1 + dice_.below(3), 1 + dice_.below(6));
      default:
        return dice_.one_in(2) ? make(act::abroad, dice_.below(12), dice_.below(4), dice_.below(2))
                               : make(act::sum, static_cast<unsigned>(dice_()), 1 + dice_.below(3));
    }
  }

  node party(const spot& at, unsigned most) {
    node n = make(act::party, at.has_task ? 1u : 0u);
    n.inner = steps(at, most);
    const bool simple = std::all_of(n.inner.begin(), n.inner.end(), [](const node& s) { return s.inner.empty(); });
    if (simple) n.b = dice_.below(6);
    return n;
  }

  node brood(const spot& at) {
    const auto end = static_cast<brood_end>(dice_.below(5));
    node n = make(act::brood, dice_.below(6), static_cast<unsigned>(end), dice_.below(200));
    const bool doomed = end != brood_end::none;
    const bool by_first_child = end == brood_end::failure || end == brood_end::stop_token;
    n.inner.push_back(party({at.halls, at.depth - 1, at.doomed, false}, 3));
    for (unsigned more = dice_.below(4); more > 0 && budget_ > 0; --more) {
      // The first one, if it must end the others, is nobody's older sibling to wait for; and it waits for nobody.
      const bool has_task = n.inner.size() > (by_first_child ? 1u : 0u) && dice_.one_in(3);
      n.inner.push_back(party({at.halls, at.depth - 1, at.doomed || doomed, has_task}, 3));
      if (end == brood_end::failure && dice_.one_in(2)) n.inner.back().c = 1;
    }
    return n;
  }

  node hall(const spot& at) {
    node n = make(act::hall, dice_.below(6), 1 + dice_.below(3), dice_.below(64), dice_.below(12));
    const unsigned halls = at.halls + 1;
    for (unsigned parties = 2 + dice_.below(6); parties > 0; --parties) {
      const bool has_task = !n.inner.empty() && dice_.one_in(3);
      n.inner.push_back(party({halls, at.depth - 1, at.doomed, has_task}, 12));
    }
    for (unsigned threads = dice_.one_in(3) ? 1 + dice_.below(2) : 0; threads > 0; --threads) {
      const bool has_task = dice_.one_in(2);
      node t = make(act::thread, has_task ? 1u : 0u, dice_.below(6));
      for (unsigned left = 2 + dice_.below(8); left > 0; --left) {
        t.inner.push_back(plain_step({halls, 0, false, has_task}));
      }
      n.inner.push_back(std::move(t));
    }
    node body = make(act::body, dice_.one_in(4) ? 0 : 1 + dice_.below(100));
    body.inner = steps({at.halls, at.depth - 1, at.doomed, false}, 3);
    n.inner.push_back(std::move(body));
    return n;
  }

  dice dice_;
  int budget_;
  int tags_ = 0;
};

}  // namespace test::random_program
