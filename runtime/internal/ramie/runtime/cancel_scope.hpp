// SPDX-License-Identifier: BSL-1.0
// Cancel scopes: the chain a fiber is cancelled through, and the tree a cancellation travels down.
//
// Every fiber has an innermost scope; scopes point to their parents. A fiber is cancelled if a scope on
// its chain was, below the nearest shield. A shield is a scope too: the walk up and the sweep down both
// stop there, so inner scopes still work under it and children of a nursery opened under it are not
// reached from outside.
//
// A fiber that unwinds with an exception would end the program if it were interrupted by a second one that leaves a
// destructor. So a cancellation is delivered to it only if that can't happen: every scope knows how many exceptions of
// its owner were in flight when it was opened, and is delivered only while there are not more. A scope opened inside
// the destructor cancels what is inside it; one from before waits, as behind a shield, until the unwinding has ended.
// For scopes of other fibers, which are around all of its own code, that number is 0.
// A scope opened in such a destructor is therefore a barrier like a shield, for the children of a nursery as for its
// owner: else a cancellation from before would end the children, and an owner that waits for one of them would wait for
// ever.
//
// A scope is known by its address to those who are inside it. Exceptions outlive it: they bear the number that it gets
// when it is cancelled, and that no other cancellation in the process ever has.
//
// One fiber alone (task::cancel). Between a fiber's own scopes and its home there may be one more scope, its *own
// scope*, made by whoever cancels that fiber. It is on no chain of parents: whoever walks up from the fiber, or from a
// scope that the fiber has opened, comes by it where the walk leaves the fiber (seen_above), and a sweep from it visits
// the fiber and the scopes of its home that the fiber has opened. The fiber's owner (the nursery) makes it, and sees to
// it that the fiber's frame is there while it is used: it is pinned before the fiber can have ended, and the fiber's
// end waits for the pins (leave_fiber). A fiber that has not started may have no frame yet: whoever gives it one tells
// the owner, which aims the scope at it, before the fiber compares epochs for the first time (runner::give_frame).
//
// Nobody is marked while it runs. A cancellation bumps the runtime's epoch; a fiber compares the epoch
// of its last check (at cancellation points, at its start, and when its park is committed) and walks
// its chain only when it differs.
//
// Only fibers that have parked need to be found: a fiber links itself into the scope it was spawned into
// before its first park, and that scope links itself into its parent, and so on. Fibers and scopes
// that never park anything pay nothing.
//
//       canceller                              parker
//       1. scope.requested = true              1. link itself (under the scope's lock)
//       2. epoch + 1            (RMW)          2. commit PARKED            (RMW)
//       3. sweep: wake what is PARKED          3. load epoch: if it moved since the last look,
//          or PARKING                             wake itself; it then looks at its chain
//
// Either the sweep finds the fiber parked, or the parker sees the new epoch.
//
// Locks: a sweep holds the lock of sweeps (cancel/domain.hpp), then one scope's lock at a time. Child scopes found
// on the way are pinned under the parent's lock and a dying scope waits for its pins. A std::stop_source that a
// scope carries is asked to stop after the sweep, without any lock: its callbacks are the user's.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <ramie/source_location.hpp>
#include <stop_token>
#include <string>

#include <ramie/cancel.hpp>
#include <ramie/detail/fiber_ops.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/current.hpp>

namespace ramie::runtime_internal {

class scheduler;

// A failure on its way out of the nursery that it has cancelled: shared by the `cancelled` that was thrown at the owner
// and by the nursery, until that ends. From then on it belongs to the exception and its copies, and is reported
// when the last of them is gone and nobody has received it. So it does not matter which exception unwinds the owner,
// nor whether one is kept for later (decision 16).
class carried_failure {
 public:
  explicit carried_failure(std::exception_ptr what) noexcept : what_(std::move(what)) {}
  ~carried_failure();
  carried_failure(const carried_failure&) = delete;
  carried_failure& operator=(const carried_failure&) = delete;

