// SPDX-License-Identifier: BSL-1.0
#include <sched.h>

#include <exception>
#include <mutex>
#include <new>

#include <ramie/error.hpp>
#include <ramie/runtime/cancel_scope.hpp>

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

cancel_scope::cancel_scope(role as) : scheduler_(self().owner), parent_(self().scope), owner_(&self()), role_(as) {
  if (owner_->is_proxy() && role_ != role::shield) {
    throw usage_error("ramie: a cancel scope outside a fiber. Open it inside run().");
  }
  owner_->scope = this;
}

cancel_scope::cancel_scope(scheduler& of) noexcept
    : scheduler_(&of), parent_(nullptr), owner_(nullptr), role_(role::ordinary) {}

cancel_scope::~cancel_scope() {
  if (owner_ == nullptr) return;
  if (owner_->scope != this || &self() != owner_) {
    platform::fatal("a cancel scope of fiber #%u was not destroyed in the block and fiber that made it.",
                    owner_->number);
  }
  owner_->scope = parent_;
  if (requested_.load(std::memory_order_relaxed)) owner_->cancel_delivered = false;
  if (linked_.load(std::memory_order_relaxed)) {
    std::lock_guard hold(parent_->lock_);
    scope_list::remove(*this);
  }
  while (pins_.load(std::memory_order_acquire) != 0) ::sched_yield();  // a sweep is looking at us
}

cancel_scope* cancel_scope::effective(cancel_scope* from, std::uint64_t epoch) noexcept {
  cancel_scope* outermost = nullptr;
  cancel_scope* s = from;
  for (; s != nullptr && s->role_ != role::shield; s = s->parent_) {
    if (s->clean_at_.load(std::memory_order_acquire) == epoch) break;  // all clean from here up
    if (s->cancel_requested()) outermost = s;
  }
  if (outermost != nullptr) return outermost;
  for (cancel_scope* c = from; c != s; c = c->parent_) c->clean_at_.store(epoch, std::memory_order_release);
  return nullptr;
}

bool cancel_scope::cancel(cancel_reason reason) noexcept {
  std::shared_ptr<const cancel_reason> shared;
  try {
    shared = std::make_shared<const cancel_reason>(std::move(reason));
  } catch (const std::bad_alloc&) {
    shared = scheduler_->unexplained;
  }
  // The owner may wake, unwind and destroy this scope while we still sweep: it waits for the pin.
  pins_.fetch_add(1, std::memory_order_relaxed);
  const bool first = cancel_once(std::move(shared));
  pins_.fetch_sub(1, std::memory_order_release);
  return first;
}

bool cancel_scope::cancel_once(std::shared_ptr<const cancel_reason> shared) noexcept {
  std::lock_guard one_at_a_time(scheduler_->cancel_mutex);
  if (requested_.load(std::memory_order_relaxed)) return false;
  reason_ = std::move(shared);
  requested_.store(true, std::memory_order_release);                 // 1
  scheduler_->cancel_epoch.fetch_add(1, std::memory_order_seq_cst);  // 2
  std::atomic_thread_fence(std::memory_order_seq_cst);
  sweep();  // 3
  return true;
}

void cancel_scope::sweep() noexcept {
  if (owner_ != nullptr) wake_for_cancel(*owner_);
  sweep_next_ = nullptr;
  for (cancel_scope *s = this, *more = nullptr; s != nullptr; s = more) {
    more = s->sweep_next_;
    {
      std::lock_guard hold(s->lock_);
      for (scope_link* l = s->fibers_.first(); l != s->fibers_.end(); l = l->next) wake_for_cancel(fiber::of_link(*l));
      for (scope_link* l = s->scopes_.first(); l != s->scopes_.end(); l = l->next) {
        auto& child = static_cast<cancel_scope&>(*l);
        if (child.role_ == role::shield) continue;
        child.pins_.fetch_add(1, std::memory_order_relaxed);
        child.sweep_next_ = more;
        more = &child;
      }
    }
    if (s != this) s->pins_.fetch_sub(1, std::memory_order_release);  // pairs with the destructor's wait
  }
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
  if (reached(*this) || linked_.load(std::memory_order_acquire)) return;
  std::lock_guard one_at_a_time(scheduler_->link_mutex);
  cancel_scope* top = nullptr;  // the highest that is not linked; link_below_ leads back down
  for (cancel_scope* s = this; !reached(*s) && !s->linked_.load(std::memory_order_relaxed); s = s->parent_) {
    s->link_below_ = top;
    top = s;
  }
  for (cancel_scope* s = top; s != nullptr; s = s->link_below_) {
    std::lock_guard hold(s->parent_->lock_);
    s->parent_->scopes_.add(*s);
    s->linked_.store(true, std::memory_order_release);
  }
}

void look_at_scopes(fiber& f, std::uint64_t epoch) {
  cancel_scope* const scope = cancel_scope::effective(f.scope, epoch);
  if (scope == nullptr) {
    f.seen_epoch.set(epoch);
    if (f.word.load().has(word_view::cancel_seen)) f.word.set_cancel_seen(false);
    return;
  }
  // A second exception during unwinding would end the program; the wait goes on as if shielded.
  if (std::uncaught_exceptions() != 0) return;
  f.word.set_cancel_seen(true);
  if (f.cancel_delivered) {
    if (worker* const w = this_worker()) w->count.cancel_redelivered.add(1);
  }
  f.cancel_delivered = true;
  throw cancelled(scope->reason(), scope);
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

using detail::cancel_scope;

const char* to_string(cancel_kind kind) noexcept {
  switch (kind) {
    case cancel_kind::requested: return "requested";
    case cancel_kind::deadline: return "deadline";
    case cancel_kind::sibling_failure: return "sibling failure";
    case cancel_kind::shutdown: return "shutdown";
    case cancel_kind::deadlock: return "deadlock";
  }
  return "unknown";
}

void check_cancelled() {
  if (detail::fiber* const f = detail::current_fiber()) {
    detail::throw_if_cancelled(*f, f->owner->cancel_epoch.load(std::memory_order_acquire));
  }
}

bool stop_requested() noexcept {
  detail::fiber* const f = detail::current_fiber();
  if (f == nullptr) return false;
  const auto epoch = f->owner->cancel_epoch.load(std::memory_order_acquire);
  return f->seen_epoch.get() != epoch && cancel_scope::effective(f->scope, epoch) != nullptr;
}

shield::shield() {
  static_assert(sizeof(cancel_scope) <= sizeof scope_, "shield::scope_ holds a cancel_scope");
  new (scope_) cancel_scope(cancel_scope::role::shield);
  detail::fiber& f = detail::self();
  f.word.mirror_shield(++f.shield_depth);
  f.seen_epoch.set(~std::uint64_t{0});  // what is effective has changed: look again
}

shield::~shield() {
  detail::fiber& f = detail::self();
  f.word.mirror_shield(--f.shield_depth);
  f.seen_epoch.set(~std::uint64_t{0});
  std::launder(reinterpret_cast<cancel_scope*>(scope_))->~cancel_scope();
}

}  // namespace ramie::inline v0
