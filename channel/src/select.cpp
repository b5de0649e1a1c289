// SPDX-License-Identifier: BSL-1.0
// select: one fiber, a node in several lists, one claim.
//
// First every case is asked by itself, in random order. If none is ready, the locks of all channels are taken in the
// order of their addresses; every case is asked again, and the fiber's nodes are listed, before any lock is released:
// so nobody can come in between, and two selects can't pass each other by. A select never meets itself: it asks before
// it is listed.
//
// Nodes are listed in the same random order. A partner claims the first node of its channel that it finds, so of
// several cases on one channel the one listed first would win every time. Between channels the order of listing decides
// nothing: there it is the partner that chooses, and a partner that is a select has shuffled its own cases.
//
// All nodes carry one fiber and one ticket, so one claim settles them all: whoever wins it owns the select until
// complete, writes the outcome of its own node and the number of its case into the main one. The other nodes are stale
// from then on, and are unlisted by the select when it runs.
//
// Tasks and other joinables come after the channels, under locks of their own: what they say stays true, nothing is
// consumed. If one has become true meanwhile, the select claims itself; if that fails, a channel was faster.
#include <ramie/select.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <new>

#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

#include "core.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_select{"select"};

constexpr std::size_t usual_cases = 8;

std::uint64_t scramble(std::uint64_t x) noexcept {
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

// For choices that must be even, not secret.
std::uint64_t roll(const whereabouts& at) noexcept {
  if (at.desk != nullptr) {
    at.desk->dice.set(scramble(at.desk->dice.get()));
    return at.desk->dice.get();
  }
  static std::atomic<std::uint64_t> of_threads{0x9e3779b97f4a7c15};
  auto before = of_threads.load(std::memory_order_relaxed);
  while (!of_threads.compare_exchange_weak(before, scramble(before), std::memory_order_relaxed)) {
  }
  return scramble(before);
}

// Memory for `count` of T, inside for the usual number.
template <class T>
class scratch {
 public:
  explicit scratch(std::size_t count) : more_(count > usual_cases ? std::make_unique<T[]>(count) : nullptr) {}
  [[nodiscard]] T* data() noexcept { return more_ != nullptr ? more_.get() : few_; }

 private:
  T few_[usual_cases];
  std::unique_ptr<T[]> more_;
};

bool on_channel(const select_case& c) noexcept {
  return (c.what == select_case::kind::recv || c.what == select_case::kind::send) && c.channel != nullptr;
}
bool on_joinable(const select_case& c) noexcept {
  return c.what == select_case::kind::join && c.join.ops != nullptr;
}
channel_waiter& channel_node(select_case& c) noexcept {
  return *std::launder(reinterpret_cast<channel_waiter*>(c.node));
}
keyed_waiter& join_node(select_case& c) noexcept {
  return *std::launder(reinterpret_cast<keyed_waiter*>(c.node));
}

// One fiber, one ticket: one claim.
void wait_as(const waiter& main, waiter& node) noexcept {
  node.who = main.who;
  node.ticket = main.ticket;
  node.outcome = 0;
}

class selection final : public waitable {
 public:
  selection(select_case* const* cases, std::size_t count, const whereabouts& at)
      : cases_(cases), count_(count), channels_(count), order_(count) {
    for (std::uint32_t i = 0; i < count_; ++i) make_node(*cases_[i], i);
    shuffle(at);
    sort_channels();
    enter_joinables();
  }
  ~selection() { leave_joinables(count_); }

  // The number of a case that happened without waiting, or count.
  // `by_hints`: a channel that does not look ready is not asked, which may be a moment out of date.
  [[nodiscard]] std::size_t attempt_each(const whereabouts& at, bool by_hints);
  [[nodiscard]] std::size_t attempt_together(const whereabouts& at);
  // Else several answers, also of one channel, may each be out of date when the next one comes.
  [[nodiscard]] bool one_question_at_most() const noexcept { return questions_ <= 1; }
  [[nodiscard]] bool could_ever_happen() const noexcept {
    return locks_ != 0 || earliest() != count_ ||
           std::any_of(cases_, cases_ + count_, [](const select_case* c) { return on_joinable(*c); });
  }
  // The time case that comes first, or count.
  [[nodiscard]] std::size_t earliest() const noexcept;
  [[nodiscard]] std::size_t find_otherwise() const noexcept;
  [[nodiscard]] bool said_closed(std::size_t index) const noexcept {
    return on_channel(*cases_[index]) && channel_node(*cases_[index]).how() == meeting::closed;
  }
  // Takes all nodes out of their lists.
  void withdraw() noexcept;

  bool try_complete(waiter& main) override;
  bool publish(waiter& main) override;
  void unpublish(waiter&) noexcept override { withdraw(); }

 private:
  struct lock_entry {
    channel_core* core;
    platform::biased_lock::hold how;
  };
  // All locks, in the order of their addresses.
  class hold_all {
   public:
    hold_all(selection& of, const whereabouts& at) noexcept : of_(of), me_(party_of(at)) {
      for (std::size_t i = 0; i < of_.locks_; ++i) {
        auto& entry = of_.channels_.data()[i];
        entry.how = entry.core->lock.lock(me_);
      }
    }
    ~hold_all() {
      for (std::size_t i = of_.locks_; i-- > 0;) {
        auto& entry = of_.channels_.data()[i];
        entry.core->lock.unlock(entry.how, me_);
      }
    }
    hold_all(const hold_all&) = delete;
    hold_all& operator=(const hold_all&) = delete;

   private:
    selection& of_;
    const platform::lock_party* const me_;
  };

  static void make_node(select_case& c, std::uint32_t index) noexcept;
  void shuffle(const whereabouts& at) noexcept;
  void sort_channels() noexcept;
  void enter_joinables();
  void leave_joinables(std::size_t entered) noexcept;
  [[nodiscard]] std::size_t attempt_locked(will_tell& later);
  void settle_channel(std::size_t index, meeting how) noexcept { channel_node(*cases_[index]).settle(how); }
  void list_channels(const waiter& main) noexcept;
  void list_joinables(waiter& main);

  select_case* const* const cases_;
  const std::size_t count_;
  std::size_t questions_ = 0;     // cases on channels
  std::size_t locks_ = 0;         // their distinct channels
  scratch<lock_entry> channels_;  // distinct, by address
  scratch<std::uint32_t> order_;  // of asking and of listing
};

void selection::make_node(select_case& c, std::uint32_t index) noexcept {
  static_assert(sizeof(channel_waiter) <= sizeof c.node && sizeof(keyed_waiter) <= sizeof c.node);
  if (on_channel(c)) {
    auto* const node = ::new (c.node) channel_waiter(c.element, c.what == select_case::kind::send);
    node->case_number = index + 1;
  } else if (on_joinable(c)) {
    ::new (c.node) keyed_waiter(c.join.what);
  }
}

void selection::shuffle(const whereabouts& at) noexcept {
  std::uint32_t* const order = order_.data();
  for (std::size_t i = 0; i < count_; ++i) {
    const auto k = static_cast<std::size_t>((roll(at) >> 32) * (i + 1) >> 32);
    order[i] = order[k];
    order[k] = static_cast<std::uint32_t>(i);
  }
}

void selection::sort_channels() noexcept {
  lock_entry* const first = channels_.data();
  for (std::size_t i = 0; i < count_; ++i) {
    if (on_channel(*cases_[i])) first[locks_++].core = cases_[i]->channel;
  }
  questions_ = locks_;
  const auto before = [](const lock_entry& a, const lock_entry& b) { return std::less<>()(a.core, b.core); };
  const auto same = [](const lock_entry& a, const lock_entry& b) { return a.core == b.core; };
  std::sort(first, first + locks_, before);
  locks_ = static_cast<std::size_t>(std::unique(first, first + locks_, same) - first);
}

void selection::enter_joinables() {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!on_joinable(*cases_[i])) continue;
    try {
      cases_[i]->join.ops->enter(cases_[i]->join);
    } catch (...) {
      leave_joinables(i);
      throw;
    }
  }
}

