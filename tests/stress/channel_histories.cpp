// SPDX-License-Identifier: BSL-1.0
// Channels are linearizable: histories of random programs of fibers and a plain thread, over seeds, worker counts and
// chaos, are checked against the model in support/history.hpp; and the checker is shown what it must not accept.
//
// Nothing waits for ever: when nothing has happened for a while the main fiber sends or receives something without
// waiting; after some of that it closes all channels, which ends every wait, and drains them. All of it is recorded.
#include <memory>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/history.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

#include "channel/src/hooks.hpp"

namespace stress_channel_histories {

using namespace test::history;

test::random_test this_test("histories of channels");

// Looks inside: tells the recorder when operations list themselves, claim a partner or close, which is when they
// happen; and threads yield at these moments now and then. At most one lives at a time.
class insight {
 public:
  insight(recorder& book, std::size_t parties) : book_(book), fibers_(parties) {
    current_.store(this);
    ramie::channel_internal::on_channel_moment.store(&step_in);
  }
  ~insight() { ramie::channel_internal::on_channel_moment.store(nullptr); }
  insight(const insight&) = delete;
  insight& operator=(const insight&) = delete;

  // The caller is that party.
  void enter(std::uint8_t who) { fibers_[who].store(ramie::this_fiber::number() + 1); }

 private:
  static void step_in(ramie::channel_internal::channel_moment when, ramie::channel_internal::channel_core&) {
    using moment = ramie::channel_internal::channel_moment;
    insight& self = *current_.load();
    const auto me = ramie::this_fiber::number() + 1;  // a plain thread is 0
    for (std::uint8_t who = 0; who < self.fibers_.size(); ++who) {
      if (self.fibers_[who].load() != me) continue;
      if (when == moment::will_publish) self.book_.will_happen(who);
      if (when != moment::will_publish && when != moment::will_unpublish) self.book_.has_happened(who);
    }
    const auto roll = self.dice_.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
    if ((roll ^ roll >> 31) % 5 == 0) std::this_thread::yield();
  }
  static inline std::atomic<insight*> current_{nullptr};
  recorder& book_;
  std::vector<std::atomic<std::uint32_t>> fibers_;
  std::atomic<std::uint64_t> dice_{1};
};

// Elements: bytes, or something that has to be moved.
void wrap(int& into, value v) {
  into = v;
}
value unwrap(const int& from) {
  return static_cast<value>(from);
}
void wrap(std::unique_ptr<int>& into, value v) {
  into = std::make_unique<int>(v);
}
value unwrap(const std::unique_ptr<int>& from) {
  return from != nullptr ? static_cast<value>(*from) : value(0);
}

template <class T>
struct stage {
  recorder book;
  std::vector<ramie::channel<T>> channels;
  std::optional<insight> inside;
  std::atomic<int> playing{0};
  explicit stage(std::size_t parties) : book(parties) {}
};

// One party: its operations, each recorded. Elements are unique: the party's number and how many it had before.
template <class T>
class actor {
 public:
  actor(stage<T>& on, std::uint8_t who, std::uint64_t seed) : on_(on), who_(who), random_(seed) {
    if (on_.inside) on_.inside->enter(who);
  }

  void play(int operations) {
    for (int i = 0; i < operations; ++i) {
      switch (random_() % 16) {
        case 0:
          if (random_() % 32 == 0) close(any_channel());
          break;
        case 1: pause(); break;
        case 2:
        case 3: single(patience::none); break;
        case 4: single(patience::some); break;
        case 5:
        case 6:
        case 7:
        case 8: several(); break;
        default: single(patience::endless); break;
      }
    }
  }
  void close(std::uint8_t channel) {
    operation op;
    op.closes = true;
    op.offers = {{false, channel, 0}};
    on_.book.note(who_, op, [&](outcome& result) { result.closed_it = on_.channels[channel].close(); });
  }
  // Sends or receives something without waiting: perhaps that lets somebody go on.
  void nudge() { single(patience::none); }
  // Receives until the channel is closed and drained.
  void drain(std::uint8_t channel) {
    while (receive(patience::endless, channel).result.how == ending::done) {
    }
  }

