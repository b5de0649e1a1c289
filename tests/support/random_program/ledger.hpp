// SPDX-License-Identifier: BSL-1.0
// What happened in a random program, as data, and whether that can be right. Laws:
//
//   LG1  a letter that a send accepted is received at most once; one that it did not accept is not received
//   LG2  nobody receives two letters of one sender on one channel in the wrong order
//   LG3  of a channel that was drained every accepted letter was received; of one that was not, of every sender the
//        first ones, up to some point
//   LG4  every letter is destroyed exactly once
//   LG5  a child is gone before its scope is left, a scope before the one around it
//   LG6  a `cancelled` has a cause: somebody gave that reason to a scope around the place before, no shield in between
//   LG7  nobody passes a cancellation point after a scope around it was cancelled, no shield in between
//   LG8  a failure that left a child is received by somebody, or else reported, once
//   LG9  what was noted as wrong on the spot: values, limits, handlers
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ramie/cancel.hpp>

namespace test::random_program {

// Dates: of two events of which one happens before the other it has the smaller one.
using stamp = std::uint64_t;

// What a cancellation says why.
struct grounds {
  ramie::cancel_kind kind = ramie::cancel_kind::requested;
  int tag = 0;
  friend auto operator<=>(const grounds&, const grounds&) = default;
};

struct ledger {
  struct scope {
    int parent = -1;
    bool shield = false;
    stamp left = 0;  // 0: never
  };
  struct life {
    int scope;
    stamp gone;
  };
  struct cause {
    int scope;
    grounds why;
    stamp when;
  };
  struct sighting {
    int scope;
    grounds why;
    stamp when;
  };
  struct passage {
    int scope;
    int cancelled;  // that scope had been, before
  };
  struct letter {
    int channel, sender, number;
    bool accepted;
    int destroyed;
  };
  struct receipt {
    int receiver, channel, sender, number;
  };

  std::vector<scope> scopes;
  std::vector<life> lives;
  std::vector<cause> causes;
  std::vector<sighting> sightings;
  std::vector<passage> passages;
  std::vector<letter> letters;    // each sender's in the order they were sent
  std::vector<receipt> receipts;  // each receiver's in the order they came
  std::set<int> drained;          // channels
  std::vector<int> thrown;        // failures that left a child
  std::set<int> received;         // failures that somebody got
  std::vector<int> reported;      // failures that nobody got
  std::vector<std::string> wrongs;
};

// The complaints, at most a few per law.
class auditor {
 public:
  explicit auditor(const ledger& l) : l_(l) {}
  [[nodiscard]] std::vector<std::string> complaints() {
    letters();
    order();
    lives();
    sightings();
    passages();
    failures();
    all_.insert(all_.end(), l_.wrongs.begin(), l_.wrongs.end());
    return std::move(all_);
  }

 private:
  using key = std::tuple<int, int, int>;  // channel, sender, number

  template <class... Part>
  void complain(const char* law, const char* what, Part... number) {
    std::string text = std::string(law) + " " + what;
    ((text += " " + std::to_string(number)), ...);
    if (++per_law_[law] <= 3) all_.push_back(std::move(text));
  }

  void letters() {
    std::map<key, int> came;
    for (const auto& r : l_.receipts) ++came[{r.channel, r.sender, r.number}];
    std::set<std::pair<int, int>> broken;  // channel, sender: a letter was not received
    for (const auto& s : l_.letters) {
      const auto found = came.find({s.channel, s.sender, s.number});
      const int times = found == came.end() ? 0 : found->second;
      if (found != came.end()) came.erase(found);
      if (times > 1) complain("LG1", "received twice: channel, sender, number", s.channel, s.sender, s.number);
      if (times > 0 && !s.accepted) complain("LG1", "not sent but received:", s.channel, s.sender, s.number);
      if (s.destroyed != 1) complain("LG4", "destroyed so often:", s.destroyed, s.channel, s.sender, s.number);
      if (!s.accepted) continue;
      if (times == 0 && l_.drained.contains(s.channel)) complain("LG3", "lost:", s.channel, s.sender, s.number);
      if (times == 0) broken.insert({s.channel, s.sender});
      if (times != 0 && broken.contains({s.channel, s.sender})) {
        complain("LG3", "came although an earlier one did not:", s.channel, s.sender, s.number);
      }
    }
    for (const auto& [k, times] : came) {
      complain("LG1", "from nowhere:", std::get<0>(k), std::get<1>(k), std::get<2>(k));
    }
  }

  void order() {
    std::map<key, int> latest;  // receiver, channel, sender
    for (const auto& r : l_.receipts) {
      const auto [at, first] = latest.try_emplace({r.receiver, r.channel, r.sender}, r.number);
      if (!first && r.number <= std::exchange(at->second, r.number)) {
        complain("LG2", "out of order: receiver, channel, sender, number", r.receiver, r.channel, r.sender, r.number);
      }
    }
  }

  [[nodiscard]] const ledger::scope& at(int scope) const { return l_.scopes[static_cast<std::size_t>(scope)]; }

  void lives() {
    for (const auto& c : l_.lives) {
      if (at(c.scope).left != 0 && c.gone > at(c.scope).left) complain("LG5", "a child outlived scope", c.scope);
    }
    for (const auto& s : l_.scopes) {
      if (s.left == 0) complain("LG5", "a scope was never left, in scope", s.parent);
      if (s.parent >= 0 && at(s.parent).left != 0 && s.left > at(s.parent).left) {
        complain("LG5", "a scope outlived scope", s.parent);
      }
    }
  }

  // f(scope) for those a cancellation can come from; until it says true.
  template <class F>
  [[nodiscard]] bool any_around(int scope, F f) const {
    for (; scope >= 0 && !at(scope).shield; scope = at(scope).parent) {
      if (f(scope)) return true;
    }
    return false;
  }

  void sightings() {
    std::map<std::pair<int, grounds>, stamp> first;
    for (const auto& c : l_.causes) {
      const auto [it, fresh] = first.try_emplace({c.scope, c.why}, c.when);
      if (!fresh) it->second = std::min(it->second, c.when);
    }
    for (const auto& s : l_.sightings) {
      const bool explained = any_around(s.scope, [&](int scope) {
        const auto it = first.find({scope, s.why});
        return it != first.end() && it->second < s.when;
      });
      if (!explained) {
        complain("LG6", "cancelled without a cause: scope, kind, tag", s.scope, static_cast<int>(s.why.kind),
                 s.why.tag);
      }
    }
  }

  void passages() {
    for (const auto& p : l_.passages) {
      if (any_around(p.scope, [&](int scope) { return scope == p.cancelled; })) {
        complain("LG7", "not cancelled: scope, by", p.scope, p.cancelled);
      }
    }
  }

  void failures() {
    std::map<int, int> reports;
    for (const int tag : l_.reported) ++reports[tag];
    for (const int tag : l_.thrown) {
      if (!l_.received.contains(tag) && !reports.contains(tag)) complain("LG8", "nobody got failure", tag);
    }
    for (const auto& [tag, times] : reports) {
      if (l_.received.contains(tag)) complain("LG8", "reported as lost, but somebody got failure", tag);
      if (times > 1) complain("LG8", "reported so often, failure:", times, tag);
    }
  }

  const ledger& l_;
  std::map<std::string, int> per_law_;
  std::vector<std::string> all_;
};

inline std::vector<std::string> audit(const ledger& l) {
  return auditor(l).complaints();
}

}  // namespace test::random_program
