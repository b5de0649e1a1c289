// SPDX-License-Identifier: BSL-1.0
// The one door to sleep, and the contract of everything a fiber can sleep on.
//
// A waitable is three functions over a waiter node that lives on the waiting stack:
//
//   try_complete  the fast path: is the wait over without parking? May move data.
//   publish       make the node discoverable by wakers. False: no longer needed (the condition came true,
//                 or the object was closed); the node is then not in any list. After true, a wake is
//                 observable, and the node stays discoverable until it is claimed or unpublished.
//   unpublish     remove the node if it is still listed. Idempotent; takes the same lock as wakers do.
//
// A waker holds the waitable's lock, picks a node, and claims it. If it lost, the node is stale: drop it
// and take the next. If it won, the node is its own until complete(): move the element, write the
// outcome, unlink the node, release the lock, complete. Never complete under the lock.
//
// The outcome is in the node. A fiber that wakes without one was woken by cancellation or by accident;
// it unpublishes, asks again (try_complete: what is ready goes before a cancellation), looks at its scopes, and waits
// again.
#pragma once

#include <chrono>
#include <cstdint>
#include <ramie/source_location.hpp>

#include <ramie/platform/atomic.hpp>

namespace ramie::runtime_internal {

class fiber;

// Why a fiber waits: one static record per park site, never shared between sites.
struct wait_reason {
  const char* kind;
  source_location where = source_location::current();
};

// Few fields have a value before they are used: a wait that is over in nanoseconds should not write them twice.
struct waiter {
  waiter() noexcept {}        // NOLINT: leaves them alone
  fiber* who;                 // set by fiber_wait before publish
  std::uint64_t ticket;       // of this publication, likewise
  waiter *previous, *next;    // while listed
  bool listed = false;        // under the waitable's lock
  std::uint32_t outcome = 0;  // 0: none yet. Written by the claimer before complete.
};

// In a list that is kept in the order in which waiters first came: a waiter that was woken without an outcome is listed
// again in its old place (wait_list::add_in_order).
struct ordered_waiter : waiter {
  std::uint64_t place = 0;  // 0: not listed yet
};

// Of a waitable whose waiters wait for different things.
struct keyed_waiter : waiter {
  explicit keyed_waiter(const void* what) noexcept : key(what) {}
  const void* key;
};

class waitable {
 public:
  [[nodiscard]] virtual bool try_complete(waiter& self) = 0;
  [[nodiscard]] virtual bool publish(waiter& self) = 0;
  virtual void unpublish(waiter& self) noexcept = 0;

 protected:
  ~waitable() = default;
};

enum class wait_result : std::uint8_t {
  completed,  // by try_complete, or a partner claimed and completed the node
  refused,    // publish said no
  timed_out,  // the time has come; the node is in no list
  cancelled,  // only with cancellable::returns
};

// What a cancellation does to the wait: nothing, end it by throwing `cancelled`, or end it by returning.
enum class cancellable : std::uint8_t { no, throws, returns };

// Suspends the calling fiber, or blocks the calling plain thread, until `on` completes. A cancellation point unless
// `may_cancel` is `no`. Only for code that runs as a fiber or on a plain thread; inside the scheduler itself it is a
// fatal error.
wait_result fiber_wait(waitable& on, waiter& self, const wait_reason& why,
                       cancellable may_cancel = cancellable::throws);

// Like fiber_wait, but the caller has just called try_complete, which is called again only after a wake without an
// outcome.
wait_result fiber_wait_asked(waitable& on, waiter& self, const wait_reason& why);

// Like fiber_wait_asked, but for a wait that will probably be ended by the fiber that the caller spawned last: if the
// youngest entry of the ring has not started, it runs first (Q16).
wait_result fiber_wait_fresh_first(waitable& on, waiter& self, const wait_reason& why);

// Like fiber_wait, but no longer than until `deadline`, by the clock of the fiber's runtime (a plain thread's is the
// machine's); and an unstarted youngest entry runs first, as in fiber_wait_fresh_first. If the time has come already
// try_complete is still called once. Throws std::bad_alloc or std::system_error, with nothing published, if the
// deadline can't be kept. time_point::max() is never.
wait_result fiber_wait_until(waitable& on, waiter& self, const wait_reason& why,
                             std::chrono::steady_clock::time_point deadline);

// Like fiber_wait_until, but for a fiber that must end something before it unwinds: a cancellation ends the wait with
// wait_result::cancelled and is thrown at the next cancellation point. No fiber is preferred to run next. Not for plain
// threads.
wait_result fiber_wait_returning(waitable& on, waiter& self, const wait_reason& why,
                            std::chrono::steady_clock::time_point deadline);

// Wakers, with the waitable's lock held. True: the caller owns the waiter until complete().
[[nodiscard]] bool claim(waiter& node) noexcept;

// The winner of a claim, once, without any lock, not even another object's. In chaos mode the caller may yield
// here and come back on another worker: it must call current_context() again.
void complete(fiber& who) noexcept;

// Claimed waiters that are to be completed once the waitable's lock is released. Declare it before the guard of the
// lock: then it goes out of scope after the guard, and completes them in the order in which they were added.
class wake_batch {
 public:
  wake_batch() noexcept = default;
  ~wake_batch() { complete_all(); }
  wake_batch(const wake_batch&) = delete;
  wake_batch& operator=(const wake_batch&) = delete;