 private:
  std::uint8_t any_channel() { return static_cast<std::uint8_t>(random_() % on_.channels.size()); }
  std::chrono::microseconds a_moment() { return std::chrono::microseconds(random_() % 30); }
  value next_element() { return static_cast<value>(who_ * 1'000 + ++made_); }
  void pause() {
    for (auto n = random_() % 4; n > 0; --n) ramie::yield();
  }

  void single(patience waits) {
    if (random_() % 2 == 0) {
      send(waits, any_channel());
    } else {
      (void)receive(waits, any_channel());
    }
  }

  static ending ending_of(ramie::channel_status status) {
    if (status == ramie::channel_status::ok) return ending::done;
    return status == ramie::channel_status::closed ? ending::closed : ending::gave_up;
  }

  void send(patience waits, std::uint8_t channel) {
    operation op;
    op.waits = waits;
    op.offers = {{true, channel, next_element()}};
    T element;
    wrap(element, op.offers[0].element);
    const auto& to = on_.channels[channel];
    const auto limit = a_moment();
    on_.book.note(who_, op, [&](outcome& result) {
      switch (waits) {
        case patience::none: result.how = ending_of(to.try_send(std::move(element))); break;
        case patience::some: result.how = ending_of(to.send_for(std::move(element), limit)); break;
        case patience::endless: result.how = to.send(std::move(element)) ? ending::done : ending::closed; break;
      }
    });
  }

  const operation& receive(patience waits, std::uint8_t channel) {
    operation op;
    op.waits = waits;
    op.offers = {{false, channel, 0}};
    const auto& from = on_.channels[channel];
    const auto limit = a_moment();
    return on_.book.note(who_, op, [&](outcome& result) {
      if (waits == patience::endless) {
        const auto got = from.recv();
        result.how = got ? ending::done : ending::closed;
        if (got) result.element = unwrap(*got);
      } else {
        const auto got = waits == patience::none ? from.try_recv() : from.recv_for(limit);
        result.how = ending_of(got.status());
        if (got) result.element = unwrap(*got);
      }
    });
  }

  // A select of two or three cases on any channels; perhaps one that does not wait, or not for long.
  void several() {
    operation op;
    const auto mood = random_() % 8;
    op.waits = mood < 2 ? patience::none : mood == 2 ? patience::some : patience::endless;
    ramie::selector all;
    outcome happened;
    std::vector<T> elements(2 + random_() % 2);
    for (std::uint8_t i = 0; i < elements.size(); ++i) {
      const bool sends = random_() % 2 == 0;
      const auto channel = any_channel();
      op.offers.push_back({sends, channel, sends ? next_element() : value(0)});
      if (sends) {
        wrap(elements[i], op.offers[i].element);
        all.on_send(on_.channels[channel], elements[i], [&happened, i](bool sent) {
          happened = {sent ? ending::done : ending::closed, i, 0, false};
        });
      } else {
        all.on_recv(on_.channels[channel], [&happened, i](std::optional<T> got) {
          happened = {got ? ending::done : ending::closed, i, got ? unwrap(*got) : value(0), false};
        });
      }
    }
    if (op.waits == patience::none) all.otherwise([] {});
    if (op.waits == patience::some) all.on_timeout(a_moment(), [] {});
    on_.book.note(who_, std::move(op), [&](outcome& result) {
      (void)all.wait();
      result = happened;
    });
  }

  stage<T>& on_;
  const std::uint8_t who_;
  test::dice random_;
  int made_ = 0;
};

// Keeps the play going until everybody has finished, or for so many interventions.
template <class T>
void direct(stage<T>& s, actor<T>& me, test::dice& random) {
  for (auto nudges = random() % 32; nudges > 0; --nudges) {
    std::size_t before = s.book.noted();
    for (auto left = random() % 64; left > 0; --left) {
      if (s.playing.load() == 0) return;
      ramie::yield();
      if (s.book.noted() != std::exchange(before, s.book.noted())) left = 64;
    }
    me.nudge();
  }
}

template <class T>
record random_history(const test::setting& how) {
  test::dice random(how.seed);
  const auto fibers = static_cast<std::uint8_t>(2 + random() % 4);
  const int operations = static_cast<int>(4 + random() % 30);
  std::vector<std::uint8_t> capacities(1 + random() % 2);
  for (auto& c : capacities) c = static_cast<std::uint8_t>(random() % 4);
  stage<T> s(fibers + 2u);
  for (const auto c : capacities) s.channels.emplace_back(c);
  if (random() % 4 != 0) s.inside.emplace(s.book, fibers + 2u);
  const auto act = [&s, operations](std::uint8_t who, std::uint64_t its_seed) {
    actor<T>(s, who, its_seed).play(operations);
    s.playing.fetch_sub(1);
  };

  ramie::runtime rt(how.options());
  s.playing.store(fibers + 1);
  std::thread outside(act, static_cast<std::uint8_t>(fibers + 1), random());
  rt.run([&] {
    ramie::nursery n;
    for (std::uint8_t who = 1; who <= fibers; ++who) n.spawn([&act, who, own = random()] { act(who, own); });
    actor<T> me(s, 0, random());
    direct(s, me, random);
    for (std::uint8_t c = 0; c < capacities.size(); ++c) me.close(c);
    for (std::uint8_t c = 0; c < capacities.size(); ++c) me.drain(c);
    n.join();
  });
  outside.join();
  return {capacities, s.book.operations()};
}

// The same history with one element received twice: wrong, whatever else happened. False: there are no two to take.
bool duplicate_an_element(record& r, std::uint64_t seed) {
  std::vector<operation*> receives;
  for (auto& op : r.operations) {
    const bool got = !op.closes && op.result.how == ending::done && !op.offers[op.result.chosen].sends;
    if (got) receives.push_back(&op);
  }
  if (receives.size() < 2) return false;
  const auto at = seed % (receives.size() - 1);
  receives[at]->result.element = receives[at + 1]->result.element;
  return true;
}

struct figures {
  std::size_t histories = 0, operations = 0, configurations = 0, undecided = 0;
};

void check_one(const test::setting& how, figures& sum) {
  INFO(how);
  record r = how.seed % 2 == 0 ? random_history<int>(how) : random_history<std::unique_ptr<int>>(how);
  const verdict v = check(r);
  if (!v) FAIL(describe(r, v));
  sum.undecided += v.undecided;
  if (!v.undecided && duplicate_an_element(r, how.seed)) {
    const verdict twice = check(r);
    REQUIRE((twice.undecided || !twice));
  }
  ++sum.histories;
  sum.operations += r.operations.size();
  sum.configurations += v.explored;
}

TEST_CASE("random histories of channels are linearizable", "[stress][channel]") {
  figures sum;
  this_test.for_each_seed(test::scaled(80, 16), 5'000, [&](const test::setting& how) { check_one(how, sum); });
  INFO(sum.histories << " histories, " << sum.operations << " operations, " << sum.configurations << " configurations");
  CHECK(sum.operations > sum.histories * 20);
  CHECK(sum.undecided * 4 < sum.histories);
}

}  // namespace stress_channel_histories
