// SPDX-License-Identifier: BSL-1.0
// Cancel scopes: opening and closing, the walk up that finds a cancellation, the sweep down that wakes for it.
#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <string>
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

namespace ramie::runtime_internal {

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

cancel_scope::cancel_scope(role as, source_location site, const char* function) : role_(as) {
  const call_context at = current_context();
  if (at.self == nullptr) {
    fiber& proxy = self();  // fatal in the scheduler's own code
    if (role_ != role::shield) {
      throw usage_error(std::string("ramie: ") + function + ": called outside a fiber. Call it inside run().");
    }
    owner_.set(&proxy);
    parent_ = proxy.scope;
    proxy.scope = this;
    return;
  }
  open(at, site);
}

cancel_scope::cancel_scope(scheduler& of) noexcept : scheduler_(&of) {}

cancel_scope::cancel_scope(of_fiber, cancel_scope& home, source_location spawned_at) noexcept
    : scheduler_(home.scheduler_), parent_(&home), role_(role::own), site_(spawned_at) {}

void cancel_scope::aim_at(fiber& f) noexcept {
  if (owner_.get() != nullptr) return;
  site_ = f.site.get();
  owner_.set(&f);
  f.set_own_scope(this);
}

void cancel_scope::leave_fiber() noexcept {
  if (owner_.get() == nullptr) return;
  while (has(pins)) spin_yield();  // somebody cancels it
  owner_.get()->set_own_scope(nullptr);
  owner_.set(nullptr);
}

cancel_scope* cancel_scope::first_seen(const fiber& f) noexcept {
  if (f.scope == f.home) {
    if (cancel_scope* const own = f.own_scope()) return own;
  }
  return seen(f.scope);
}

// A scope whose parent is another fiber's is the outermost of its owner's: there the walk leaves the owner.
cancel_scope* cancel_scope::seen_above(const fiber* owner) const noexcept {
  if (opened_while_unwinding(owner)) return nullptr;
  if (owner != nullptr && parent_ != nullptr && parent_->owner_.get() != owner && role_ != role::own) {
    if (cancel_scope* const own = owner->own_scope()) return own;
  }
  return seen(parent_);
}

void cancel_scope::close() noexcept {
  fiber* const owner = owner_.get();
  if (owner == nullptr) return;
  if (owner->scope != this || &self() != owner) {
    platform::fatal("a cancel scope of %s was not closed in the block and fiber that opened it.",
                    describe(*owner).c_str());
  }
  owner->scope = parent_;
  if (has(linked)) {
    std::lock_guard hold(parent_->lock_);
    scope_list::remove(*this);
    holds_.fetch_and(~linked, std::memory_order_relaxed);
  }
  while (has(pins)) spin_yield();  // a sweep is looking at us
  forget_clean_mark();
  stop_ = nullptr;  // no sweep can find us any more
  owner_.set(nullptr);
}

void cancel_scope::forget_clean_mark() noexcept {
  if (!has(marked_clean)) return;
  clean_at_.store(~std::uint64_t{0}, std::memory_order_relaxed);
  holds_.fetch_and(~marked_clean, std::memory_order_relaxed);
  // It may have been a barrier: its owner looks again.
  if (in_flight_ != 0) owner_.get()->seen_epoch.set(~std::uint64_t{0});
}

void cancel_scope::end_early() noexcept {
  over_.store(true, std::memory_order_relaxed);
}

void cancel_scope::forget_reason() noexcept {
  requested_.store(false, std::memory_order_relaxed);
  over_.store(false, std::memory_order_relaxed);
  owner_deliveries_ = 0;
  reason_.reset();
  cause_ = nullptr;
  carried_.reset();
}

cancel_scope* cancel_scope::effective(cancel_scope* first, std::uint64_t epoch) noexcept {
  cancel_scope* outermost = nullptr;
  cancel_scope* s = first;
  for (; s != nullptr; s = s->seen_above()) {
    if (s->clean_at_.load(std::memory_order_acquire) == epoch) break;  // all clean from here up
    if (s->cancels()) outermost = s;
  }
  if (outermost != nullptr) return outermost;
  for (cancel_scope* c = first; c != s; c = c->seen_above()) {
    if (!c->has(marked_clean)) c->holds_.fetch_or(marked_clean, std::memory_order_relaxed);
    c->clean_at_.store(epoch, std::memory_order_release);
  }
  return nullptr;
}

cancel_scope* cancel_scope::deliverable(const fiber& f, const cancel_scope* limit) noexcept {
  const auto in_flight = static_cast<unsigned>(std::uncaught_exceptions());
  cancel_scope* outermost = nullptr;
  for (cancel_scope* s = first_seen(f); s != limit && s != nullptr; s = s->seen_above()) {
    const unsigned at_its_opening = s->owner_.get() == &f ? s->in_flight_ : 0;
    if (s->cancels() && in_flight <= at_its_opening) outermost = s;
  }
  return outermost;
}

bool cancel_scope::explains(const fiber& f, const cancelled& c) noexcept {
  for (const cancel_scope* s = first_seen(f); s != nullptr; s = s->seen_above()) {
    if (s->owns(c)) return true;
  }
  return false;
}

bool cancel_scope::cancel_and_unpin(cancel_reason reason, std::exception_ptr cause) noexcept {
  std::shared_ptr<const cancel_reason> shared;
  try {
    shared = std::make_shared<const cancel_reason>(std::move(reason));
  } catch (const std::bad_alloc&) {
    shared = scheduler_->cancels.unexplained(reason.kind);
  }
  cancel_scope* to_stop = nullptr;
  const bool first = cancel_once(std::move(shared), std::move(cause), to_stop);
  unpin();  // the owner may have unwound: it waits for this
  stop_all(to_stop);
  return first;
}

bool cancel_scope::cancel_once(std::shared_ptr<const cancel_reason> shared, std::exception_ptr cause,
                               cancel_scope*& to_stop) noexcept {
  const auto one_at_a_time = scheduler_->cancels.lock_sweeps();
  if (requested_.load(std::memory_order_relaxed) || over_.load(std::memory_order_relaxed)) return false;
  static std::atomic<std::uint64_t> last_number{0};
  number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  reason_ = std::move(shared);
  cause_ = std::move(cause);
  requested_.store(true, std::memory_order_release);  // 1
  scheduler_->cancels.advance_epoch();                // 2
  platform::full_fence();
  sweep(to_stop);  // 3
  return true;
}

void cancel_scope::sweep(cancel_scope*& to_stop) noexcept {
  if (fiber* const owner = owner_.get()) wake_for_cancel(*owner);
  sweep_next_ = nullptr;
  for (cancel_scope *s = this, *more = nullptr; s != nullptr; s = more) {
    more = s->sweep_next_;
    if (s->stop_ != nullptr) {  // taken once: from here on the links are this sweep's own
      s->pin();
      s->stop_taken_ = std::exchange(s->stop_, nullptr);
      s->stop_next_ = to_stop;
      to_stop = s;
    }
    s->sweep_one(more);
    if (s != this) s->unpin();
  }
}

// Wakes the fibers of the scope; pins the scopes in it and adds them to the worklist. An own scope has the scopes in
// its fiber's home that are that fiber's.
void cancel_scope::sweep_one(cancel_scope*& more) noexcept {
  const bool own = role_ == role::own;
  cancel_scope& in = own ? *parent_ : *this;
  std::lock_guard hold(in.lock_);
  for (scope_link* l = fibers_.first(); l != fibers_.end(); l = l->next) wake_for_cancel(fiber::of_link(*l));
  for (scope_link* l = in.scopes_.first(); l != in.scopes_.end(); l = l->next) {
    auto& child = static_cast<cancel_scope&>(*l);
    if (child.is_barrier()) continue;
    if (own && child.owner_.get() != owner_.get()) continue;
    child.pin();
    child.sweep_next_ = more;
    more = &child;
  }
}

// The callbacks may do anything, even wait for the end of one of the scopes: so all scopes are unpinned first. If there
// is no memory for that, each is unpinned before its own callback.
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
    const auto no_sweep = scheduler_->cancels.lock_sweeps();
    if (effective(seen(this), scheduler_->cancels.epoch().load(std::memory_order_relaxed)) == nullptr) {
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
  f.touched = true;
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
  const auto one_at_a_time = scheduler_->cancels.lock_links();
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
      const bool here = s == this || (role_ == role::own && s == parent_);
      path->push_back(here ? site_ : s->site_);
      if (here) break;
    }
    std::reverse(path->begin(), path->end());
    made.path_ = std::move(path);
  } catch (const std::bad_alloc&) {  // where it was cancelled is in the reason
  }
  return made;
}

