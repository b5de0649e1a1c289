// SPDX-License-Identifier: BSL-1.0
// A spin lock that costs its habitual user no RMW. Where one thread takes it again and again, the lock is granted to
// that thread (the granted party); from then on it enters by plain stores, until another party revokes the grant.
//
//       granted party                          another party, holding the spin lock
//       1. inside[me] = true                   1. granted = nobody
//       2. free fence                          2. heavy fence
//       3. still granted to me? then in,       3. wait until not inside[former]
//          else inside[me] = false,
//          and the spin lock like others
//
// The other party asks before it revokes. A granted party that is asked gives the grant up by itself: at the end of its
// lease, or when it leaves and will probably not come back soon. It does so while it is still inside, because then no
// other party can have a grant that its store could end. No heavy fence is needed: the store that ends the grant is its
// own.
//
//       granted party, inside                  the party that asks, holding the spin lock
//       1. its work is done. asked?            1. asked = true
//          and the lease is over:              2. wait a little for granted == nobody    (acquire)
//          granted = nobody       (release)    3. wait until not inside[former]
//       2. inside[me] = false
//
// So two workers that use a lock in turns pass it to and fro, many uses at a time, for the price of a cache line: a
// party that got the lock that way is granted it at once.
//
// Mutual exclusion: a granted party that did not see the revocation in its step 3 was inside before the heavy fence,
// and is waited for; one that comes later sees the revocation. Grants are made and revoked only under the spin lock,
// and a holder of the spin lock has revoked, so a holder by grant and a holder by spin lock exclude each other.
//
// `inside` has a cell for each party that may ever be granted the lock, because a party may be delayed between its
// load of `granted` and step 1: it would then clear a cell that it shared with the next granted party. Hence a lock
// grants itself only to parties of one family (the workers of one runtime, the first that was granted it) with a small
// cell number; the others use it as the spin lock it is. The lock may outlive the party it is granted to, and another
// party may have its address: parties are told apart by an id that is never used again.
//
// Without asymmetric fences a grant would save nothing, and none is made.
//
// A revocation without consent costs a system call, as much as hundreds of RMWs. So a grant needs a run of acquisitions
// by one party, or some that had to wait for the lock. That run doubles with every such revocation and is halved when a
// granted party gives up its grant: a lock that many parties take, each rarely, ends up as a spin lock. Where there are
// thousands of locks and fibers move between workers, each lock would have to learn that by itself: so the family has
// an allowance of grants, which every revocation halves. A grant that was passed on by consent does not count.
#pragma once

#include <chrono>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/compiler.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace ramie::platform {

// Parties that share locks. Its counts are inexact when two parties use it at once: they only limit grants.
class lock_family {
 public:
  // Whether one more grant is allowed in this period. Counts it.
  [[nodiscard]] bool may_grant() noexcept;
  // One of its parties had to revoke a grant.
  void had_to_revoke() noexcept;
  // No grant is left: begins the next period if it is time. Returns whether there are grants now.
  [[nodiscard]] bool next_period(std::chrono::steady_clock::time_point now) noexcept;

  [[nodiscard]] std::uint32_t left() const noexcept { return left_.load(std::memory_order_relaxed); }

  static constexpr std::uint32_t most_grants = 128;  // in a period
  // A revocation takes some 20 µs of two workers' time: one in a period is affordable.
  static constexpr std::chrono::milliseconds period{1};

 private:
  atomic<std::uint32_t> rate_{most_grants};  // how many a period may have: doubles after one without a revocation
  atomic<std::uint32_t> left_{most_grants};  // in this one
  atomic<bool> peaceful_{true};
  atomic<std::chrono::steady_clock::time_point> period_ends_{std::chrono::steady_clock::time_point::min()};
};

// A party that takes locks: one thread at a time.
struct lock_user {
  lock_family* family = nullptr;
  std::uint32_t cell = 0;  // unique among the family's parties that exist
  std::uint64_t id = new_id();
  mutable std::int64_t waited_ns = 0;  // for locks that others were using; its own thread's

  [[nodiscard]] static std::uint64_t new_id() noexcept;  // never 0, never the same again
};

class biased_lock {
 public:
  // How the lock is held; unlock must be given what lock returned.
  enum class hold : bool { spin, grant };

  biased_lock() noexcept = default;
  biased_lock(const biased_lock&) = delete;
  biased_lock& operator=(const biased_lock&) = delete;

