// SPDX-License-Identifier: BSL-1.0
// Whether a sequential model could have produced what was observed.
//
// A history is linearizable if every operation can be given one moment between its invocation and its response at which
// it happens as a whole, such that the model gives exactly the recorded outcomes. Operations that wait have more than
// one moment, and some of these are somebody else's: at its own moment such an operation joins the model's queues; it
// is complete when the moment of another operation says so, and its response must come after that. ("Dual" data
// structures: Scherer and Scott.)
//
// The search (Lowe's just-in-time linearization): go through the events in order, with the set of all configurations
// the model can be in. At a response, let operations that are under way have their moments, in any order, until the one
// that responds is complete; keep the configurations in which it is. Later moments can wait until a response needs
// them, so this misses nothing. An outcome other than the recorded one ends a branch at once. If no configuration is
// left, the history is wrong.
//
// An operation has `who`, `result`, and the stamps `invoked`, `happened` and `returned`. A model has
//
//   operation, configuration   the latter comparable, with a `hash`, and `phases`: how far each party's operation is
//   first(parties)             the configuration in which everybody is absent
//   moments(now, c, p, visit)  visit(next) for each configuration that party p's next moment can lead to from c; none
//                              if it has to wait for others. `now` is what each party is doing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace test::linearizable {

// Of a party in a configuration. Models have more of their own, between `invoked` and `complete`.
struct phase {
  static constexpr char absent = '-', invoked = 'i', complete = 'c';
};

// Stamps operations. Each party has a book of its own, which nobody else touches before the end.
template <class Operation>
class recorder {
 public:
  explicit recorder(std::size_t parties) : books_(parties), open_(parties, nullptr) {}
  // run(result) does the operation.
  template <class Run>
  const Operation& note(std::uint8_t who, Operation op, Run run) {
    op.who = who;
    open_[who] = &op;
    op.invoked = clock_.fetch_add(1);
    run(op.result);
    op.returned = clock_.fetch_add(1);
    open_[who] = nullptr;
    noted_.fetch_add(1, std::memory_order_relaxed);
    return books_[who].emplace_back(std::move(op));
  }
  // Inside run, by the same party: the operation's moment is yet to come, or has been.
  void will_happen(std::uint8_t who) {
    if (Operation* const op = open_[who]) {
      op->invoked = clock_.fetch_add(1);
      op->happened = 0;
    }
  }
  void has_happened(std::uint8_t who) {
    Operation* const op = open_[who];
    if (op != nullptr && op->happened == 0) op->happened = clock_.fetch_add(1);
  }
  // How many so far. A snapshot.
  [[nodiscard]] std::size_t noted() const { return noted_.load(std::memory_order_relaxed); }
  // When all have ended, in any order.
  [[nodiscard]] std::vector<Operation> operations() const {
    std::vector<Operation> all;
    for (const auto& book : books_) all.insert(all.end(), book.begin(), book.end());
    return all;
  }

 private:
  std::atomic<std::uint32_t> clock_{0};
  std::atomic<std::size_t> noted_{0};
  std::vector<std::vector<Operation>> books_;
  std::vector<Operation*> open_;
};

template <class Operation>
struct verdict {
  const Operation* culprit = nullptr;  // whose response nothing explains; null: the history is right, if it is decided
  std::size_t explored = 0;            // configurations
  bool undecided = false;              // they were too many
  explicit operator bool() const { return culprit == nullptr; }
};

template <class Model>
class checker {
 public:
  using operation = typename Model::operation;
  using configuration = typename Model::configuration;

  // Of the operations of which wanted(op) holds.
  template <class Wanted>
  checker(Model m, const std::vector<operation>& history, Wanted wanted) : model_(std::move(m)) {
    for (const auto& op : history) {
      if (!wanted(op)) continue;
      events_.push_back({op.invoked, &op, event::invoked});
      if (op.happened != 0) events_.push_back({op.happened, &op, event::happened});
      events_.push_back({op.returned, &op, event::returned});
      parties_ = std::max<std::size_t>(parties_, op.who + 1u);
    }
    std::sort(events_.begin(), events_.end(), [](const event& a, const event& b) { return a.stamp < b.stamp; });
  }

  [[nodiscard]] verdict<operation> check() {
    now_.assign(parties_, nullptr);
    possible_.assign(1, model_.first(parties_));
    for (const event& e : events_) {
      const bool explained = explain(e);
      if (explored_ > most_explored) return {nullptr, explored_, true};
      if (!explained) return {e.what, explored_, false};
    }
    return {nullptr, explored_, false};
  }

 private:
  // A thread that is held up in the middle of an operation can make millions of configurations possible. Usual are
  // hundreds.
  static constexpr std::size_t most_explored = 200'000;

  struct event {
    std::uint32_t stamp;
    const operation* what;
    enum kind { invoked, happened, returned } is;
  };

  [[nodiscard]] bool explain(const event& e) {
    const auto who = e.what->who;
    switch (e.is) {
      case event::invoked:
        now_[who] = e.what;
        for (auto& c : possible_) c.phases[who] = phase::invoked;
        return true;
      case event::happened: return reach([who](auto& c) { return c.phases[who] != phase::invoked; });
      case event::returned: break;
    }
    const bool explained = reach([who](auto& c) { return c.phases[who] == phase::complete; });
    for (auto& c : possible_) c.phases[who] = phase::absent;
    return explained;
  }

  // Goes on with the configurations in which that is so, by way of the moments it takes to get there.
  template <class Condition>
  [[nodiscard]] bool reach(Condition holds) {
    std::unordered_set<configuration, typename configuration::hash> seen(possible_.begin(), possible_.end());
    std::vector<configuration> kept;
    while (!possible_.empty() && explored_ <= most_explored) {
      configuration c = std::move(possible_.back());
      possible_.pop_back();
      ++explored_;
      if (holds(c)) {
        kept.push_back(std::move(c));
        continue;
      }
      for (std::uint8_t p = 0; p < parties_; ++p) {
        model_.moments(now_, c, p, [&](configuration next) {
          if (seen.insert(next).second) possible_.push_back(std::move(next));
        });
      }
    }
    possible_.swap(kept);
    return !possible_.empty();
  }

  const Model model_;
  std::size_t parties_ = 0;
  std::vector<event> events_;
  std::vector<const operation*> now_;
  std::vector<configuration> possible_;
  std::size_t explored_ = 0;
};

// For a message: the operations by invocation, and the one that can't be.
template <class Operation>
std::string describe_all(const std::vector<Operation>& history, const verdict<Operation>& v) {
  std::vector<const Operation*> order;
  for (const auto& op : history) order.push_back(&op);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->invoked < b->invoked; });
  std::string text;
  for (const auto* op : order) text += '\n' + describe(*op) + (op == v.culprit ? "   <-- no explanation" : "");
  return text;
}

}  // namespace test::linearizable
