// SPDX-License-Identifier: BSL-1.0
// Histories of channel operations, and whether a channel as documented could have produced them (linearizable.hpp).
//
// At its moment an operation that finds no partner joins the model's queues, a select those of all its cases; it is
// complete when the moment of another operation matches it or closes the channel.
//
// From outside nobody can tell how long an operation that waits has been waiting, so two that overlap may have come in
// any order. Whoever looks inside (hooks.hpp) can bound the moment more closely, and then the order is checked, too.
//
// The model, per channel: elements in order, waiting receivers and waiting senders in the order they came, closed or
// not.
//   CH1  send     closed: refused; else the first waiting receiver gets the element; else it goes behind the elements
//                 if there are fewer than the capacity; else it waits.
//   CH2  receive  the first element, and then the first waiting senders move up as far as there is room; else that of
//                 the first waiting sender; else closed if closed; else it waits.
//   CH3  close    has two moments: at the first the channel is closed and all waiting receivers are refused; at the
//                 second, before the response, the elements of waiting senders go behind the others, in order, whatever
//                 the capacity, and these senders are done. In between a waiting sender can still be matched: a receive
//                 takes the same element either way, but a waiting select may be matched elsewhere.
//   CH4  select   takes one of the cases that are ready, any; if none is, it waits in all, several on one channel in
//                 any order, and leaves all at the first match. It never meets itself: it asks before it is listed.
//   CH5  without waiting (try_, `otherwise`): there was a moment at which no case was ready, and all were looked at in
//        it. An operation that timed out says the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <support/linearizable.hpp>

namespace test::history {

using value = std::uint16_t;

// One case of an operation; a plain send or receive has one.
struct offer {
  bool sends = false;
  std::uint8_t channel = 0;
  value element = 0;  // what is sent
};

enum class patience : std::uint8_t { none, some, endless };  // try_ or otherwise; with a time limit; the others
enum class ending : std::uint8_t { done, closed, gave_up };  // gave_up: would_block, otherwise, timed_out

struct outcome {
  ending how = ending::gave_up;
  std::uint8_t chosen = 0;  // the case that happened
  value element = 0;        // what was received
  bool closed_it = false;   // of a close
  friend bool operator==(const outcome&, const outcome&) = default;
};

struct operation {
  std::uint8_t who = 0;  // one at a time
  bool closes = false;   // offers[0].channel, without offering anything
  patience waits = patience::endless;
  std::vector<offer> offers;
  outcome result;
  std::uint32_t invoked = 0;
  std::uint32_t happened = 0;  // its moment was before that; 0: not known
  std::uint32_t returned = 0;
};

struct record {
  std::vector<std::uint8_t> capacities;  // of the channels
  std::vector<operation> operations;     // in any order
};

using recorder = linearizable::recorder<operation>;
using verdict = linearizable::verdict<operation>;

inline std::string describe(const operation& op) {
  static constexpr const char* endings[] = {"ok", "closed", "gave up"};
  static constexpr const char* moods[] = {"try ", "timed ", ""};
  std::ostringstream out;
  out << '[' << op.invoked << ", ";
  if (op.happened != 0) out << op.happened << ", ";
  out << op.returned << "] party " << int(op.who) << ": ";
  if (op.closes) {
    out << "close(" << int(op.offers[0].channel) << ") " << (op.result.closed_it ? "closed it" : "was closed");
    return std::move(out).str();
  }
  out << moods[static_cast<int>(op.waits)] << (op.offers.size() > 1 ? "select " : "");
  for (const offer& o : op.offers) {
    out << (o.sends ? "send(" : "recv(") << int(o.channel);
    if (o.sends) out << ", " << o.element;
    out << ") ";
  }
  out << "-> " << endings[static_cast<int>(op.result.how)];
  if (op.result.how == ending::gave_up) return std::move(out).str();
  if (op.offers.size() > 1) out << ", case " << int(op.result.chosen);
  const offer& taken = op.offers[op.result.chosen];
  if (!taken.sends && op.result.how == ending::done) out << ", got " << op.result.element;
  return std::move(out).str();
}

// What the model is in at one moment: per party, how far its operation is; per channel, see above.
struct configuration {
  static constexpr char absent = linearizable::phase::absent, invoked = linearizable::phase::invoked, waiting = 'w',
                        half_closed = 'h', complete = linearizable::phase::complete;
  struct entry {  // a case of a waiting operation
    std::uint8_t who;
    std::uint8_t number;
    friend bool operator==(const entry&, const entry&) = default;
  };
  struct channel {
    bool closed = false;
    std::u16string elements;
    std::vector<entry> senders, receivers;
    friend bool operator==(const channel&, const channel&) = default;
  };
  std::string phases;
  std::vector<channel> channels;
  friend bool operator==(const configuration&, const configuration&) = default;