  // `me` null: a caller that is never granted the lock.
  [[nodiscard]] RAMIE_ALWAYS_INLINE hold lock(const lock_user* me) noexcept {
    if (me != nullptr && enter_granted(me)) [[likely]]
      return hold::grant;
    lock_spin(me);
    return hold::spin;
  }

  RAMIE_ALWAYS_INLINE void unlock(hold how, const lock_user* me) noexcept {
    if (how == hold::grant) [[likely]] {
      leave_granted(me);
    } else {
      if (run_ >= wanted_) [[unlikely]]
        grant(me);
      spin_.unlock();
    }
  }

  // Enters if the lock is granted to `me`; else returns false.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool enter_granted(const lock_user* me) noexcept {
    // Acquire, here and below: fibers of one thread follow each other; free on x86, and ThreadSanitizer sees it.
    if (granted_.load(std::memory_order_acquire) == me->id) [[likely]] {
      auto& cell = inside_[me->cell];
      if (cell.load(std::memory_order_acquire)) [[unlikely]]
        taken_twice();
      cell.store(true, std::memory_order_relaxed);                        // 1
      free_fence();                                                       // 2
      if (granted_.load(std::memory_order_relaxed) == me->id) [[likely]] {  // 3
        lock_taken();
        return true;
      }
      cell.store(false, std::memory_order_release);
    }
    return false;
  }
  RAMIE_ALWAYS_INLINE void leave_granted(const lock_user* me) noexcept {
    lock_left();
    if (asked_.load(std::memory_order_relaxed)) [[unlikely]]
      consider_letting_go();
    inside_[me->cell].store(false, std::memory_order_release);  // pairs with the acquire of the revoker
  }
  // The same for a party that will probably not come back soon.
  RAMIE_ALWAYS_INLINE void leave_granted_for_long(const lock_user* me) noexcept {
    lock_left();
    if (asked_.load(std::memory_order_relaxed)) [[unlikely]]
      let_go();
    inside_[me->cell].store(false, std::memory_order_release);
  }

  // Of a scope. `me` must still be the caller at the end: no switch inside.
  class guard {
   public:
    RAMIE_ALWAYS_INLINE guard(biased_lock& l, const lock_user* me) noexcept : lock_(l), me_(me), how_(l.lock(me)) {}
    RAMIE_ALWAYS_INLINE ~guard() { lock_.unlock(how_, me_); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

   private:
    biased_lock& lock_;
    const lock_user* const me_;
    const hold how_;
  };

#if defined(RAMIE_SMALL_SIZES)
  static constexpr std::uint32_t first_run = 2;
  static constexpr std::uint32_t lease = 1;
#else
  static constexpr std::uint32_t first_run = 64;
  static constexpr std::uint32_t lease = 128;  // uses, once it is asked
#endif
  static constexpr std::uint32_t longest_run = 1u << 20;
  static constexpr std::uint32_t contended_weight = first_run / 4 + 1;  // of an acquisition that had to wait, in a run
  static constexpr std::uint32_t cells = 8;

 private:
  void lock_spin(const lock_user* me) noexcept;
  [[nodiscard]] bool wait_for_others(const lock_user* me, bool contended) noexcept;
  void grant(const lock_user* me) noexcept;
  [[nodiscard]] bool ask() noexcept;
  void revoke(const lock_user* me) noexcept;
  // Inline, though rare: a call would cost the usual path registers.
  RAMIE_ALWAYS_INLINE void consider_letting_go() noexcept {
    if (lease_left_ == 0 || --lease_left_ == 0) let_go();
  }
  RAMIE_ALWAYS_INLINE void let_go() noexcept {
    granted_.store(0, std::memory_order_release);
  }  // pairs with ask
  [[noreturn]] static void taken_twice() noexcept;

  atomic<std::uint64_t> granted_{0};  // an id; 0: nobody
  atomic<bool> inside_[cells] = {};
  atomic<bool> asked_{false};
  std::uint32_t lease_left_ = 0;  // the granted party's, inside

  spin_lock spin_;
  // Under it:
  bool passed_on_ = false;            // by consent, to the party that holds it now
  std::uint32_t run_ = 0;             // acquisitions in a row by `last_`, or contended
  std::uint32_t wanted_ = first_run;  // of those for a grant
  std::uint32_t granted_cell_ = 0;    // the party itself may be gone when its grant is revoked
  std::uint64_t last_ = 0;
  const lock_family* family_ = nullptr;  // set by the first grant, for good
};

}  // namespace ramie::platform
