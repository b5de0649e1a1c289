// SPDX-License-Identifier: BSL-1.0
// Random programs of nurseries, channels, pipes, selects, deadlines, cancellations and a plain thread, over seeds,
// worker counts and chaos. Everybody keeps a diary; afterwards
//   CP1  what was accepted from a sender was received exactly once, if the channel was drained, and nothing else was;
//   CP2  nobody saw two letters of one sender on one channel in the wrong order;
//   CP3  an operation that was cancelled, refused or timed out has left the letter with its sender; one that succeeded
//        has not;
//   CP4  of a pipe whose receivers have gone early, every sender's first letters have arrived, up to some point; if one
//        receiver saw the end, all have;
//   CP5  oneshot, broadcast and watch deliver what their comments promise;
//   CP6  every letter is destroyed exactly once.
//
// Nothing waits for ever: each round ends with its channels closed, or cancelled and closed; pipes end by themselves.
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_channel_programs {

using namespace std::chrono_literals;

test::random_test this_test("programs of channels");

// Counted, and knows whether it was moved away.
class letter {
 public:
  letter(test::census& c, int from, int count) : sender(from), number(count), census_(&c) { c.made.fetch_add(1); }
  letter(letter&& other) noexcept
      : sender(other.sender), number(other.number), census_(std::exchange(other.census_, nullptr)) {}
  letter(const letter& other) : sender(other.sender), number(other.number), census_(other.census_) {
    if (census_ != nullptr) census_->made.fetch_add(1);
  }
  letter& operator=(const letter&) = delete;
  ~letter() {
    if (census_ != nullptr) census_->gone.fetch_add(1);
  }
  [[nodiscard]] bool here() const { return census_ != nullptr; }
  const int sender, number;

 private:
  test::census* census_;
};

struct entry {
  int channel, sender, number;
};

// What one party has done. Its own until everybody has ended.
struct diary {
  int who;
  int written = 0;
  int wrongs = 0;  // CP3, CP5
  std::vector<entry> sent, got;
  std::vector<int> ended;  // pipes it has seen the end of
};

class archive {
 public:
  diary& open() {
    std::lock_guard hold(mutex_);
    diaries_.push_back({static_cast<int>(diaries_.size()), 0, 0, {}, {}, {}});
    return diaries_.back();
  }
  [[nodiscard]] const std::deque<diary>& all() const { return diaries_; }

 private:
  std::mutex mutex_;
  std::deque<diary> diaries_;
};

struct world {
  test::census letters;
  archive diaries;
  ramie::manual_clock clock;
  std::atomic<int> channels{0};  // made so far
};

// A channel with its number.
struct place {
  int number;
  ramie::channel<letter> channel;
};

// send(letter&) says whether it was accepted.
template <class Send>
bool post(world& w, diary& d, int channel, Send send) {
  letter l(w.letters, d.who, d.written++);
  bool sent = false;
  try {
    sent = send(l);
  } catch (...) {
    if (!l.here()) ++d.wrongs;
    throw;
  }
  if (sent == l.here()) ++d.wrongs;
  if (sent) d.sent.push_back({channel, d.who, l.number});
  return sent;
}

template <class Arrived>
bool take(diary& d, int channel, Arrived&& l) {
  if (!l) return false;
  if (!l->here()) ++d.wrongs;
  d.got.push_back({channel, l->sender, l->number});
  return true;
}

// One party of a round: it does one thing after the other.
class party {
 public:
  party(world& w, const std::vector<place>& places, std::uint64_t seed, int depth)
      : w_(w), places_(places), random_(seed), depth_(depth), d_(w.diaries.open()) {}

  void play(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }
  // What plain threads can do as well.
  void play_plain(int steps) {
    for (int i = 0; i < steps; ++i) simple_step(random_() % 11);
  }

 private:
  const place& any() { return places_[random_() % places_.size()]; }
  std::chrono::microseconds a_while() { return std::chrono::microseconds(random_() % 5'000); }

  void step() {
    switch (random_() % 20) {
      case 0: family(); break;
      case 1: send_in_time(); break;
      case 2: recv_in_time(); break;
      case 3: shielded(); break;
      case 4: use_oneshot(); break;
      case 5: use_broadcast(); break;
      case 6: use_watch(); break;
      case 7: await_child(); break;
      default: simple_step(random_() % 11); break;
    }
  }

  void simple_step(std::uint64_t which) {
    const place& at = any();
    const auto ok = ramie::channel_status::ok;
    switch (which) {
      case 0: post(w_, d_, at.number, [&](letter& l) { return at.channel.try_send(std::move(l)) == ok; }); break;
      case 1: take(d_, at.number, at.channel.try_recv()); break;
      case 2:
        post(w_, d_, at.number, [&](letter& l) { return at.channel.send_for(std::move(l), a_while() / 50) == ok; });
        break;
      case 3: take(d_, at.number, at.channel.recv_for(a_while() / 50)); break;
      case 4:
      case 5: select_once(at, any()); break;
      case 6:
      case 7: post(w_, d_, at.number, [&](letter& l) { return at.channel.send(std::move(l)); }); break;
      case 8: ramie::yield(); break;
      case 9:
        if (random_() % 64 == 0) at.channel.close();
        break;
      default: take(d_, at.number, at.channel.recv()); break;
    }
  }

  void select_once(const place& from, const place& to) {
    post(w_, d_, to.number, [&](letter& l) {
      bool done = false;
      const auto got = [&](std::optional<letter> arrived) { take(d_, from.number, std::move(arrived)); };
      const auto sent = [&](bool accepted) { done = accepted; };
      switch (random_() % 4) {
        case 0:
          ramie::select(ramie::on_recv(from.channel, got), ramie::on_send(to.channel, l, sent),
                        ramie::otherwise([] {}));
          break;
        case 1:
          ramie::select(ramie::on_send(to.channel, l, sent), ramie::on_recv(from.channel, got),
                        ramie::on_timeout(a_while() / 50, [] {}));
          break;
        default: ramie::select(ramie::on_recv(from.channel, got), ramie::on_send(to.channel, l, sent)); break;
      }
      return done;
    });
  }

  void send_in_time() {
    const place& at = any();
    post(w_, d_, at.number, [&](letter& l) {
      return ramie::with_timeout(a_while(), [&] { return at.channel.send(std::move(l)); }).value_or(false);
    });
  }
  void recv_in_time() {
    const place& at = any();
    auto arrived = ramie::with_timeout(a_while(), [&] { return at.channel.recv(); });
    if (arrived) take(d_, at.number, std::move(*arrived));
  }
  void shielded() {
    ramie::shield guard;
    simple_step(random_() % 11);
  }

  // Others of the same kind, perhaps not for long. with_nursery, so that its deadline ends it and not the party.
  void family() {
    if (depth_ == 0) return;
    ramie::with_nursery([this](ramie::nursery& n) {
      if (random_() % 4 == 0) n.cancel_after(a_while());
      for (auto children = 1 + random_() % 3; children > 0; --children) {
        n.spawn([this, seed = random_()] { party(w_, places_, seed, depth_ - 1).play(6); });
      }
      for (auto pause = random_() % 8; pause > 0; --pause) ramie::yield();
      if (random_() % 4 == 0) n.cancel("enough");
    });
  }

  // A child's end, or a letter.
  void await_child() {
    const place& at = any();
    ramie::nursery n;
    auto child = n.spawn([] { ramie::yield(); });
    ramie::select(ramie::on_ready(child, [] {}),
                  ramie::on_recv(at.channel, [&](std::optional<letter> l) { take(d_, at.number, std::move(l)); }));
    n.join();
  }

  void use_oneshot();
  void use_broadcast();
  void use_watch();

  world& w_;
  const std::vector<place>& places_;
  test::dice random_;
  const int depth_;
  diary& d_;
};

// The value comes if it was sent, at the latest when its sender has ended.
void party::use_oneshot() {
  const place& at = any();
  auto ends = ramie::make_oneshot<letter>();
  bool sent = false, got = false;
  ramie::nursery n;
  n.spawn([this, &sent, lazy = random_() % 4 == 0, tx = std::move(ends.tx)]() mutable {
    if (lazy) return;
    letter l(w_.letters, -1, 0);
    sent = tx.send(std::move(l));
  });
  switch (random_() % 4) {
    case 0: break;
    case 1: got = ends.rx.recv_for(a_while()).has_value(); break;
    case 2:
      ramie::select(ramie::on_recv(at.channel, [&](std::optional<letter> l) { take(d_, at.number, std::move(l)); }),
                    ramie::on_ready(ends.rx, [&] { got = ends.rx.try_recv().has_value(); }));
      break;
    default: got = ends.rx.recv().has_value(); break;
  }
  n.join();
  if (!got) got = ends.rx.try_recv().has_value();
  if (got != sent) ++d_.wrongs;
}

// In order, and what did not come is counted as lost.
void party::use_broadcast() {
  const auto count = static_cast<int>(random_() % 12);
  ramie::broadcast<letter> tx(1 + random_() % 4);
  auto rx = tx.subscribe();
  ramie::nursery n;
  n.spawn([this, count, out = std::move(tx)] {
    for (int i = 0; i < count; ++i) {
      out.send(letter(w_.letters, -1, i));
      if (i % 3 == 0) ramie::yield();
    }
  });
  int next = 0;
  for (;;) {
    const auto message = rx.recv();
    if (!message) break;
    next += static_cast<int>(message.lost());
    if (message->number != next++) ++d_.wrongs;
  }
  n.join();
  if (next != count) ++d_.wrongs;
}

// Never backwards, and the last one is seen.
void party::use_watch() {
  const auto count = static_cast<int>(1 + random_() % 8);
  ramie::watch<letter> tx(letter(w_.letters, -1, 0));
  auto rx = tx.subscribe();
  ramie::nursery n;
  n.spawn([this, count, out = std::move(tx)] {
    for (int i = 1; i <= count; ++i) {
      out.send(letter(w_.letters, -1, i));
      ramie::yield();
    }
  });
  int last = 0;
  while (rx.changed()) {
    const int seen = rx.get()->number;
    if (seen < last) ++d_.wrongs;
    last = seen;
  }
  n.join();
  if (last != count) ++d_.wrongs;
}

// A pipe: the last sender closes it, the last receiver abandons it.
void lay_pipe(world& w, ramie::nursery& n, test::dice& random) {
  const int number = w.channels.fetch_add(1);
  auto ends = ramie::make_channel<letter>(random() % 4);
  for (auto senders = 1 + random() % 3; senders > 0; --senders) {
    n.spawn([&w, number, tx = ends.tx, count = random() % 20] {
      diary& d = w.diaries.open();
      for (auto i = count; i > 0; --i) {
        if (!post(w, d, number, [&](letter& l) { return tx.send(std::move(l)); })) return;
      }
    });
  }
  for (auto receivers = 1 + random() % 3; receivers > 0; --receivers) {
    n.spawn([&w, number, rx = ends.rx, patient = random() % 2 == 0, count = random() % 20] {
      diary& d = w.diaries.open();
      for (auto i = count; patient || i > 0; --i) {
        if (take(d, number, rx.recv())) continue;
        return d.ended.push_back(number);
      }
    });
  }
}

void random_round(world& w, std::uint64_t seed) {
  test::dice random(seed);
  std::vector<place> places;
  for (int i = 0; i < 3; ++i) places.push_back({w.channels.fetch_add(1), ramie::channel<letter>(random() % 4)});
  std::thread outside([&, own = random()] { party(w, places, own, 0).play_plain(30); });
  {
    ramie::nursery n;
    for (int i = test::scaled(12, 6); i > 0; --i) {
      n.spawn([&w, &places, own = random()] { party(w, places, own, 2).play(12); });
    }
    lay_pipe(w, n, random);
    for (auto pause = random() % 200; pause > 0; --pause) ramie::yield();
    if (random() % 2 == 0) n.cancel("the round is over");
    for (const auto& each : places) each.channel.close();
    n.join();
  }
  outside.join();
  diary& d = w.diaries.open();
  for (const auto& each : places) {
    while (take(d, each.number, each.channel.recv())) {
    }
    d.ended.push_back(each.number);
  }
}

// CP1 and CP4: per channel and sender, the letters accepted, and those received.
struct account {
  std::vector<int> sent;
  std::set<int> got;
};

struct audit {
  int wrongs = 0;  // CP3, CP5
  int disorder = 0, duplicates = 0, strange = 0, lost = 0;
  long alive = 0;
  std::size_t received = 0;
  friend bool operator==(const audit&, const audit&) = default;
};

void read_diary(const diary& d, std::map<std::pair<int, int>, account>& accounts, std::set<int>& ended, audit& a) {
  a.wrongs += d.wrongs;
  for (const auto& e : d.sent) accounts[{e.channel, e.sender}].sent.push_back(e.number);
  std::map<std::pair<int, int>, int> latest;
  for (const auto& e : d.got) {
    ++a.received;
    if (!accounts[{e.channel, e.sender}].got.insert(e.number).second) ++a.duplicates;
    const auto [at, first] = latest.try_emplace({e.channel, e.sender}, e.number);
    if (!first && e.number <= std::exchange(at->second, e.number)) ++a.disorder;
  }
  ended.insert(d.ended.begin(), d.ended.end());
}

audit examine(const world& w) {
  audit a;
  a.alive = w.letters.alive();
  std::map<std::pair<int, int>, account> accounts;
  std::set<int> ended;
  for (const diary& d : w.diaries.all()) read_diary(d, accounts, ended, a);
  for (const auto& [key, each] : accounts) {
    const bool all = ended.contains(key.first);
    if (all && each.got.size() < each.sent.size()) ++a.lost;
    if (each.got.size() > each.sent.size()) ++a.strange;
    const auto count = std::min(each.got.size(), each.sent.size());
    if (!std::equal(each.sent.begin(), each.sent.begin() + static_cast<std::ptrdiff_t>(count), each.got.begin())) {
      ++a.strange;
    }
  }
  return a;
}

audit random_channels(const test::setting& how) {
  world w;
  auto o = how.options();
  o.clock = &w.clock;
  {
    ramie::runtime rt(o);
    rt.run([&] {
      std::atomic<bool> over{false};
      ramie::nursery n;
      n.spawn([&] {  // time goes by
        for (; !over.load(); ramie::yield()) w.clock.advance(10us);
      });
      for (std::uint64_t round = 0; round < 3; ++round) random_round(w, how.seed * 10 + round);
      over.store(true);
      n.join();
    });
  }
  return examine(w);
}

TEST_CASE("random programs of channels lose, double and reorder nothing", "[stress][channel]") {
  std::size_t received = 0;
  this_test.for_each_seed(test::scaled(20, 5), 2'000, [&](const test::setting& how) {
    INFO(how);
    const audit a = random_channels(how);
    REQUIRE(a.wrongs == 0);
    REQUIRE(a.disorder == 0);
    REQUIRE(a.duplicates == 0);
    REQUIRE(a.strange == 0);
    REQUIRE(a.lost == 0);
    REQUIRE(a.alive == 0);
    received += a.received;
  });
  INFO(received << " letters received");
  CHECK(received > 12 * this_test.programs());
}

}  // namespace stress_channel_programs
