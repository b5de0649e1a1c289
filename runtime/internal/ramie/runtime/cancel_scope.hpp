// SPDX-License-Identifier: BSL-1.0
// Cancel scopes: the chain a fiber is cancelled through, and the tree a cancellation travels down.
//
// Every fiber has an innermost scope; scopes point to their parents. A fiber is cancelled if a scope on
// its chain was, below the nearest shield. A shield is a scope too: the walk up and the sweep down both
// stop there, so inner scopes still work under it and children of a nursery opened under it are not
// reached from outside.
//
// Nobody is marked while it runs. A cancellation bumps the runtime's epoch; a fiber compares the epoch
// it last looked at (at cancellation points, at its start, and when its park is committed) and walks
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
// Locks: a sweep holds the runtime's cancel mutex, then one scope's lock at a time. Child scopes found
// on the way are pinned under the parent's lock and a dying scope waits for its pins.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <ramie/source_location.hpp>

#include <ramie/cancel.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace ramie::detail {

class scheduler;

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

class cancel_scope : private scope_link {
 public:
  enum class role : std::uint8_t { ordinary, shield };

  // A scope of the calling fiber, innermost until it is destroyed. Scopes of one fiber nest. Throws
  // usage_error on a plain thread, except for a shield, which has nothing to shield there.
  explicit cancel_scope(role as = role::ordinary);
  // The scope above all fibers of a runtime: no parent, no owner.
  explicit cancel_scope(scheduler& of) noexcept;
  ~cancel_scope();
  cancel_scope(const cancel_scope&) = delete;
  cancel_scope& operator=(const cancel_scope&) = delete;

  // Any thread that knows the scope is alive. The first reason stands; later ones change nothing.
  // Returns whether this call was the first.
  bool cancel(cancel_reason reason) noexcept;

  [[nodiscard]] bool cancel_requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  [[nodiscard]] cancel_scope* parent() const noexcept { return parent_; }
  [[nodiscard]] scheduler& owner_scheduler() const noexcept { return *scheduler_; }
  // Valid once cancel_requested() is true.
  [[nodiscard]] const std::shared_ptr<const cancel_reason>& reason() const noexcept { return reason_; }

  // The outermost cancelled scope that `from` can see, or null. `epoch` was read before the call.
  [[nodiscard]] static cancel_scope* effective(cancel_scope* from, std::uint64_t epoch) noexcept;

  // A fiber spawned into this scope is about to park for the first time, or has ended after parking.
  void link_fiber(fiber& f) noexcept;
  void unlink_fiber(fiber& f) noexcept;

 private:
  friend class scope_list;
  void link_into_parents() noexcept;
  bool cancel_once(std::shared_ptr<const cancel_reason> shared) noexcept;
  void sweep() noexcept;

  scheduler* const scheduler_;
  cancel_scope* const parent_;
  fiber* const owner_;
  const role role_;
  std::atomic<bool> requested_{false};
  std::atomic<bool> linked_{false};
  std::atomic<std::uint32_t> pins_{0};
  std::atomic<std::uint64_t> clean_at_{~std::uint64_t{0}};  // epoch at which the chain from here up was clean
  cancel_scope* sweep_next_ = nullptr;                      // worklist of the one sweep at a time
  cancel_scope* link_below_ = nullptr;                      // worklist of the one linker at a time
  platform::spin_lock lock_;
  scope_list fibers_;
  scope_list scopes_;
  std::shared_ptr<const cancel_reason> reason_;
};

}  // namespace ramie::detail
