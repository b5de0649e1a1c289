// SPDX-License-Identifier: BSL-1.0
// Who sleeps, who searches, and who must be woken. One word of counts, so that a producer decides with
// a single load, and a bitmap to find a sleeper by counting trailing zeros.
//
//   counts: wake_count:16 (bits 48–63) | present:16 | parked:16 | full_fences:1 | monitor_asleep:1 | searching:14 (bits 0–13)
//
// `full_fences` is set for good where light fences are full ones: so that who has to signal can find out by this word alone
// that it needs one.
// `present` counts the workers there are, started or not: if all of them are parked, no fiber runs. `wake_count`
// changes whenever one of them stops sleeping, so that two equal snapshots mean that nobody ran in between
// (quiescence.cpp).
//
// Invariants
//   I1  A set bit in the bitmap is one worker that is counted as parked (or is about to look again).
//       Whoever clears it (a waker by claim_parked, or the sleeper by cancel_sleep) owns the
//       consequences; fetch_and decides, so nobody is counted out twice and no searcher leaks.
//   I2  A claimed worker is counted as searching from the claim on, before it has even woken up.
//   I3  No entry stays queued while every worker sleeps:
//
//       producer                               sleeper
//       1. publish the entry                   1. parked+1, searching-1; set the bit
//       2. light fence                         2. heavy fence
//       3. load counts: if nobody searches     3. look at every queue; if anything is there,
//          and somebody is parked, claim one      cancel_sleep and search again
//
//       If the producer misses the sleeper (3 before 1), the sleeper sees the entry. If it skips the
//       wake because somebody searches, that searcher either finds work (and, as the last one, looks
//       again and wakes the next: leave_search) or goes to sleep through the same list.
//
//       The last searcher's look is ordered like a sleeper's: searching-1, heavy fence, every queue. Unless all the
//       others are parked: no worker can have queued something and gone to sleep over it, so it was a thread outside
//       or nobody, and such threads order with a full fence (push_from_outside). Then one on this side will do, and
//       the fiber that was woken from outside does not wait for an interrupt of the thread that woke it.
//
// A worker that has not been started yet counts as parked: waking it means starting its thread.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fence.hpp>

namespace ramie::runtime_internal {

class idle_set {
 public:
  explicit idle_set(std::uint32_t capacity)
      : words_((capacity + 63) / 64),
        bitmap_(std::make_unique<platform::atomic<std::uint64_t>[]>(words_)),
        counts_(platform::asymmetric() ? 0 : full_fences) {}

  // One load for the producer's step 3.
  class snapshot {
   public:
    explicit snapshot(std::uint64_t counts) noexcept : counts_(counts) {}
    // Where light fences are free, nobody needs a signal; so the caller may have done without.
    [[nodiscard]] bool surely_nothing_to_do() const noexcept {
      return (static_cast<std::uint32_t>(counts_) & (parked_mask | monitor_bit | full_fences)) == 0;
    }
    [[nodiscard]] bool nothing_to_do() const noexcept {
      if ((counts_ & (parked_mask | monitor_bit)) == 0) [[likely]]  // everybody is up
        return true;
      return !should_wake() && !monitor_asleep();
    }
    [[nodiscard]] bool should_wake() const noexcept { return searching() == 0 && parked() != 0; }
    [[nodiscard]] bool monitor_asleep() const noexcept { return (counts_ & monitor_bit) != 0; }
    [[nodiscard]] std::uint32_t searching() const noexcept { return counts_ & 0x3fff; }
    [[nodiscard]] std::uint32_t parked() const noexcept { return (counts_ >> 16) & 0xffff; }
    [[nodiscard]] std::uint32_t awake() const noexcept { return ((counts_ >> 32) & 0xffff) - parked(); }
    [[nodiscard]] bool all_parked() const noexcept { return parked() == ((counts_ >> 32) & 0xffff); }
    [[nodiscard]] bool all_but_one_parked() const noexcept { return parked() + 1 == ((counts_ >> 32) & 0xffff); }
    [[nodiscard]] bool nobody_ran_since(snapshot earlier) const noexcept {
      return all_parked() && (counts_ >> 48) == (earlier.counts_ >> 48);
    }

   private:
    std::uint64_t counts_;
  };
  [[nodiscard]] snapshot load() const noexcept { return snapshot(counts_.load(std::memory_order_relaxed)); }

  // Like load(), but ordered: sees what parked workers did before they parked, and what the caller does next comes
  // after.
  [[nodiscard]] snapshot load_ordered() noexcept { return snapshot(counts_.fetch_add(0, std::memory_order_seq_cst)); }

  // A worker that is not there yet, or is gone. Neither is parked.
  void add_worker() noexcept { counts_.fetch_add(one_present, std::memory_order_seq_cst); }
  void remove_worker() noexcept { counts_.fetch_sub(one_present, std::memory_order_seq_cst); }

