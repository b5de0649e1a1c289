// SPDX-License-Identifier: BSL-1.0
// What the parties of a random program share: scopes, diaries, letters; everything the ledger is made of.
#pragma once

#include <atomic>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/random_program/ledger.hpp>
#include <support/random_program/plan.hpp>
#include <support/watchdog.hpp>

namespace test::random_program {

// A failure. It gets a number of its own each time it leaves a child.
struct mishap final : std::exception {
  mishap() = default;
  explicit mishap(int n) : number(n), text_("mishap " + std::to_string(n)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  int number = 0;

 private:
  std::string text_;
};
// What a channel was closed with.
struct closed_with {
  int tag;
};

// A scope of the program. Lives as long as the world, so that a child that outlives it can still say so.
struct ground {
  int id = 0;
  ground* parent = nullptr;
  bool shield = false;
  ramie::nursery* home = nullptr;      // if it is one
  std::atomic<bool> cancelled{false};  // by a call that has returned
  std::atomic<int> closures{0};
  std::atomic<stamp> last_gone{0};
  stamp left = 0;
};

// What becomes of a letter; kept by its sender.
struct fate {
  int channel, number;
  bool accepted = false;
  std::atomic<int> destroyed{0};
};

class letter {
 public:
  letter(int from, fate& record) : sender(from), number(record.number), fate_(&record) {}
  letter(letter&& other) noexcept
      : sender(other.sender), number(other.number), fate_(std::exchange(other.fate_, nullptr)) {}
  letter& operator=(letter&&) = delete;
  ~letter() {
    if (fate_ != nullptr) fate_->destroyed.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool here() const { return fate_ != nullptr; }
  const int sender, number;

 private:
  fate* fate_;
};

// What one party has done. Its own until everybody has ended, but for `doing`.
struct diary {
  int who = 0;
  std::atomic<int> doing{0};  // the act and the tag of its step
  std::deque<fate> letters;
  std::vector<ledger::receipt> receipts;
  std::vector<ledger::sighting> sightings;
  std::vector<ledger::passage> passages;
  std::vector<int> drained, thrown, received;
  std::vector<std::string> wrongs;
  long operations = 0, timeouts = 0;

  void expect(bool holds, const char* what, int tag = 0) {
    if (!holds) wrongs.push_back(std::string("LG9 ") + what + " (step " + std::to_string(tag) + ")");
  }
};

// Inherited by children, and counted.
struct heirloom {
  heirloom() : counted(all) {}
  explicit heirloom(long v) : value(v), counted(all) {}
  heirloom(const heirloom&) = default;
  heirloom(heirloom&&) = default;
  heirloom& operator=(const heirloom& other) {
    value = other.value;
    return *this;
  }
  long value = 0;
  citizen counted;
  static inline census all;
};
inline ramie::fiber_local<heirloom, ramie::inherit::yes> heritage;
inline ramie::fiber_local<long> own_number;
inline long inherited() {
  const heirloom* const there = heritage.find();
  return there != nullptr ? there->value : 0;
}

class world {
 public:
  explicit world(watchdog& dog) : dog_(dog) {}

  stamp now() noexcept { return dog_.step(); }
  [[nodiscard]] stamp latest() const noexcept { return dog_.steps(); }

