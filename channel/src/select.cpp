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
// Tasks, locks, permits and other sources (ready_source.hpp) are listed after the channels, under locks of their own.
// If one has become ready meanwhile, the select claims itself, so that nobody else can win, and asks them all again; if
// the claim fails, somebody was faster. Whoever hands something to a source's node claims the fiber like a channel's
// partner and writes the outcome into that node alone; the select finds it when it asks.
#include <ramie/select.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <new>

#include <ramie/error.hpp>
#include <ramie/platform/random.hpp>
#include <ramie/runtime/budget.hpp>

#include "core.hpp"

namespace ramie::channel_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_select{"select"};

constexpr std::size_t usual_cases = 8;

// For choices that must be even, not secret.
std::uint64_t roll(const call_context& at) noexcept {
  if (at.local != nullptr) {
    at.local->rng.set(platform::xorshift_step(at.local->rng.get()));
    return at.local->rng.get();
  }
  static std::atomic<std::uint64_t> of_threads{0};
  return platform::splitmix_of(of_threads.fetch_add(platform::splitmix_increment, std::memory_order_relaxed));
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
bool on_source(const select_case& c) noexcept {
  return c.what == select_case::kind::source && c.source.ops != nullptr;
}
channel_waiter& channel_node(select_case& c) noexcept {
  return *std::launder(reinterpret_cast<channel_waiter*>(c.node));
}
bool try_take(select_case& c) {
  return c.source.ops->try_take(c.source, *c.source_node);
}

// One fiber, one ticket: one claim.
void wait_as(const waiter& main, waiter& node) noexcept {
  node.who = main.who;
  node.ticket = main.ticket;
  node.outcome = 0;
}

class selection final : public waitable {
 public:
  selection(select_case* const* cases, std::size_t count, const call_context& at)
      : cases_(cases), count_(count), channels_(count), order_(count) {
    for (std::uint32_t i = 0; i < count_; ++i) make_node(*cases_[i], i);
    shuffle(at);
    sort_channels();
    enter_sources();
  }
  ~selection() {
    if (sources_ != 0) leave_sources(count_);
  }

  // The number of a case that happened without waiting, or count.
  // `by_hints`: a channel that does not look ready is not asked, which may be a moment out of date.
  [[nodiscard]] std::size_t attempt_each(const call_context& at, bool by_hints);
  [[nodiscard]] std::size_t attempt_together(const call_context& at);
  // Else several answers, also of one channel, may each be out of date when the next one comes.
  [[nodiscard]] bool at_most_one_channel_case() const noexcept { return channel_cases_ <= 1; }
  [[nodiscard]] bool could_ever_happen() const noexcept {
    return locks_ != 0 || sources_ != 0 || earliest() != count_;
  }
  // The time case that comes first, or count.
  [[nodiscard]] std::size_t earliest() const noexcept;
  [[nodiscard]] std::size_t find_otherwise() const noexcept;
  [[nodiscard]] bool said_closed(std::size_t index) const noexcept {
    return on_channel(*cases_[index]) && channel_node(*cases_[index]).how() == channel_status::closed;
  }
  // Takes all nodes out of their lists. Idempotent.
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
    hold_all(selection& of, const call_context& at) noexcept : of_(of), me_(lock_user_of(at)) {
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
    const platform::lock_user* const me_;
  };

  static void make_node(select_case& c, std::uint32_t index) noexcept;
  void shuffle(const call_context& at) noexcept;
  void sort_channels() noexcept;
  void enter_sources();
  void leave_sources(std::size_t entered) noexcept;
  [[nodiscard]] std::size_t attempt_locked(wake_batch& wakes);
  void settle_channel(std::size_t index, channel_status how) noexcept { channel_node(*cases_[index]).settle(how); }
  void list_channels(const waiter& main) noexcept;
  void list_sources(waiter& main) noexcept;
  [[nodiscard]] std::size_t take_source();

  select_case* const* const cases_;
  const std::size_t count_;
  std::size_t channel_cases_ = 0;
  std::size_t locks_ = 0;         // their distinct channels
  std::size_t sources_ = 0;       // cases on sources
  scratch<lock_entry> channels_;  // distinct, by address
  scratch<std::uint32_t> order_;  // of asking and of listing
};

void selection::make_node(select_case& c, std::uint32_t index) noexcept {
  static_assert(sizeof(channel_waiter) <= sizeof c.node);
  if (!on_channel(c)) return;
  auto* const node = ::new (c.node) channel_waiter(c.element, c.what == select_case::kind::send);
  node->case_number = index + 1;
}

void selection::shuffle(const call_context& at) noexcept {
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
  channel_cases_ = locks_;
  const auto before = [](const lock_entry& a, const lock_entry& b) { return std::less<>()(a.core, b.core); };
  const auto same = [](const lock_entry& a, const lock_entry& b) { return a.core == b.core; };
  std::sort(first, first + locks_, before);
  locks_ = static_cast<std::size_t>(std::unique(first, first + locks_, same) - first);
}

void selection::enter_sources() {
  for (std::size_t i = 0; i < count_; ++i) {
    select_case& c = *cases_[i];
    if (!on_source(c)) continue;
    try {
      c.source_node = &c.source.ops->enter(c.source, c.node);
      ++sources_;
    } catch (...) {
      leave_sources(i);
      throw;
    }
  }
}

void selection::leave_sources(std::size_t entered) noexcept {
  for (std::size_t i = 0; i < entered; ++i) {
    select_case& c = *cases_[i];
    if (on_source(c)) c.source.ops->leave(c.source, *c.source_node);
  }
}

std::size_t selection::attempt_each(const call_context& at, bool by_hints) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    select_case& c = *cases_[i];
    if (on_source(c) && try_take(c)) return i;
    if (!on_channel(c)) continue;
    channel_waiter& node = channel_node(c);
    if (by_hints && !(node.sends ? c.channel->may_send() : c.channel->may_recv())) continue;
    channel_wakes wakes(*c.channel);
    channel_guard hold(c.channel->lock, lock_user_of(at));
    const channel_status how = c.channel->attempt(node, wakes);
    if (how == channel_status::would_block) continue;
    settle_channel(i, how);
    return i;
  }
  return count_;
}

