// SPDX-License-Identifier: BSL-1.0
// Histories of one mutex, one condition variable that goes with it, and one semaphore; and whether these, as
// documented, could have produced them (linearizable.hpp).
//
// The model: who holds the mutex; who waits for a notification, in the order they came; the permits, and who waits for
// how many of them, in the order they came.
//   SH1  lock     when nobody holds the mutex. Given up (try_, too late): at a moment at which somebody did.
//   SH2  unlock   by the holder.
//   SH3  wait     has three moments. The holder lets go of the mutex and is listed; it is notified, which is another's
//                 moment, or it leaves the line, too late or cancelled; it has the mutex again, when nobody holds it.
//                 It ends for no reason (spec M22) only if SH9 gives it one.
//   SH4  notify   the first of the line, or all of it. One that leaves too late or cancelled left before that.
//   SH5  acquire  if nobody waits and there are enough permits; else it is listed, and complete when it has got them,
//                 or has left the line.
//   SH6  release  and leaving: permits are dealt out from the front of the line, to each all it wants, as far as they
//                 go.
//   SH7  try_acquire  has failed while somebody waited, or was inside acquire about to find out whether it must, or
//                     while there were not enough.
//   SH8  cancelled  it has not begun, or was listed and left.
//   SH9  cancel   of whomever: who is inside a wait may be woken for nothing, once. It then ends a wait for a
//                 notification; one for permits it goes on with, in its old place, but while it is away those behind it
//                 may be served.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <support/linearizable.hpp>

namespace test::sync_history {

enum class act : std::uint8_t { lock, unlock, wait, notify_one, notify_all, acquire, release, cancel };
enum class patience : std::uint8_t { none, some, endless };     // try_; with a time limit; the others
enum class ending : std::uint8_t { done, gave_up, cut_short };  // gave_up: false, or too late; cut_short: cancelled

struct operation {
  std::uint8_t who = 0;  // one at a time
  act what = act::lock;
  patience waits = patience::endless;
  std::uint8_t count = 1;  // permits
  ending result = ending::done;
  std::uint32_t invoked = 0;
  std::uint32_t happened = 0;  // never known
  std::uint32_t returned = 0;
};

using recorder = linearizable::recorder<operation>;
using verdict = linearizable::verdict<operation>;

inline std::string describe(const operation& op) {
  static constexpr const char* acts[] = {"lock",       "unlock",  "wait",    "notify_one",
                                         "notify_all", "acquire", "release", "cancel"};
  static constexpr const char* moods[] = {"try ", "timed ", ""};
  static constexpr const char* endings[] = {"", " gave up", " cancelled"};
  const bool counts = op.what == act::acquire || op.what == act::release;
  return '[' + std::to_string(op.invoked) + ", " + std::to_string(op.returned) + "] party " + std::to_string(op.who) +
         ": " + moods[static_cast<int>(op.waits)] + acts[static_cast<int>(op.what)] +
         (counts ? '(' + std::to_string(op.count) + ')' : "") + endings[static_cast<int>(op.result)];
}

struct configuration {
  static constexpr char absent = linearizable::phase::absent, invoked = linearizable::phase::invoked, listed = 'l',
                        away = 'a', wants_mutex = 'm', complete = linearizable::phase::complete;
  static constexpr std::uint8_t nobody = 0xff;

  std::string phases;
  std::uint8_t holder = nobody;
  std::uint32_t permits = 0;
  std::string waiting, acquiring;  // parties, in order
  std::uint32_t startled = 0;      // parties, as bits: may yet be woken for nothing
  friend bool operator==(const configuration&, const configuration&) = default;

  struct hash {
    std::size_t operator()(const configuration& c) const noexcept {
      const std::hash<std::string> of;
      return ((of(c.phases) * 31 + of(c.waiting)) * 31 + of(c.acquiring)) * 31 + c.holder + 257 * c.permits +
             65'537 * c.startled;
    }
  };
};

// The rules SH1 to SH9 for one configuration. A function that returns false has met an outcome that is not the recorded
// one, or a moment that can't be yet: the configuration is worthless.
class rules {
 public:
  using now_t = std::vector<const operation*>;
  rules(const now_t& now, configuration& c) : now_(now), c_(c) {}

  // SH8.
  [[nodiscard]] bool never_begin(std::uint8_t who) { return completed(who); }

  // The first moment.
  [[nodiscard]] bool happen(std::uint8_t who) {
    const operation& op = *now_[who];
    switch (op.what) {
      case act::lock: return lock(who, op);
      case act::unlock: return let_go(who) && completed(who);
      case act::wait: return let_go(who) && list(c_.waiting, who);
      case act::notify_one: return (c_.waiting.empty() || notify_first()) && completed(who);
      case act::notify_all:
        while (!c_.waiting.empty()) {
          if (!notify_first()) return false;
        }
        return completed(who);
      case act::acquire: return acquire(who, op);
      case act::release: c_.permits += op.count; return deal_out() && completed(who);
      case act::cancel: startle_all(); return completed(who);
    }
    return false;
  }
  // Of one that is listed, and has not got what it waits for.
  [[nodiscard]] bool leave(std::uint8_t who) {
    if (now_[who]->result == ending::done) return false;
    if (now_[who]->what == act::wait) return leave_condition(who);
    std::erase(c_.acquiring, static_cast<char>(who));
    return deal_out() && completed(who);
  }
  // SH9.
  [[nodiscard]] bool wake_for_nothing(std::uint8_t who) {
    if (!calm_down(who)) return false;
    return now_[who]->what == act::acquire ? go_away(who) : now_[who]->result == ending::done && leave_condition(who);
  }
  [[nodiscard]] bool come_back(std::uint8_t who) {
    c_.phases[who] = configuration::listed;
    return deal_out();
  }
  // The last moment of a wait.
  [[nodiscard]] bool lock_again(std::uint8_t who) { return take(who) && completed(who); }