  // With the lock, by the code that has claimed the node. Writes no outcome: a fiber that is completed without one
  // waits again.
  void add(waiter& claimed) noexcept {
    claimed.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &claimed;
    last_ = &claimed;
  }
  void add(waiter& claimed, std::uint32_t outcome) noexcept {
    claimed.outcome = outcome;
    add(claimed);
  }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  // Without any lock. Idempotent.
  void complete_all() noexcept {
    while (first_ != nullptr) {
      waiter* const node = first_;
      first_ = node->next;
      complete(*node->who);  // the node is gone after this
    }
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;  // if there is a first
};

// A plain wake, for those with nothing to hand over. Any thread, with or without locks; a stale ticket
// is harmless. Value type; copies are free.
class waker {
 public:
  waker() noexcept = default;
  waker(fiber* who, std::uint64_t ticket) noexcept : who_(who), ticket_(ticket) {}
  explicit waker(const waiter& node) noexcept : waker(node.who, node.ticket) {}
  void wake() const noexcept;
  // It will be called soon.
  void prefetch() const noexcept { __builtin_prefetch(who_, 1); }

 private:
  fiber* who_ = nullptr;
  std::uint64_t ticket_ = 0;
};

// Waiters in the order they came. The waitable's lock protects it.
class wait_list {
 public:
  wait_list() noexcept = default;
  // One whose ends are kept elsewhere, where this class can't be seen, while nobody holds the lock.
  wait_list(waiter* first, waiter* last) noexcept : first_(first), last_(last) {}

  // Without the lock, a hint.
  [[nodiscard]] bool empty() const noexcept { return first_.get() == nullptr; }
  [[nodiscard]] waiter* first() const noexcept { return first_.get(); }
  [[nodiscard]] waiter* last() const noexcept { return last_; }
  void add(waiter& node) noexcept {
    node.previous = last_;
    node.next = nullptr;
    if (last_ != nullptr) {
      last_->next = &node;
    } else {
      first_.set(&node);
    }
    last_ = &node;
    node.listed = true;
  }
  // All nodes of the list are ordered_waiters. `places` counts those that have been given a place.
  void add_in_order(ordered_waiter& node, std::uint64_t& places) noexcept {
    if (node.place != 0) [[unlikely]]
      return add_again(node);
    node.place = ++places;
    add(node);
  }
  void remove(waiter& node) noexcept;  // does nothing if the node is not listed
  // The first waiter that can be claimed, unlisted and claimed; stale ones on the way are dropped.
  [[nodiscard]] waiter* claim_first() noexcept {
    while (waiter* const node = first_.get()) {
      if (claim_listed_first(*node)) [[likely]]
        return node;
    }
    return nullptr;
  }
  // `node` is the first. It is unlisted, whether it can be claimed or not.
  [[nodiscard]] bool claim_listed_first(waiter& node) noexcept {
    first_.set(node.next);
    (node.next != nullptr ? node.next->previous : last_) = nullptr;
    node.listed = false;
    return claim(node);
  }
  // All that fit and can be claimed, unlisted and claimed, with outcome 1.
  template <class Fits>
  void claim_if(Fits fits, wake_batch& wakes) noexcept {
    for (waiter *node = first_.get(), *after = nullptr; node != nullptr; node = after) {
      after = node->next;
      if (!fits(*node)) continue;
      remove(*node);
      if (claim(*node)) wakes.add(*node, 1);
    }
  }
  void claim_all(wake_batch& wakes) noexcept {
    while (waiter* const node = claim_first()) wakes.add(*node, 1);
  }

 private:
  void add_again(ordered_waiter& node) noexcept;

  platform::owned<waiter*> first_{nullptr};
  waiter* last_ = nullptr;
};

}  // namespace ramie::runtime_internal