void selection::leave_joinables(std::size_t entered) noexcept {
  for (std::size_t i = 0; i < entered; ++i) {
    if (on_joinable(*cases_[i])) cases_[i]->join.ops->leave(cases_[i]->join);
  }
}

std::size_t selection::attempt_each(const whereabouts& at, bool by_hints) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    select_case& c = *cases_[i];
    if (on_joinable(c) && c.join.ops->done(c.join)) return i;
    if (!on_channel(c)) continue;
    channel_waiter& node = channel_node(c);
    if (by_hints && !(node.sends ? c.channel->may_send() : c.channel->may_recv())) continue;
    will_tell later(*c.channel);
    channel_guard hold(c.channel->lock, party_of(at));
    const meeting how = c.channel->attempt(node, later);
    if (how == meeting::none) continue;
    settle_channel(i, how);
    return i;
  }
  return count_;
}

std::size_t selection::attempt_locked(will_tell& later) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    select_case& c = *cases_[i];
    if (!on_channel(c)) continue;
    const meeting how = c.channel->attempt(channel_node(c), later);
    if (how == meeting::none) continue;
    settle_channel(i, how);
    return i;
  }
  return count_;
}

std::size_t selection::attempt_together(const whereabouts& at) {
  will_tell later;
  hold_all hold(*this, at);
  return attempt_locked(later);
}

