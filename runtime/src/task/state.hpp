// SPDX-License-Identifier: BSL-1.0
// One word per fiber: who may do what with it next.
//
//   63                    26   25       24    23      16 15            0
//    0                      claimed notified  lifecycle   wait ticket (low 16)
//
// States by ownership. The owner is whoever may touch the frame's plain fields.
//
//   INIT      a frame that has had no fiber yet: the pool owns it, or the spawner that is filling it in.
//   RUNNABLE  exactly one run-queue entry (or the worker that is moving it) owns it.         (F2)
//   RUNNING   the stack it runs on owns it.                                                  (F1)
//   PARKING   still owned by that stack, or by the worker that left it; its waiter node is visible.
//             A waker may only mark the word: claimed (a partner will complete it) or notified.
//   PARKED    nobody owns it. Whoever wins the claim does, and alone may enqueue it.          (F4)
//   WAKING    the claimer owns it and may still be moving an element to or from its waiter.
//   DONE, CANCELLED   the fiber is over; as INIT: the frame goes to the pool, and to the next spawner.
//
// (F1 to F5: spec/lifecycle.md.)
//
// Who may write. In PARKING the parker, wakers and cancellers race, in PARKED wakers and cancellers (among them whoever
// committed the park, if the epoch has moved): there every change is an RMW. In all other states the owner is alone
// with the word and stores it plainly: wakers and cancellers write only in PARKING and PARKED, and a stale CAS of
// theirs expects a state that the word has left for good under that ticket. So cancellation never marks a running
// fiber; the fiber sees it by the epoch (cancel_scope.hpp). Outside PARKING and WAKING no flag is set.
//
// Claim, then complete. A hand-off claims its partner, moves the element, then completes it:
//
//   claim     PARKED -> WAKING, or PARKING -> PARKING+claimed. One winner per ticket.
//   complete  WAKING -> RUNNABLE and the completer enqueues, or PARKING+claimed -> +notified.
//   commit    the parker, after its stack is left: PARKING -> PARKED; +claimed -> WAKING;
//             +notified -> RUNNABLE and the committer enqueues. One CAS decides among the three.
//   wake      claim and complete in one CAS, for wakers that have nothing to hand over.
//
// Every claim compares state and the low 16 bits of the ticket in the same CAS. A waker that holds no
// lock over the waiter compares the frame's 64-bit ticket first (16 bits alone wrap in milliseconds); but not a
// canceller, which wakes whatever wait there is.
//
// Rejected: references, a shield depth, and marks for cancellation, joiners and detached fibers in the word. Nothing
// outside the tests read them (spec/decisions/017-a-word-without-dead-bits.md).
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/compiler.hpp>
#include <ramie/platform/fatal.hpp>

namespace ramie::runtime_internal {

enum class lifecycle : std::uint8_t { init, runnable, running, parking, parked, waking, done, cancelled };

inline constexpr const char* lifecycle_names[] = {"INIT",   "RUNNABLE", "RUNNING", "PARKING",
                                                  "PARKED", "WAKING",   "DONE",    "CANCELLED"};
[[nodiscard]] constexpr const char* name_of(lifecycle s) noexcept {
  return lifecycle_names[static_cast<std::uint8_t>(s) & 7];
}
// Whether the frame is the pool's or a spawner's.
[[nodiscard]] constexpr bool has_no_fiber(lifecycle s) noexcept {
  return s == lifecycle::init || s == lifecycle::done || s == lifecycle::cancelled;
}

// A value of the word, taken apart and put together.
class word_view {
 public:
  static constexpr std::uint64_t notified = std::uint64_t{1} << 24;
  static constexpr std::uint64_t claimed = std::uint64_t{1} << 25;