  ground& open(ground* parent, bool shield = false) {
    std::lock_guard hold(mutex_);
    ground& g = grounds_.emplace_back();
    g.id = static_cast<int>(grounds_.size()) - 1;
    g.parent = parent;
    g.shield = shield;
    return g;
  }
  void close(ground& g, diary& d, int tag) {
    g.left = now();
    d.expect(g.closures.load(std::memory_order_relaxed) == 0, "children are left", tag);
  }
  diary& open_diary() {
    std::lock_guard hold(mutex_);
    diary& d = diaries_.emplace_back();
    d.who = static_cast<int>(diaries_.size());
    return d;
  }
  int new_channel() noexcept { return channels_.fetch_add(1, std::memory_order_relaxed); }
  int new_failure() noexcept { return failures_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // Before it can be seen.
  void cause(const ground& g, ramie::cancel_kind kind, int tag) {
    const stamp when = now();
    std::lock_guard hold(mutex_);
    causes_.push_back({g.id, {kind, tag}, when});
  }

  // When all have ended.
  [[nodiscard]] ledger collect() {
    ledger l;
    std::lock_guard hold(mutex_);
    l.causes = causes_;
    for (const ground& g : grounds_) {
      l.scopes.push_back({g.parent != nullptr ? g.parent->id : -1, g.shield, g.left});
      l.lives.push_back({g.id, g.last_gone.load()});
    }
    for (const diary& d : diaries_) collect(d, l);
    return l;
  }
  [[nodiscard]] long operations() const { return sum(&diary::operations); }
  [[nodiscard]] long timeouts() const { return sum(&diary::timeouts); }

  // While somebody hangs.
  void describe() {
    std::lock_guard hold(mutex_);
    for (const diary& d : diaries_) {
      const int doing = d.doing.load(std::memory_order_relaxed);
      if (doing != 0) std::fprintf(stderr, "  party %d: act %d, step %d\n", d.who, doing >> 16, doing & 0xffff);
    }
  }

  census objects;

 private:
  static void collect(const diary& d, ledger& l) {
    for (const fate& f : d.letters) l.letters.push_back({f.channel, d.who, f.number, f.accepted, f.destroyed.load()});
    l.receipts.insert(l.receipts.end(), d.receipts.begin(), d.receipts.end());
    l.sightings.insert(l.sightings.end(), d.sightings.begin(), d.sightings.end());
    l.passages.insert(l.passages.end(), d.passages.begin(), d.passages.end());
    l.drained.insert(d.drained.begin(), d.drained.end());
    l.thrown.insert(l.thrown.end(), d.thrown.begin(), d.thrown.end());
    l.received.insert(d.received.begin(), d.received.end());
    l.wrongs.insert(l.wrongs.end(), d.wrongs.begin(), d.wrongs.end());
  }
  [[nodiscard]] long sum(long diary::*what) const {
    long all = 0;
    for (const diary& d : diaries_) all += d.*what;
    return all;
  }

  watchdog& dog_;
  std::mutex mutex_;
  std::deque<ground> grounds_;
  std::deque<diary> diaries_;
  std::vector<ledger::cause> causes_;
  std::atomic<int> channels_{0}, failures_{0};
};

// In the closure of a child: its scope counts it.
class cargo {
 public:
  cargo(world& w, ground& g) : world_(&w), ground_(&g) { g.closures.fetch_add(1, std::memory_order_relaxed); }
  cargo(cargo&& other) noexcept : world_(other.world_), ground_(std::exchange(other.ground_, nullptr)) {}
  cargo(const cargo&) = delete;
  cargo& operator=(const cargo&) = delete;
  ~cargo() {
    if (ground_ == nullptr) return;
    const stamp now = world_->now();
    stamp last = ground_->last_gone.load(std::memory_order_relaxed);
    while (last < now && !ground_->last_gone.compare_exchange_weak(last, now, std::memory_order_relaxed)) {
    }
    ground_->closures.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  world* world_;
  ground* ground_;
};

// A channel with its number, and what it was closed with, if it was.
struct place {
  int number;
  ramie::channel<letter> channel;
  std::atomic<int> closed_with{0};
  place(int n, std::size_t capacity) : number(n), channel(capacity) {}
};

// Channels that many share; a list from the innermost outwards.
struct hall {
  const hall* outer = nullptr;
  unsigned level = 0;
  std::deque<place> places;
  [[nodiscard]] place& at(unsigned hall_level, unsigned number) const {
    const hall* h = this;
    while (h->level > hall_level) h = h->outer;
    return const_cast<place&>(h->places[number % h->places.size()]);
  }
};

// A letter on its way: send(letter&) says whether it was accepted. Left with its sender if it was not.
template <class Send>
bool post(diary& d, int channel, Send send) {
  fate& f = d.letters.emplace_back();
  f.channel = channel;
  f.number = static_cast<int>(d.letters.size());
  ++d.operations;
  letter l(d.who, f);
  try {
    f.accepted = send(l);
  } catch (...) {
    d.expect(l.here(), "an operation that threw took the letter");
    throw;
  }
  d.expect(f.accepted != l.here(), f.accepted ? "sent, but still here" : "not sent, but gone");
  return f.accepted;
}

// A std::optional or a received.
template <class Arrived>
bool take(diary& d, int channel, Arrived&& l) {
  ++d.operations;
  if (!l) return false;
  d.expect(l->here(), "an empty letter came");
  d.receipts.push_back({d.who, channel, l->sender, l->number});
  return true;
}

}  // namespace test::random_program