std::size_t selection::earliest() const noexcept {
  std::size_t found = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    if (cases_[i]->what != select_case::kind::time) continue;
    if (found == count_ || cases_[i]->when < cases_[found]->when) found = i;
  }
  return found;
}

std::size_t selection::find_otherwise() const noexcept {
  const auto it = std::find_if(cases_, cases_ + count_,
                               [](const select_case* c) { return c->what == select_case::kind::otherwise; });
  return static_cast<std::size_t>(it - cases_);
}

// Joinables only: they may have come true between two waits.
bool selection::try_complete(waiter& main) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    if (!on_joinable(*cases_[i]) || !cases_[i]->join.ops->done(cases_[i]->join)) continue;
    main.outcome = static_cast<std::uint32_t>(i + 1);
    return true;
  }
  return false;
}

bool selection::publish(waiter& main) {
  if (locks_ != 0) reach(channel_moment::will_publish, *channels_.data()[0].core);
  {
    will_tell later;
    hold_all hold(*this, look_around());
    const std::size_t chosen = attempt_locked(later);
    if (chosen != count_) {
      main.outcome = static_cast<std::uint32_t>(chosen + 1);
      return false;
    }
    list_channels(main);
  }
  list_joinables(main);
  if (locks_ != 0) reach(channel_moment::has_published, *channels_.data()[0].core);
  return true;
}

void selection::list_channels(const waiter& main) noexcept {
  for (std::size_t k = 0; k < count_; ++k) {
    select_case& c = *cases_[order_.data()[k]];
    if (!on_channel(c)) continue;
    channel_waiter& node = channel_node(c);
    wait_as(main, node);
    node.select = const_cast<waiter*>(&main);
    c.channel->list(node);
  }
}

void selection::list_joinables(waiter& main) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    select_case& c = *cases_[i];
    if (!on_joinable(c)) continue;
    keyed_waiter& node = join_node(c);
    wait_as(main, node);
    if (c.join.ops->publish(c.join, node)) continue;
    if (claim(main)) {  // it is true already, and no channel was faster
      main.outcome = static_cast<std::uint32_t>(i + 1);
      complete(*main.who);
    }
    return;
  }
}

void selection::withdraw() noexcept {
  const whereabouts at = look_around();
  for (std::size_t i = 0; i < count_; ++i) {
    select_case& c = *cases_[i];
    if (on_channel(c)) {
      reach(channel_moment::will_unpublish, *c.channel);
      channel_guard hold(c.channel->lock, party_of(at));
      c.channel->unlist(channel_node(c));
    } else if (on_joinable(c)) {
      c.join.ops->unpublish(c.join, join_node(c));
    }
  }
}

}  // namespace

select_choice select_among(select_case* const* cases, std::size_t count) {
  whereabouts at = look_around();
  begin_operation(at);
  selection all(cases, count, at);
  const std::size_t fallback = all.find_otherwise();
  std::size_t chosen = all.attempt_each(at, fallback == count);
  if (chosen == count) {
    if (fallback != count) {
      if (!all.one_question_at_most()) chosen = all.attempt_together(at);
      return chosen == count ? select_choice{fallback, false} : select_choice{chosen, all.said_closed(chosen)};
    }
    if (at.self == nullptr && !all.could_ever_happen()) {
      throw usage_error("ramie: a select on a plain thread without a case that could ever happen.");
    }
    const std::size_t timed = all.earliest();
    const auto deadline = timed != count ? cases[timed]->when : channel_time::max();
    waiter main;
    const auto ended = fiber_wait_until(all, main, waits_to_select, deadline);
    if (ended == wait_result::timed_out) return {timed, false};
    if (ended == wait_result::completed) all.withdraw();
    chosen = main.outcome - 1;
  }
  return {chosen, all.said_closed(chosen)};
}

}  // namespace ramie::detail