  // At most half of the workers search. Checked, then counted: the bound is a heuristic, not an invariant.
  [[nodiscard]] bool try_become_searcher(std::uint32_t workers) noexcept {
    if (2 * load().searching() >= workers) return false;
    counts_.fetch_add(one_searching, std::memory_order_seq_cst);
    return true;
  }

  // A worker that starts out searching.
  void add_searcher() noexcept { counts_.fetch_add(one_searching + one_present, std::memory_order_seq_cst); }

  // What is left. The last searcher must look whether there is more to do, if anybody could do it (should_wake).
  [[nodiscard]] snapshot leave_search() noexcept {
    return snapshot(counts_.fetch_sub(one_searching, std::memory_order_seq_cst) - one_searching);
  }

  // Sleeper's step 1. The counts move first: a waker must never count out a worker that is not yet in.
  void announce_sleep(std::uint32_t worker, bool was_searching) noexcept {
    counts_.fetch_add(one_parked - (was_searching ? one_searching : 0), std::memory_order_seq_cst);
    word_of(worker).fetch_or(bit_of(worker), std::memory_order_seq_cst);
  }

  // The sleeper found something after all. True: it is awake and counted as searching. False: a waker has
  // claimed it already (and counted it as searching); its wake-up token is on the way.
  [[nodiscard]] bool cancel_sleep(std::uint32_t worker) noexcept {
    if ((word_of(worker).fetch_and(~bit_of(worker), std::memory_order_seq_cst) & bit_of(worker)) == 0) return false;
    counts_.fetch_add(woken_one, std::memory_order_seq_cst);
    return true;
  }

  // Any thread. The lowest sleeper from `first` on, now counted as searching; the caller must wake it.
  [[nodiscard]] std::optional<std::uint32_t> claim_parked(std::uint32_t first = 0) noexcept {
    return claim_parked(first, [](std::uint32_t) { return true; });
  }
  // Like the one above, but only among workers for which fits(index) is true.
  template <class Fits>
  [[nodiscard]] std::optional<std::uint32_t> claim_parked(std::uint32_t first, Fits fits) noexcept {
    for (std::uint32_t w = first / 64; w < words_; ++w) {
      const auto wanted = ~std::uint64_t{0} << (w == first / 64 ? first % 64 : 0);
      for (auto bits = bitmap_[w].load(std::memory_order_seq_cst) & wanted; bits != 0;) {
        const auto index = static_cast<std::uint32_t>(std::countr_zero(bits));
        const std::uint64_t mask = std::uint64_t{1} << index;
        if (!fits(w * 64 + index)) {
          bits &= ~mask;
          continue;
        }
        const auto before = bitmap_[w].fetch_and(~mask, std::memory_order_seq_cst);
        if ((before & mask) != 0) {
          counts_.fetch_add(woken_one, std::memory_order_seq_cst);
          return w * 64 + index;
        }
        bits = before & ~mask & wanted;
      }
    }
    return std::nullopt;
  }

  // The worker claimed could not be started: it sleeps on.
  void return_claim(std::uint32_t worker) noexcept { announce_sleep(worker, true); }

  void set_monitor_asleep() noexcept { counts_.fetch_or(monitor_bit, std::memory_order_seq_cst); }
  // True: the caller cleared the mark and must wake the monitor.
  [[nodiscard]] bool clear_monitor_asleep() noexcept {
    return (counts_.fetch_and(~monitor_bit, std::memory_order_seq_cst) & monitor_bit) != 0;
  }

 private:
  static constexpr std::uint64_t one_searching = 1;
  static constexpr std::uint64_t one_parked = std::uint64_t{1} << 16;
  static constexpr std::uint64_t parked_mask = 0xffff * one_parked;
  static constexpr std::uint64_t one_present = std::uint64_t{1} << 32;
  static constexpr std::uint64_t monitor_bit = std::uint64_t{1} << 14;
  static constexpr std::uint64_t full_fences = std::uint64_t{1} << 15;
  static constexpr std::uint64_t woken_one = (std::uint64_t{1} << 48) - one_parked + one_searching;

  platform::atomic<std::uint64_t>& word_of(std::uint32_t worker) noexcept { return bitmap_[worker / 64]; }
  static std::uint64_t bit_of(std::uint32_t worker) noexcept { return std::uint64_t{1} << (worker % 64); }

  const std::uint32_t words_;
  const std::unique_ptr<platform::atomic<std::uint64_t>[]> bitmap_;
  // Every push reads it. What else is read by all, and never changes, is not beside it.
  alignas(platform::cache_line) platform::atomic<std::uint64_t> counts_;
};

}  // namespace ramie::runtime_internal