std::size_t selection::attempt_locked(wake_batch& wakes) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    select_case& c = *cases_[i];
    if (!on_channel(c)) continue;
    const channel_status how = c.channel->attempt(channel_node(c), wakes);
    if (how == channel_status::would_block) continue;
    settle_channel(i, how);
    return i;
  }
  return count_;
}

std::size_t selection::attempt_together(const call_context& at) {
  wake_batch wakes;
  hold_all hold(*this, at);
  return attempt_locked(wakes);
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

// The source whose waker has claimed us goes first: what was handed over must be taken, or the duty that came with the
// wake carried out, before anything else can end the select. At most one node has an outcome.
std::size_t selection::take_source() {
  for (std::size_t i = 0; i < count_; ++i) {
    select_case& c = *cases_[i];
    if (on_source(c) && c.source_node->outcome != 0 && try_take(c)) return i;
  }
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = order_.data()[k];
    if (on_source(*cases_[i]) && try_take(*cases_[i])) return i;
  }
  return count_;
}

// Between two waits, with nothing listed. Channels are asked by publish.
bool selection::try_complete(waiter& main) {
  if (sources_ == 0) return false;
  const std::size_t taken = take_source();
  if (taken == count_) return false;
  main.outcome = static_cast<std::uint32_t>(taken + 1);
  return true;
}

bool selection::publish(waiter& main) {
  if (locks_ != 0) reach(channel_moment::will_publish, *channels_.data()[0].core);
  {
    wake_batch wakes;
    hold_all hold(*this, current_context());
    const std::size_t chosen = attempt_locked(wakes);
    if (chosen != count_) {
      main.outcome = static_cast<std::uint32_t>(chosen + 1);
      return false;
    }
    list_channels(main);
  }
  if (sources_ != 0) list_sources(main);
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

void selection::list_sources(waiter& main) noexcept {
  for (std::size_t k = 0; k < count_; ++k) {
    select_case& c = *cases_[order_.data()[k]];
    if (!on_source(c)) continue;
    wait_as(main, *c.source_node);
    if (c.source.ops->publish(c.source, *c.source_node)) continue;
    if (claim(main)) complete(*main.who);  // it is ready, and nobody was faster: without an outcome, to ask again
    return;
  }
}

void selection::withdraw() noexcept {
  const call_context at = current_context();
  for (std::size_t i = 0; i < count_; ++i) {
    select_case& c = *cases_[i];
    if (on_channel(c)) {
      reach(channel_moment::will_unpublish, *c.channel);
      channel_guard hold(c.channel->lock, lock_user_of(at));
      c.channel->unlist(channel_node(c));
    } else if (on_source(c)) {
      c.source.ops->unpublish(c.source, *c.source_node);
    }
  }
}

}  // namespace

select_choice select_among(select_case* const* cases, std::size_t count) {
  call_context at = current_context();
  begin_operation(at);
  selection all(cases, count, at);
  const std::size_t fallback = all.find_otherwise();
  std::size_t chosen = all.attempt_each(at, fallback == count);
  if (chosen == count) {
    if (fallback != count) {
      if (!all.at_most_one_channel_case()) chosen = all.attempt_together(at);
      return chosen == count ? select_choice{fallback, false} : select_choice{chosen, all.said_closed(chosen)};
    }
    if (at.self == nullptr && !all.could_ever_happen()) {
      throw usage_error(
          "ramie: select: a plain thread would wait for ever, no case can happen. Add one that can, or on_timeout.");
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

}  // namespace ramie::channel_internal