cancelled cancel_scope::ending(const cancel_scope* own, const fiber* opener) const noexcept {
  const cancel_scope* outermost = own != nullptr && own->cancel_requested() ? own : nullptr;
  if (cancel_requested()) outermost = this;
  for (const cancel_scope* s = seen_above(opener); s != nullptr; s = s->seen_above()) {
    if (s->cancel_requested()) outermost = s;
  }
  if (outermost != nullptr) return outermost->make_exception(own != nullptr ? own : this);
  return {scheduler_->cancels.unexplained(cancel_kind::requested), 0, nullptr};
}

void cancel_scope::deliver_to(fiber& f) {
  const bool own = owner_.get() == &f;
  std::uint8_t& times = own ? owner_deliveries_ : f.cancel_delivered;
  if (times != 0) {
    if (worker* const w = this_worker()) w->count.cancel_redelivered.add(1);
    if (times == 1) report_swallowed(f, *reason_);  // once is enough
  }
  if (times < 2) ++times;
  f.touched = true;
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

// False: the fiber has checked its scopes, and is not cancelled.
bool cancelled_at(fiber& f, std::uint64_t epoch) noexcept {
  if (cancel_scope::effective(f, epoch) != nullptr) return true;
  f.seen_epoch.set(epoch);
  return false;
}

}  // namespace

bool cancellation_awaits(fiber& f, std::uint64_t epoch) noexcept {
  return cancelled_at(f, epoch) && cancel_scope::deliverable(f) != nullptr;
}

void throw_if_scope_cancelled(fiber& f, std::uint64_t epoch) {
  if (!cancelled_at(f, epoch)) return;
  if (cancel_scope* const scope = cancel_scope::deliverable(f)) scope->deliver_to(f);
}

}  // namespace ramie::runtime_internal