  constexpr explicit word_view(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr word_view(lifecycle s, std::uint16_t ticket, std::uint64_t flags = 0) noexcept
      : bits_(flags | (std::uint64_t{static_cast<std::uint8_t>(s)} << 16) | ticket) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr lifecycle state() const noexcept { return static_cast<lifecycle>((bits_ >> 16) & 0xff); }
  [[nodiscard]] constexpr std::uint16_t ticket() const noexcept { return static_cast<std::uint16_t>(bits_); }
  [[nodiscard]] constexpr bool has(std::uint64_t flag) const noexcept { return (bits_ & flag) != 0; }
  // All but the ticket, in one comparison.
  [[nodiscard]] constexpr bool is(lifecycle s, std::uint64_t flags = 0) const noexcept {
    return bits_ >> 16 == word_view(s, 0, flags).bits() >> 16;
  }

  [[nodiscard]] constexpr word_view in(lifecycle s) const noexcept {
    return word_view((bits_ & ~(std::uint64_t{0xff} << 16)) | (std::uint64_t{static_cast<std::uint8_t>(s)} << 16));
  }
  [[nodiscard]] constexpr word_view with(std::uint64_t flags) const noexcept { return word_view(bits_ | flags); }

 private:
  std::uint64_t bits_;
};

// What the caller of a transition has to do next.
enum class commit_result : std::uint8_t {
  parked,        // nothing: a waker will come
  left_claimed,  // nothing: the claimer will complete and enqueue
  must_enqueue,  // it was woken while parking: the committer enqueues it
};
enum class claim_result : std::uint8_t {
  lost,  // somebody else has it, or this wait is over: do not touch it
  won,   // the caller owns the waiter until it calls complete
};
enum class complete_result : std::uint8_t {
  must_enqueue,  // the caller enqueues
  deferred,      // the parker has not committed yet and will enqueue
};
enum class wake_result : std::uint8_t {
  ignored,       // not waiting under that ticket, or already claimed
  must_enqueue,  // the caller enqueues
  deferred,      // the parker has not committed yet and will enqueue
};
enum class unpark_result : std::uint8_t {
  running,  // the fiber runs on, nobody has claimed its waiter
  woken,    // the fiber runs on; a plain wake had arrived
  claimed,  // a partner has claimed it: it must commit and wait to be completed
};

class fiber_word {
 public:
  [[nodiscard]] word_view load() const noexcept { return word_view(bits_.load(std::memory_order_acquire)); }

  // The spawner, whose frame holds no live fiber. The release is that of the push into a run queue (Q4).
  void init_to_runnable(std::uint16_t ticket) noexcept {
    if constexpr (platform::debug_checks) {
      if (const auto seen = load(); !has_no_fiber(seen.state())) illegal(seen, lifecycle::runnable);
    }
    bits_.store(word_view(lifecycle::runnable, ticket).bits(), std::memory_order_relaxed);
  }

  // A join, which calls one child after the other under a frame of its own: none of them waits in a queue (join.cpp).
  void init_to_running(std::uint16_t ticket) noexcept {
    if constexpr (platform::debug_checks) {
      if (const auto seen = load(); !has_no_fiber(seen.state())) illegal(seen, lifecycle::running);
    }
    bits_.store(word_view(lifecycle::running, ticket).bits(), std::memory_order_relaxed);
  }

  // The fiber itself, when it is given a stack or gets its own back. Acquire: pairs with the release of
  // whoever made it runnable, so that it sees what its waker did. F1.
  void runnable_to_running() noexcept { owner_step(lifecycle::runnable, lifecycle::running); }

  // The worker that has left the yielding fiber's stack.
  void running_to_runnable() noexcept { owner_step(lifecycle::running, lifecycle::runnable); }

  // The fiber itself, before it publishes its waiter.
  void running_to_parking(std::uint16_t ticket) noexcept {
    expect(load(), lifecycle::running, lifecycle::parking);
    put(word_view(lifecycle::parking, ticket));
  }

  // The fiber itself, still on its stack: publishing failed, or a wake came before the switch. If a
  // partner holds a claim the wait can't be called off.
  [[nodiscard]] unpark_result parking_to_running() noexcept {
    for (auto seen = load();;) {
      expect(seen, lifecycle::parking, lifecycle::running);
      if (seen.has(word_view::claimed) && !seen.has(word_view::notified)) return unpark_result::claimed;
      const word_view next(lifecycle::running, seen.ticket());
      if (replace(seen, next)) return seen.has(word_view::notified) ? unpark_result::woken : unpark_result::running;
    }
  }