  struct hash {
    std::size_t operator()(const configuration& c) const noexcept {
      std::size_t h = std::hash<std::string>()(c.phases);
      const auto mix = [&h](std::size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15u + (h >> 29); };
      for (const channel& each : c.channels) {
        mix(std::hash<std::u16string>()(each.elements) + (each.closed ? 1 : 0));
        for (const entry& e : each.senders) mix(e.who * 8u + e.number + 1u);
        mix(0);
        for (const entry& e : each.receivers) mix(e.who * 8u + e.number + 1u);
      }
      return h;
    }
  };
};

// The rules CH1 to CH5. `now` is what each party is doing; a function that returns false has met an outcome that is not
// the recorded one, and the configuration is worthless.
class model {
 public:
  using now_t = std::vector<const operation*>;
  model(const std::vector<std::uint8_t>& capacities, const now_t& now, configuration& c)
      : capacities_(capacities), now_(now), c_(c) {}

  // The moment of a party's operation.
  [[nodiscard]] bool happen(std::uint8_t who) {
    const operation& op = *now_[who];
    const bool fits = op.closes ? close(who, op) : offer_all(who, op);
    settle_closers();
    return fits;
  }
  // The second moment of a close.
  [[nodiscard]] bool shelter_senders(std::uint8_t who) {
    auto& ch = c_.channels[now_[who]->offers[0].channel];
    while (!ch.senders.empty()) {
      if (!move_up(ch)) return false;
    }
    settle_closers();
    return true;
  }

 private:
  [[nodiscard]] bool ready(const offer& o) const {
    const auto& ch = c_.channels[o.channel];
    if (ch.closed) return true;
    if (o.sends) return !ch.receivers.empty() || ch.elements.size() < capacities_[o.channel];
    return !ch.elements.empty() || !ch.senders.empty();
  }

  [[nodiscard]] bool offer_all(std::uint8_t who, const operation& op) {
    const bool any_ready = std::any_of(op.offers.begin(), op.offers.end(), [this](const offer& o) { return ready(o); });
    if (op.result.how == ending::gave_up) {
      c_.phases[who] = configuration::complete;
      return !any_ready;
    }
    const offer& chosen = op.offers[op.result.chosen];
    if (ready(chosen)) {
      c_.phases[who] = configuration::complete;
      return chosen.sends ? send(op, chosen) : receive(op, chosen);
    }
    if (any_ready || op.waits == patience::none) return false;
    c_.phases[who] = configuration::waiting;
    for (std::uint8_t i = 0; i < op.offers.size(); ++i) {
      auto& ch = c_.channels[op.offers[i].channel];
      (op.offers[i].sends ? ch.senders : ch.receivers).push_back({who, i});
    }
    return true;
  }

  [[nodiscard]] bool send(const operation& op, const offer& o) {
    auto& ch = c_.channels[o.channel];
    if (ch.closed) return op.result.how == ending::closed;
    if (op.result.how != ending::done) return false;
    if (!ch.receivers.empty()) return end_wait(first_of(ch.receivers), ending::done, o.element);
    ch.elements.push_back(static_cast<char16_t>(o.element));
    return true;
  }