 private:
  [[nodiscard]] bool completed(std::uint8_t who) {
    c_.phases[who] = configuration::complete;
    (void)calm_down(who);
    return true;
  }
  void startle_all() {
    for (std::size_t p = 0; p < now_.size(); ++p) {
      const char phase = c_.phases[p];
      if (phase == configuration::invoked || phase == configuration::listed) c_.startled |= 1u << p;
    }
  }
  [[nodiscard]] bool calm_down(std::uint8_t who) {
    return (std::exchange(c_.startled, c_.startled & ~(1u << who)) >> who & 1) != 0;
  }
  [[nodiscard]] bool leave_condition(std::uint8_t who) {
    std::erase(c_.waiting, static_cast<char>(who));
    c_.phases[who] = configuration::wants_mutex;
    return true;
  }
  // Keeps its place in the line.
  [[nodiscard]] bool go_away(std::uint8_t who) {
    c_.phases[who] = configuration::away;
    return deal_out();
  }
  [[nodiscard]] bool list(std::string& line, std::uint8_t who) {
    line.push_back(static_cast<char>(who));
    c_.phases[who] = configuration::listed;
    return true;
  }
  [[nodiscard]] bool take(std::uint8_t who) { return std::exchange(c_.holder, who) == configuration::nobody; }
  [[nodiscard]] bool let_go(std::uint8_t who) { return std::exchange(c_.holder, configuration::nobody) == who; }

  [[nodiscard]] bool lock(std::uint8_t who, const operation& op) {
    if (op.result == ending::done) return take(who) && completed(who);
    return op.result == ending::gave_up && c_.holder != configuration::nobody && completed(who);
  }
  [[nodiscard]] bool notify_first() {
    const auto first = static_cast<std::uint8_t>(c_.waiting.front());
    c_.waiting.erase(0, 1);
    c_.phases[first] = configuration::wants_mutex;
    return now_[first]->result == ending::done;
  }
  [[nodiscard]] bool acquire(std::uint8_t who, const operation& op) {
    const bool enough = first_acquirer() == c_.acquiring.size() && c_.permits >= op.count;
    if (op.waits == patience::none && op.result == ending::gave_up) {
      return (!enough || somebody_comes(who)) && completed(who);
    }
    if (!enough) return op.waits != patience::none && list(c_.acquiring, who);
    c_.permits -= op.count;
    return op.result == ending::done && completed(who);
  }
  // SH7.
  [[nodiscard]] bool somebody_comes(std::uint8_t but) const {
    for (std::size_t p = 0; p < now_.size(); ++p) {
      if (p == but || (c_.phases[p] != configuration::invoked && c_.phases[p] != configuration::away)) continue;
      if (now_[p]->what == act::acquire && now_[p]->waits != patience::none) return true;
    }
    return false;
  }
  // Where in the line: the first that is not away.
  [[nodiscard]] std::size_t first_acquirer() const {
    const auto is_there = [this](char who) {
      return c_.phases[static_cast<std::uint8_t>(who)] == configuration::listed;
    };
    const auto found = std::find_if(c_.acquiring.begin(), c_.acquiring.end(), is_there);
    return static_cast<std::size_t>(found - c_.acquiring.begin());
  }
  [[nodiscard]] bool deal_out() {
    for (auto at = first_acquirer(); at < c_.acquiring.size(); at = first_acquirer()) {
      const auto first = static_cast<std::uint8_t>(c_.acquiring[at]);
      const operation& op = *now_[first];
      if (op.count > c_.permits) return true;
      if (op.result != ending::done) return false;
      c_.permits -= op.count;
      c_.acquiring.erase(at, 1);
      (void)completed(first);
    }
    return true;
  }

  const now_t& now_;
  configuration& c_;
};

class locks {
 public:
  using operation = sync_history::operation;
  using configuration = sync_history::configuration;
  explicit locks(std::uint32_t permits) : permits_(permits) {}

  [[nodiscard]] configuration first(std::size_t parties) const {
    configuration c;
    c.phases.assign(parties, configuration::absent);
    c.permits = permits_;
    return c;
  }
  template <class Visit>
  void moments(const rules::now_t& now, const configuration& c, std::uint8_t p, Visit visit) const {
    const auto attempt = [&](auto moment) {
      configuration next = c;
      rules r(now, next);
      if ((r.*moment)(p)) visit(std::move(next));
    };
    switch (c.phases[p]) {
      case configuration::invoked:
        if (now[p]->result == ending::cut_short) attempt(&rules::never_begin);
        attempt(&rules::happen);
        break;
      case configuration::listed:
        attempt(&rules::leave);
        attempt(&rules::wake_for_nothing);
        break;
      case configuration::away: attempt(&rules::come_back); break;
      case configuration::wants_mutex: attempt(&rules::lock_again); break;
      default: break;
    }
  }

 private:
  const std::uint32_t permits_;
};

// Objects that have nothing to do with each other can be looked at one by one: a history is right if it is for each.
[[nodiscard]] inline verdict check(std::uint32_t permits, const std::vector<operation>& history) {
  verdict of_both;
  for (const bool semaphore : {true, false}) {
    const auto wanted = [semaphore](const operation& op) {
      return op.what == act::cancel || semaphore == (op.what == act::acquire || op.what == act::release);
    };
    const verdict of_one = linearizable::checker(locks(permits), history, wanted).check();
    of_both.explored += of_one.explored;
    of_both.undecided = of_both.undecided || of_one.undecided;
    if (!of_one) of_both.culprit = of_one.culprit;
  }
  return of_both;
}

}  // namespace test::sync_history