  // Anybody who has it.
  void receive() noexcept { received_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool received() const noexcept { return received_.load(std::memory_order_relaxed); }
  // The nursery, once, before it lets go of it. `who` as from describe().
  void report_if_dropped(std::string who) noexcept {
    who_ = std::move(who);
    report_if_dropped_ = true;
  }

 private:
  const std::exception_ptr what_;
  std::string who_;
  bool report_if_dropped_ = false;
  platform::atomic<bool> received_{false};
};

struct scope_link {
  scope_link* previous = nullptr;
  scope_link* next = nullptr;
};

// A circular list with a sentinel; the owner's lock protects it.
class scope_list {
 public:
  scope_list() noexcept { ends_.previous = ends_.next = &ends_; }
  void add(scope_link& link) noexcept;
  static void remove(scope_link& link) noexcept;
  [[nodiscard]] scope_link* first() noexcept { return ends_.next; }
  [[nodiscard]] const scope_link* end() const noexcept { return &ends_; }

 private:
  scope_link ends_;
};

class cancel_scope : public with_lives, private scope_link {
 public:
  enum class role : std::uint8_t { ordinary, shield, own };

  // A scope of the calling fiber, innermost until it is destroyed. Scopes of one fiber nest. Throws
  // usage_error on a plain thread, with the public function that opens it, except for a shield, which has nothing to
  // shield there.
  explicit cancel_scope(role as = role::ordinary, source_location site = source_location::current(),
                        const char* function = "with_deadline");
  // The scope above all fibers of a runtime: no parent, no owner.
  explicit cancel_scope(scheduler& of) noexcept;
  // A scope that is not open, for those who use one many times, and have it forget how it ended before they open it
  // again. open: `at` is a fiber's.
  struct unopened {};
  explicit cancel_scope(unopened) noexcept {}
  void open(const call_context& at, source_location site) noexcept {
    scheduler_ = at.local->runs_in;
    open_again(*at.local, *at.self, site);
  }
  // Like open, for a scope that was open in the same runtime before, or of which belongs_to has said so.
  void open_again(const worker_local& here, fiber& self, source_location site) noexcept {
    cancel_scope*& innermost = head_of(self).scope;
    cancel_scope* const parent = innermost;
    parent_ = parent;
    owner_.set(&self);
    in_flight_ = static_cast<std::uint32_t>(*here.in_flight.get());
    site_ = site;
    innermost = this;
  }
  void belongs_to(scheduler& of) noexcept { scheduler_ = &of; }
  // The own scope of a fiber of `home`, which can't end before this is pinned, and may have no frame yet.
  struct of_fiber {};
  cancel_scope(of_fiber, cancel_scope& home, source_location spawned_at) noexcept;
  // The fiber has a frame: from here on a cancellation of its own scope reaches it. Idempotent; one at a time.
  void aim_at(fiber& f) noexcept;
  // The fiber has ended, and nobody pins it again: waits for those who do. As the scheduler; idempotent.
  void leave_fiber() noexcept;
  // The owner, when the scope is its innermost; fatal otherwise. Idempotent. Whether and why it was cancelled can be
  // asked until it is opened again.
  void close() noexcept;
  // Whether close() would have nothing to undo: not linked, not pinned, not marked clean; and the owner's end of the scope
  // has nothing to look after (need_a_look).
  [[nodiscard]] bool untouched() const noexcept { return holds_.load(std::memory_order_acquire) == 0; }
  // Owner, when no fiber is inside: drops the cached result of an earlier walk (clean_at_).
  void forget_clean_mark() noexcept;
  // close() when untouched() is true: the scope is the owner's innermost, and was not cancelled.
  void close_untouched(fiber_head& owner) noexcept {
    owner.scope = parent_;
    owner_.set(nullptr);
  }
  // Whoever has made this a part of something: untouched() is false until that is taken back. Any thread that knows the
  // scope is open.
  void need_a_look() noexcept { holds_.fetch_or(to_look_at, std::memory_order_relaxed); }
  void need_no_look() noexcept { holds_.fetch_and(~to_look_at, std::memory_order_relaxed); }
  // The owner, while inner scopes are still open: nothing in it can be cancelled by it any more.
  void end_early() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return owner_.get() != nullptr; }
  // Whose innermost scope it is, or was when it opened others; null if it is closed.
  [[nodiscard]] fiber* owner() const noexcept { return owner_.get(); }
  ~cancel_scope() { close(); }
  cancel_scope(const cancel_scope&) = delete;
  cancel_scope& operator=(const cancel_scope&) = delete;