  // Whoever runs after the parker's stack has been left; never a fiber on its own stack. F5. (A plain thread, whose
  // stack nobody resumes, commits for itself.)
  [[nodiscard]] commit_result commit_park() noexcept {
    for (auto seen = load();;) {
      expect(seen, lifecycle::parking, lifecycle::parked);
      if (seen.has(word_view::notified)) {
        if (replace(seen, word_view(lifecycle::runnable, seen.ticket()))) return commit_result::must_enqueue;
      } else if (seen.has(word_view::claimed)) {
        if (replace(seen, seen.in(lifecycle::waking))) return commit_result::left_claimed;
      } else if (replace(seen, seen.in(lifecycle::parked))) {
        return commit_result::parked;
      }
    }
  }

  // Any thread that found the waiter. F3, F4. It begins with a guess, which the exchange corrects.
  [[nodiscard]] claim_result claim(std::uint16_t ticket) noexcept {
    for (auto seen = word_view(lifecycle::parked, ticket);;) {
      if (!claimable(seen, ticket)) return claim_result::lost;
      const auto next = seen.state() == lifecycle::parked ? seen.in(lifecycle::waking) : seen;
      if (replace(seen, next.with(word_view::claimed))) return claim_result::won;
    }
  }

  // The winner of claim, once, after the element has moved.
  [[nodiscard]] complete_result complete() noexcept {
    for (auto seen = load();;) {
      if (seen.is(lifecycle::waking, word_view::claimed)) [[likely]] {
        put(word_view(lifecycle::runnable, seen.ticket()));
        return complete_result::must_enqueue;
      }
      expect(seen, lifecycle::parking, lifecycle::runnable);
      if (replace(seen, seen.with(word_view::notified))) return complete_result::deferred;
    }
  }

  // Claim and complete in one step.
  [[nodiscard]] wake_result wake(std::uint16_t ticket) noexcept {
    for (auto seen = load();;) {
      if (!claimable(seen, ticket)) return wake_result::ignored;
      if (seen.state() == lifecycle::parked) {
        if (replace(seen, seen.in(lifecycle::runnable))) return wake_result::must_enqueue;
      } else if (replace(seen, seen.with(word_view::claimed | word_view::notified))) {
        return wake_result::deferred;
      }
    }
  }

  // The fiber itself, at its end: DONE or CANCELLED. From here on the frame may be another fiber's.
  void finish(lifecycle end) noexcept { owner_step(lifecycle::running, end); }

 private:
  static bool claimable(word_view seen, std::uint16_t ticket) noexcept {
    if (seen.ticket() != ticket) return false;
    if (seen.state() == lifecycle::parked) return true;
    return seen.state() == lifecycle::parking && !seen.has(word_view::claimed);
  }

  // In PARKING flags may be set; in the others an owner leaves none.
  static void expect(word_view seen, lifecycle from, lifecycle to) noexcept {
    const bool there = from == lifecycle::parking ? seen.state() == from : seen.is(from);
    if (!there) [[unlikely]]
      illegal(seen, to);
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void illegal(word_view seen, lifecycle to) noexcept {
    platform::fatal("illegal fiber transition %s -> %s (word %016llx): corruption of the runtime.",
                    name_of(seen.state()), name_of(to), static_cast<unsigned long long>(seen.bits()));
  }

  // The winner sees all that led to the state it leaves, and publishes what led to its own.
  // On failure `seen` is what stands there now.
  bool replace(word_view& seen, word_view next) noexcept {
    auto expected = seen.bits();
    // seq_cst rather than acq_rel: the commit is one half of the handshake with a canceller (cancel_scope.hpp).
    if (bits_.compare_exchange_weak(expected, next.bits(), std::memory_order_seq_cst, std::memory_order_acquire)) {
      return true;
    }
    seen = word_view(expected);
    return false;
  }

  // Owner only, in a state in which no other thread writes the word.
  void put(word_view next) noexcept { bits_.store(next.bits(), std::memory_order_release); }

  void owner_step(lifecycle from, lifecycle to) noexcept {
    const auto seen = load();
    expect(seen, from, to);
    put(word_view(to, seen.ticket()));
  }

  platform::atomic<std::uint64_t> bits_{0};  // INIT
};

}  // namespace ramie::runtime_internal
