// SPDX-License-Identifier: BSL-1.0
// How many fibers of a nursery live, and the join that waits until none does.
//
// The count is split. `local` is the owner's alone: what it has spawned, less what ended in place, above the
// owner's join; no other thread writes it. `shared` counts what descendants spawned and
// takes off what ended anywhere else. Only the sum means something; both may be negative.
//
//   shared = 2·count + joining
//
// A join that has to wait folds local into shared and sets `joining`; from then on shared alone is the truth,
// and the fiber that takes it to zero wakes the joiner. While `joining` is clear no fiber does: the last access of an
// ending fiber to the nursery is then its decrement, and the owner may go on as soon as it sees the sum zero.
//
//       owner                                   fiber that ends
//       1. fold, set joining     (RMW)          1. count - 1                (RMW)
//       2. zero? then done, else park           2. was it the last, and joining? wake the joiner
//
// Exactly one of the two sees the zero. A joiner that stops waiting (an inner scope was cancelled) clears
// `joining` again, and if it finds the count zero waits for the last fiber, which is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

class live_count final : public waitable {
 public:
  // The owner.
  void spawned_by_owner() noexcept { local_.add(1); }
  void ended_in_place() noexcept { local_.add(-1); }
  // Like ended_in_place. True: of what only the owner counts some is left.
  [[nodiscard]] bool ended_in_place_of_many() noexcept { return local_.add_is_positive(-1); }

  // A descendant, which is counted itself.
  void spawned_by_descendant() noexcept { shared_.fetch_add(2, std::memory_order_relaxed); }
  // Anywhere but above the owner's join. The nursery may be gone when this returns.
  void ended_elsewhere() noexcept {
    if (shared_.fetch_sub(2, std::memory_order_acq_rel) == 3) wake_joiner();
  }
  // A spawn that failed: the caller is counted itself, so it is never the last.
  void spawn_failed(bool by_owner) noexcept {
    if (by_owner) {
      local_.add(-1);
    } else {
      shared_.fetch_sub(2, std::memory_order_relaxed);
    }
  }

  // A snapshot; exact for the owner when it is zero. Acquire: what the ended fibers did is seen.
  [[nodiscard]] std::int64_t now() const noexcept {
    return plus_shared(local_.get());
  }
  // How many have ended elsewhere since the count was made, less those that descendants have spawned. Roughly.
  [[nodiscard]] std::int64_t more_ended_elsewhere() const noexcept {
    return folded_.get() - (shared_.load(std::memory_order_relaxed) >> 1);
  }

  // Whether a fiber may still live. Reads `shared`, which other threads write, only if `local` is not positive. Owner
  // only.
  [[nodiscard]] bool any() const noexcept {
    const auto mine = local_.get();
    return mine > 0 || plus_shared(mine) != 0;
  }

  // Whether more live of what only the owner counts than not. Owner only.
  [[nodiscard]] bool any_of_owner() const noexcept { return local_.get() > 0; }
  // Like !any(), without a look at how far the two counts make up for each other: true only if nobody lives. Owner only.
  [[nodiscard]] bool none() const noexcept { return local_.get() == 0 && plus_shared(0) == 0; }
  // Like any, when `local` is known not to be positive.
  [[nodiscard]] bool any_shared() const noexcept { return plus_shared(local_.get()) != 0; }

  // Joins. Owner only.
  bool try_complete(waiter&) override { return now() == 0; }
  bool publish(waiter& node) override {
    std::lock_guard hold(lock_);
    joiner_ = &node;
    const auto fold = 2 * local_.get() + 1;
    folded_.add(local_.get());
    local_.set(0);
    if (shared_.fetch_add(fold, std::memory_order_acq_rel) + fold != 1) return true;
    joiner_ = nullptr;
    shared_.store(0, std::memory_order_relaxed);
    return false;
  }
  void unpublish(waiter&) noexcept override {
    {
      std::lock_guard hold(lock_);
      joiner_ = nullptr;
      if (shared_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    }
    // The fiber that took the count to zero is about to take the lock (wake_joiner); it is done when that is free
    // again.
    for (platform::backoff turn; !waker_arrived_.load(std::memory_order_acquire);) turn.wait();
    std::lock_guard hold(lock_);
  }
  // After a wait that was completed.
  void reset() noexcept {
    local_.set(0);
    shared_.store(0, std::memory_order_relaxed);
    waker_arrived_.store(false, std::memory_order_relaxed);
  }

 private:
  void wake_joiner() noexcept {
    fiber* who = nullptr;
    {
      std::lock_guard hold(lock_);
      waker_arrived_.store(true, std::memory_order_release);
      if (joiner_ != nullptr && claim(*joiner_)) {
        joiner_->outcome = 1;
        who = joiner_->who;
      }
      joiner_ = nullptr;
    }
    if (who != nullptr) complete(*who);
  }

  [[nodiscard]] std::int64_t plus_shared(std::int64_t mine) const noexcept {
    return mine + (shared_.load(std::memory_order_acquire) >> 1);
  }

  platform::owned<std::int64_t> local_{0};
  platform::owned<std::int64_t> folded_{0};  // of `local_`, by all joins so far
  alignas(64) platform::atomic<std::int64_t> shared_{0};  // others write it: not in the owner's cache line
  platform::spin_lock lock_;
  platform::atomic<bool> waker_arrived_{false};  // the fiber that took the count to zero has taken the lock
  waiter* joiner_ = nullptr;
};

}  // namespace ramie::runtime_internal