  // Any thread that knows the scope is open. The first reason stands; later ones change nothing.
  // Returns whether this call was the first. `cause`: the failure behind it, or null.
  bool cancel(cancel_reason reason, std::exception_ptr cause = nullptr) noexcept {
    pin();
    return cancel_and_unpin(std::move(reason), std::move(cause));
  }
  // In two steps, for who knows that it is open only now: it is not closed before the second one. Callbacks of stop
  // tokens are called without the pin: they may wait for the owner.
  void pin() noexcept { holds_.fetch_add(1, std::memory_order_relaxed); }
  bool cancel_and_unpin(cancel_reason reason, std::exception_ptr cause = nullptr) noexcept;

  // The owner: `source` is asked to stop when this scope, or one it is inside of, is cancelled. It must stay
  // where it is until the scope is closed.
  void carry(std::stop_source& source) noexcept;

  [[nodiscard]] bool cancel_requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  [[nodiscard]] cancel_scope* parent() const noexcept { return parent_; }
  [[nodiscard]] source_location site() const noexcept { return site_; }
  [[nodiscard]] scheduler& owner_scheduler() const noexcept { return *scheduler_; }
  // Valid once cancel_requested() is true.
  [[nodiscard]] const std::shared_ptr<const cancel_reason>& reason() const noexcept { return reason_; }
  // The failure behind it, or null; also when there was no memory for the reason.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

  // Whether this scope is `other` or was opened somewhere inside it, and not too many scopes are in between: who asks can
  // do without. Both must be open.
  [[nodiscard]] bool inside(const cancel_scope& other) const noexcept {
    const cancel_scope* s = this;
    for (int most = 256; s != &other && s != nullptr && most != 0; --most) s = s->parent_;
    return s == &other;
  }

  // Whether `c` was thrown because this scope was cancelled. Open, or not yet opened again.
  [[nodiscard]] bool owns(const cancelled& c) const noexcept { return cancel_requested() && c.number() == number_; }
  // Whether `c` is the cancellation of a scope that `f` is in, below the nearest barrier.
  [[nodiscard]] static bool explains(const fiber& f, const cancelled& c) noexcept;

  // The outermost cancelled scope that `f` can see, or null. `epoch` was read before the call.
  [[nodiscard]] static cancel_scope* effective(const fiber& f, std::uint64_t epoch) noexcept {
    return effective(first_seen(f), epoch);
  }
  // The scope whose cancellation is to be thrown at `f`, the caller, now: the outermost cancelled one that was opened
  // with no fewer exceptions in flight than there are. From its innermost scope up to, not including, `limit`.
  [[nodiscard]] static cancel_scope* deliverable(const fiber& f, const cancel_scope* limit = nullptr) noexcept;
  // Throws it. The caller is `f`.
  [[noreturn]] void deliver_to(fiber& f);
  // The calling fiber, somewhere inside `limit`: a cancellation point for scopes opened since.
  static void check_below(const cancel_scope& limit);

  // A fiber spawned into this scope is about to park for the first time, or has ended after parking.
  void link_fiber(fiber& f) noexcept;
  void unlink_fiber(fiber& f) noexcept;

  // The `cancelled` that ended a fiber whose home is this scope, which is no shield and may be closed by now: by the
  // outermost cancelled scope it could see. `own`: the fiber's own scope, or null. `opener`: who opened this one and
  // has not ended, or null: the scope above all fibers.
  [[nodiscard]] cancelled ending(const cancel_scope* own, const fiber* opener) const noexcept;

  // Owner only: the failure behind the `cancelled` that was thrown at it, if any; once.
  [[nodiscard]] std::shared_ptr<carried_failure> take_carried() noexcept { return std::move(carried_); }

  // Of a closed scope: whether and why it was cancelled.
  void forget_reason() noexcept;