  [[nodiscard]] bool receive(const operation& op, const offer& o) {
    auto& ch = c_.channels[o.channel];
    if (ch.elements.empty() && ch.senders.empty()) return op.result.how == ending::closed;
    if (op.result.how != ending::done) return false;
    if (ch.elements.empty() && !move_up(ch)) return false;
    if (ch.elements.front() != op.result.element) return false;
    ch.elements.erase(0, 1);
    while (!ch.senders.empty() && ch.elements.size() < capacities_[o.channel]) {
      if (!move_up(ch)) return false;
    }
    return true;
  }

  [[nodiscard]] bool close(std::uint8_t who, const operation& op) {
    auto& ch = c_.channels[op.offers[0].channel];
    if (op.result.closed_it == ch.closed) return false;
    c_.phases[who] = ch.closed ? configuration::complete : configuration::half_closed;
    ch.closed = true;
    while (!ch.receivers.empty()) {
      if (!end_wait(first_of(ch.receivers), ending::closed, 0)) return false;
    }
    return true;
  }

  // Of the operation that came first: if several of its cases wait here, the one that happened may be the first of them.
  [[nodiscard]] configuration::entry first_of(const std::vector<configuration::entry>& queue) const {
    const auto first = queue.front();
    const operation& op = *now_[first.who];
    const offer &listed = op.offers[first.number], &happened = op.offers[op.result.chosen];
    const bool alike = listed.channel == happened.channel && listed.sends == happened.sends;
    return alike ? configuration::entry{first.who, op.result.chosen} : first;
  }

  // The first waiting sender is done, and its element goes behind the others.
  [[nodiscard]] bool move_up(configuration::channel& ch) {
    const auto first = first_of(ch.senders);
    ch.elements.push_back(static_cast<char16_t>(now_[first.who]->offers[first.number].element));
    return end_wait(first, ending::done, 0);
  }

  // A waiting operation is complete by that case, and leaves all queues.
  [[nodiscard]] bool end_wait(configuration::entry e, ending how, value element) {
    const outcome& told = now_[e.who]->result;
    if (told.how != how || told.chosen != e.number) return false;
    const bool received = how == ending::done && !now_[e.who]->offers[e.number].sends;
    if (received && told.element != element) return false;
    c_.phases[e.who] = configuration::complete;
    const auto its = [&e](const configuration::entry& other) { return other.who == e.who; };
    for (auto& ch : c_.channels) {
      std::erase_if(ch.senders, its);
      std::erase_if(ch.receivers, its);
    }
    return true;
  }

  // A close whose channel has no waiting senders left has nothing more to do.
  void settle_closers() {
    for (std::size_t who = 0; who < c_.phases.size(); ++who) {
      if (c_.phases[who] != configuration::half_closed) continue;
      if (c_.channels[now_[who]->offers[0].channel].senders.empty()) c_.phases[who] = configuration::complete;
    }
  }

  const std::vector<std::uint8_t>& capacities_;
  const now_t& now_;
  configuration& c_;
};

// For the search: a party's own moments are its operation's, and the second one of a close.
class channels {
 public:
  using operation = history::operation;
  using configuration = history::configuration;
  explicit channels(const std::vector<std::uint8_t>& capacities) : capacities_(capacities) {}

  [[nodiscard]] configuration first(std::size_t parties) const {
    configuration c{std::string(parties, configuration::absent), {}};
    c.channels.resize(capacities_.size());
    return c;
  }
  template <class Visit>
  void moments(const model::now_t& now, const configuration& c, std::uint8_t p, Visit visit) const {
    const char phase = c.phases[p];
    if (phase != configuration::invoked && phase != configuration::half_closed) return;
    configuration next = c;
    model m(capacities_, now, next);
    if (phase == configuration::invoked ? m.happen(p) : m.shelter_senders(p)) visit(std::move(next));
  }

 private:
  const std::vector<std::uint8_t>& capacities_;
};

[[nodiscard]] inline verdict check(const record& r) {
  return linearizable::checker(channels(r.capacities), r.operations, [](const operation&) { return true; }).check();
}

// For a message.
inline std::string describe(const record& r, const verdict& v) {
  std::string text = "capacities:";
  for (const auto capacity : r.capacities) text += ' ' + std::to_string(int(capacity));
  return text + linearizable::describe_all(r.operations, v);
}

}  // namespace test::history
