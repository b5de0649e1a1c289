// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <ramie/error.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

#include "../sched/scheduler.hpp"
#include "../wait/wake.hpp"

namespace ramie::detail {

void scope_list::add(scope_link& link) noexcept {
  link.previous = ends_.previous;
  link.next = &ends_;
  link.previous->next = &link;
  ends_.previous = &link;
}

void scope_list::remove(scope_link& link) noexcept {
  link.previous->next = link.next;
  link.next->previous = link.previous;
  link.previous = link.next = nullptr;
}

cancel_scope::cancel_scope(role as, source_location site) : role_(as) {
  const whereabouts at = look_around();
  if (at.self == nullptr) {
    fiber& proxy = self();  // fatal in the scheduler's own code
    if (role_ != role::shield) throw usage_error("ramie: a cancel scope outside a fiber. Open it inside run().");
    owner_ = &proxy;
    parent_ = proxy.scope;
    proxy.scope = this;
    return;
  }
  open(at, site);
}

cancel_scope::cancel_scope(scheduler& of) noexcept : scheduler_(&of) {}

void cancel_scope::close() noexcept {
  if (owner_ == nullptr) return;
  if (owner_->scope != this || &self() != owner_) {
    platform::fatal("a cancel scope of %s was not closed in the block and fiber that opened it.",
                    describe(*owner_).c_str());
  }
  owner_->scope = parent_;
  if (has(linked)) {
    std::lock_guard hold(parent_->lock_);
    scope_list::remove(*this);
    holds_.fetch_and(~linked, std::memory_order_relaxed);
  }
  while (has(pins)) let_others_pass();  // a sweep is looking at us
  forget_look();
  stop_ = nullptr;  // no sweep can find us any more
  owner_ = nullptr;
}

void cancel_scope::forget_look() noexcept {
  if (!has(looked)) return;
  clean_at_.store(~std::uint64_t{0}, std::memory_order_relaxed);
  holds_.fetch_and(~looked, std::memory_order_relaxed);
  if (in_flight_ != 0) owner_->seen_epoch.set(~std::uint64_t{0});  // it may have been a barrier: its owner looks again
}

void cancel_scope::end_early() noexcept {
  over_.store(true, std::memory_order_relaxed);
}

void cancel_scope::forget_reason() noexcept {
  requested_.store(false, std::memory_order_relaxed);
  over_.store(false, std::memory_order_relaxed);
  owner_told_ = 0;
  reason_.reset();
  cause_ = nullptr;
  carried_.reset();
}

cancel_scope* cancel_scope::effective(cancel_scope* from, std::uint64_t epoch) noexcept {
  cancel_scope* outermost = nullptr;
  cancel_scope* s = seen(from);
  for (; s != nullptr; s = s->seen_above()) {
    if (s->clean_at_.load(std::memory_order_acquire) == epoch) break;  // all clean from here up
    if (s->cancels()) outermost = s;
  }
  if (outermost != nullptr) return outermost;
  for (cancel_scope* c = seen(from); c != s; c = c->seen_above()) {
    if (!c->has(looked)) c->holds_.fetch_or(looked, std::memory_order_relaxed);
    c->clean_at_.store(epoch, std::memory_order_release);
  }
  return nullptr;
}

cancel_scope* cancel_scope::deliverable(const fiber& f, const cancel_scope* limit) noexcept {
  const auto in_flight = static_cast<unsigned>(std::uncaught_exceptions());
  cancel_scope* outermost = nullptr;
  for (cancel_scope* s = seen(f.scope); s != limit && s != nullptr; s = s->seen_above()) {
    const unsigned at_its_opening = s->owner_ == &f ? s->in_flight_ : 0;
    if (s->cancels() && in_flight <= at_its_opening) outermost = s;
  }
  return outermost;
}

bool cancel_scope::explains(const cancelled& c) const noexcept {
  for (const cancel_scope* s = seen(this); s != nullptr; s = s->seen_above()) {
    if (s->owns(c)) return true;
  }
  return false;
}

bool cancel_scope::cancel_and_unpin(cancel_reason reason, std::exception_ptr cause) noexcept {
  std::shared_ptr<const cancel_reason> shared;
  try {
    shared = std::make_shared<const cancel_reason>(std::move(reason));
  } catch (const std::bad_alloc&) {
    shared = scheduler_->unexplained[static_cast<std::size_t>(reason.kind)];
  }
  cancel_scope* to_stop = nullptr;
  const bool first = cancel_once(std::move(shared), std::move(cause), to_stop);
  unpin();  // the owner may have unwound: it waits for this
  stop_all(to_stop);
  return first;
}

bool cancel_scope::cancel_once(std::shared_ptr<const cancel_reason> shared, std::exception_ptr cause,
                               cancel_scope*& to_stop) noexcept {
  std::lock_guard one_at_a_time(scheduler_->cancel_mutex);
  if (requested_.load(std::memory_order_relaxed) || over_.load(std::memory_order_relaxed)) return false;
  static std::atomic<std::uint64_t> last_number{0};
  number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  reason_ = std::move(shared);
  cause_ = std::move(cause);
  requested_.store(true, std::memory_order_release);                 // 1
  scheduler_->cancel_epoch.fetch_add(1, std::memory_order_seq_cst);  // 2
  platform::full_fence();
  sweep(to_stop);  // 3
  return true;
}

std::vector<std::shared_ptr<const cancel_reason>> scheduler::bare_reasons() {
  std::vector<std::shared_ptr<const cancel_reason>> all;
  for (auto kind = cancel_kind::requested; kind <= cancel_kind::deadlock;
       kind = static_cast<cancel_kind>(static_cast<int>(kind) + 1)) {
    all.push_back(std::make_shared<const cancel_reason>(cancel_reason{.kind = kind}));
  }
  return all;
}

void cancel_scope::sweep(cancel_scope*& to_stop) noexcept {
  if (owner_ != nullptr) wake_for_cancel(*owner_);
  sweep_next_ = nullptr;
  for (cancel_scope *s = this, *more = nullptr; s != nullptr; s = more) {
    more = s->sweep_next_;
    if (s->stop_ != nullptr) {  // taken once: from here on the links are this sweep's own
      s->pin();
      s->stop_taken_ = std::exchange(s->stop_, nullptr);
      s->stop_next_ = to_stop;
      to_stop = s;
    }
    {
      std::lock_guard hold(s->lock_);
      for (scope_link* l = s->fibers_.first(); l != s->fibers_.end(); l = l->next) wake_for_cancel(fiber::of_link(*l));
      for (scope_link* l = s->scopes_.first(); l != s->scopes_.end(); l = l->next) {
        auto& child = static_cast<cancel_scope&>(*l);
        if (child.is_barrier()) continue;
        child.pin();
        child.sweep_next_ = more;
        more = &child;
      }
    }
    if (s != this) s->unpin();
  }
}

// The callbacks may do anything, even wait for the end of one of the scopes: all of them are let go first. Without
// memory for that, each before its own callback.
void cancel_scope::stop_all(cancel_scope* first) noexcept {
  const auto let_go = [&first] {
    cancel_scope* const s = std::exchange(first, first->stop_next_);
    s->unpin();
  };
  std::vector<std::stop_source> sources;
  try {
    for (const cancel_scope* s = first; s != nullptr; s = s->stop_next_) sources.push_back(*s->stop_taken_);
    while (first != nullptr) let_go();
  } catch (const std::bad_alloc&) {
    sources.clear();
  }
  while (first != nullptr) {
    std::stop_source source = *first->stop_taken_;
    let_go();
    source.request_stop();
  }
  for (std::stop_source& source : sources) source.request_stop();
}

void cancel_scope::carry(std::stop_source& source) noexcept {
  link_into_parents();  // a sweep from above must find it
  {
    std::lock_guard no_sweep(scheduler_->cancel_mutex);
    if (effective(this, scheduler_->cancel_epoch.load(std::memory_order_relaxed)) == nullptr) {
      stop_ = &source;
      return;
    }
  }
  source.request_stop();
}

void cancel_scope::link_fiber(fiber& f) noexcept {
  link_into_parents();
  std::lock_guard hold(lock_);
  fibers_.add(f.link);
  f.linked = true;
}

void cancel_scope::unlink_fiber(fiber& f) noexcept {
  std::lock_guard hold(lock_);
  scope_list::remove(f.link);
  f.linked = false;
}

// A linked scope has only linked ancestors, up to the root or the nearest shield: else a sweep from above
// could miss somebody who relies on `linked`. So links are made from the top down, one scope at a time.
void cancel_scope::link_into_parents() noexcept {
  const auto reached = [](const cancel_scope& s) { return s.parent_ == nullptr || s.role_ == role::shield; };
  if (reached(*this) || has(linked)) return;
  std::lock_guard one_at_a_time(scheduler_->link_mutex);
  cancel_scope* top = nullptr;  // the highest that is not linked; link_below_ leads back down
  for (cancel_scope* s = this; !reached(*s) && !s->has(linked); s = s->parent_) {
    s->link_below_ = top;
    top = s;
  }
  for (cancel_scope* s = top; s != nullptr; s = s->link_below_) {
    std::lock_guard hold(s->parent_->lock_);
    s->parent_->scopes_.add(*s);
    s->holds_.fetch_or(linked, std::memory_order_release);
  }
}

cancelled cancel_scope::make_exception(const cancel_scope* from) const noexcept {
  constexpr std::size_t longest = 32;
  cancelled made(reason_, number_, cause_);
  try {
    auto path = std::make_shared<cancelled::scope_path>();
    for (const cancel_scope* s = from; s != nullptr && path->size() < longest; s = s->parent_) {
      path->push_back(s->site_);
      if (s == this) break;
    }
    std::reverse(path->begin(), path->end());
    made.path_ = std::move(path);
  } catch (const std::bad_alloc&) {  // where it was cancelled is in the reason
  }
  return made;
}

cancelled cancel_scope::ending() const noexcept {
  const cancel_scope* outermost = nullptr;
  for (const cancel_scope* s = seen(this); s != nullptr; s = s->seen_above()) {
    if (s->cancel_requested()) outermost = s;
  }
  if (outermost != nullptr) return outermost->make_exception(this);
  return {scheduler_->unexplained[static_cast<std::size_t>(cancel_kind::requested)], 0, nullptr};
}

void cancel_scope::deliver_to(fiber& f) {
  f.word.set_cancel_seen(true);
  const bool own = owner_ == &f;
  std::uint8_t& times = own ? owner_told_ : f.cancel_delivered;
  if (times != 0) {
    if (worker* const w = this_worker()) w->count.cancel_redelivered.add(1);
    if (times == 1) report_swallowed(f, *reason_);  // once is enough
  }
  if (times < 2) ++times;
  cancelled made = make_exception(f.scope);
  if (own && cause_ != nullptr) {
    try {
      if (carried_ == nullptr) carried_ = std::make_shared<carried_failure>(cause_);
    } catch (const std::bad_alloc&) {  // the nursery will report it, perhaps in vain
    }
    made.carried_ = carried_;
  }
  throw made;
}

void cancel_scope::check_below(const cancel_scope& limit) {
  fiber& f = self();
  if (cancel_scope* const cut = deliverable(f, &limit)) cut->deliver_to(f);
}

namespace {

// False: the fiber has looked, and is not cancelled.
bool cancelled_at(fiber& f, std::uint64_t epoch) noexcept {
  if (cancel_scope::effective(f.scope, epoch) != nullptr) return true;
  f.seen_epoch.set(epoch);
  if (f.word.load().has(word_view::cancel_seen)) f.word.set_cancel_seen(false);
  return false;
}

}  // namespace

bool cancellation_awaits(fiber& f, std::uint64_t epoch) noexcept {
  return cancelled_at(f, epoch) && cancel_scope::deliverable(f) != nullptr;
}

void look_at_scopes(fiber& f, std::uint64_t epoch) {
  if (!cancelled_at(f, epoch)) return;
  if (cancel_scope* const scope = cancel_scope::deliverable(f)) scope->deliver_to(f);
}

}  // namespace ramie::detail