 private:
  friend class scope_list;
  // Whether what is inside can't see what is above. A shield is not inside of itself.
  [[nodiscard]] bool is_barrier() const noexcept {
    return role_ == role::shield || opened_while_unwinding(owner_.get());
  }
  // `owner`: the scope's, also when it is closed and has forgotten that.
  [[nodiscard]] bool opened_while_unwinding(const fiber* owner) const noexcept {
    if (in_flight_ == 0) return false;
    return parent_->owner_.get() != owner || in_flight_ > parent_->in_flight_;
  }
  // The scopes that a fiber can see: first_seen(f), then seen_above() of each, until null.
  [[nodiscard]] static cancel_scope* first_seen(const fiber& f) noexcept;
  template <class Scope>
  [[nodiscard]] static Scope* seen(Scope* s) noexcept {
    return s != nullptr && s->role_ != role::shield ? s : nullptr;
  }
  [[nodiscard]] cancel_scope* seen_above() const noexcept { return seen_above(owner_.get()); }
  [[nodiscard]] cancel_scope* seen_above(const fiber* owner) const noexcept;
  [[nodiscard]] static cancel_scope* effective(cancel_scope* first, std::uint64_t epoch) noexcept;
  [[nodiscard]] bool cancels() const noexcept { return cancel_requested() && !over_.load(std::memory_order_relaxed); }
  void link_into_parents() noexcept;
  [[nodiscard]] bool has(std::uint32_t mark) const noexcept {
    return (holds_.load(std::memory_order_acquire) & mark) != 0;
  }
  void unpin() noexcept { holds_.fetch_sub(1, std::memory_order_release); }  // pairs with close()
  [[nodiscard]] cancelled make_exception(const cancel_scope* from) const noexcept;
  bool cancel_once(std::shared_ptr<const cancel_reason> shared, std::exception_ptr cause,
                   cancel_scope*& to_stop) noexcept;
  void sweep(cancel_scope*& to_stop) noexcept;
  void sweep_one(cancel_scope*& more) noexcept;
  static void stop_all(cancel_scope* first) noexcept;

  scheduler* scheduler_ = nullptr;
  cancel_scope* parent_ = nullptr;
  // Null once it is closed. Whoever asks why a task ended reads it, perhaps while the owner closes the scope.
  platform::owned<fiber*> owner_{nullptr};
  role role_ = role::ordinary;
  platform::atomic<bool> requested_{false};
  platform::atomic<bool> over_{false};  // end_early
  std::uint8_t owner_deliveries_ = 0;   // times its cancellation was thrown at the owner, up to 2
  std::uint32_t in_flight_ = 0;  // exceptions of the owner, when it was opened
  // What is to be undone or waited for when it is closed, in one word: who is looking at it, and the two marks.
  static constexpr std::uint32_t linked = 1u << 31;  // in the parent's list
  static constexpr std::uint32_t marked_clean = 1u << 30;  // clean_at_ has been set
  static constexpr std::uint32_t to_look_at = 1u << 29;
  static constexpr std::uint32_t pins = to_look_at - 1;
  platform::atomic<std::uint32_t> holds_{0};
  platform::spin_lock lock_;
  platform::atomic<std::uint64_t> clean_at_{~std::uint64_t{0}};  // epoch at which the chain from here up was clean
  cancel_scope* sweep_next_ = nullptr;                           // worklist of the one sweep at a time
  cancel_scope* link_below_ = nullptr;                           // worklist of the one linker at a time
  std::stop_source* stop_ = nullptr;                             // under the lock of sweeps
  std::stop_source* stop_taken_ = nullptr;                       // by the sweep that pins us, and its worklist
  cancel_scope* stop_next_ = nullptr;
  scope_list fibers_;
  scope_list scopes_;
  std::uint64_t number_ = 0;  // of its cancellation
  std::shared_ptr<const cancel_reason> reason_;
  std::exception_ptr cause_;
  std::shared_ptr<carried_failure> carried_;  // the owner's
  source_location site_;
};

// In a catch block: what the exception counts as when it leaves `f`. Null: the fiber was cancelled, that is all. A
// `cancelled` of a scope that it is not in is a failure: the one behind it, or itself.
[[nodiscard]] std::exception_ptr current_failure(fiber& f) noexcept;

}  // namespace ramie::runtime_internal
