// SPDX-License-Identifier: BSL-1.0
// One word per fiber: who may do what with it next.
//
//   63        40 39     32 31    24 23      16 15            0
//    ref_count    shield     flags   lifecycle   wait ticket (low 16)
//
// States by ownership. "Owner" is whoever may touch the frame's plain fields.
//
//   INIT      the spawner owns the frame; nobody else has seen it.
//   RUNNABLE  exactly one run-queue entry (or the hand that is moving it) owns it.           (F2)
//   RUNNING   the stack it runs on owns it.                                                  (F1)
//   PARKING   still owned by that stack, or by the worker that left it; its waiter node is visible.
//             A waker may only mark the word: claimed (a partner will complete it) or notified.
//   PARKED    nobody owns it. Whoever wins the claim does, and alone may enqueue it.          (F4)
//   WAKING    the claimer owns it and may still be moving an element to or from its waiter.
//   DONE, CANCELLED   over. The last reference returns the frame to the pool.
//
// Who may write. In PARKING and PARKED parker, wakers and cancellers race, and every change is an RMW.
// In all other states the only writers are the owner and holders of further references (retain,
// release, join_interest, detached); so an owner whose reference is the only one is alone with the word
// and stores it plainly. Nobody else can appear: references are only made from references, wakers and
// cancellers write only in PARKING and PARKED, and a stale CAS of theirs expects a state the word has
// left for good under that ticket. Cancellation therefore never marks a running fiber; the fiber
// sees it by the epoch (cancel_scope.hpp).
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
// lock over the waiter compares the frame's 64-bit ticket first (16 bits alone wrap in milliseconds).
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/fatal.hpp>

namespace ramie::detail {

enum class lifecycle : std::uint8_t { init, runnable, running, parking, parked, waking, done, cancelled };

// The four-state view of the task header.
enum class phase : std::uint8_t { idle, scheduled, running, complete };

[[nodiscard]] constexpr phase phase_of(lifecycle s) noexcept {
  switch (s) {
    case lifecycle::init:
    case lifecycle::parked: return phase::idle;
    case lifecycle::runnable:
    case lifecycle::waking: return phase::scheduled;
    case lifecycle::running:
    case lifecycle::parking: return phase::running;
    default: return phase::complete;
  }
}

inline constexpr const char* lifecycle_names[] = {"INIT",   "RUNNABLE", "RUNNING", "PARKING",
                                                  "PARKED", "WAKING",   "DONE",    "CANCELLED"};
[[nodiscard]] constexpr const char* name_of(lifecycle s) noexcept {
  return lifecycle_names[static_cast<std::uint8_t>(s) & 7];
}

// A value of the word, taken apart and put together.
class word_view {
 public:
  static constexpr std::uint64_t ref_one = std::uint64_t{1} << 40;
  static constexpr std::uint64_t notified = std::uint64_t{1} << 24;
  static constexpr std::uint64_t cancel_seen = std::uint64_t{1} << 25;
  static constexpr std::uint64_t join_interest = std::uint64_t{1} << 26;
  static constexpr std::uint64_t detached = std::uint64_t{1} << 27;
  static constexpr std::uint64_t claimed = std::uint64_t{1} << 28;
  static constexpr unsigned max_shield = 255;
  static constexpr std::uint64_t max_refs = (std::uint64_t{1} << 24) - 1;

  constexpr explicit word_view(std::uint64_t bits) noexcept : bits_(bits) {}
  // What the word of a fiber nearly always looks like: one reference, no flag but these, no shield.
  [[nodiscard]] static constexpr word_view plain(lifecycle s, std::uint16_t ticket, std::uint64_t flags = 0) noexcept {
    return word_view(ref_one | flags | (std::uint64_t{static_cast<std::uint8_t>(s)} << 16) | ticket);
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr lifecycle state() const noexcept { return static_cast<lifecycle>((bits_ >> 16) & 0xff); }
  [[nodiscard]] constexpr std::uint16_t ticket() const noexcept { return static_cast<std::uint16_t>(bits_); }
  [[nodiscard]] constexpr std::uint64_t refs() const noexcept { return bits_ >> 40; }
  [[nodiscard]] constexpr unsigned shield() const noexcept { return static_cast<unsigned>((bits_ >> 32) & 0xff); }
  [[nodiscard]] constexpr bool has(std::uint64_t flag) const noexcept { return (bits_ & flag) != 0; }
  [[nodiscard]] constexpr bool sole_reference() const noexcept { return refs() == 1; }
  // All but the ticket, in one comparison.
  [[nodiscard]] constexpr bool is_plain(lifecycle s, std::uint64_t flags = 0) const noexcept {
    return bits_ >> 16 == plain(s, 0, flags).bits() >> 16;
  }
  [[nodiscard]] constexpr bool cancellation_effective() const noexcept { return has(cancel_seen) && shield() == 0; }

  [[nodiscard]] constexpr word_view in(lifecycle s) const noexcept {
    return word_view((bits_ & ~(std::uint64_t{0xff} << 16)) | (std::uint64_t{static_cast<std::uint8_t>(s)} << 16));
  }
  [[nodiscard]] constexpr word_view with(std::uint64_t flags) const noexcept { return word_view(bits_ | flags); }
  [[nodiscard]] constexpr word_view without(std::uint64_t flags) const noexcept { return word_view(bits_ & ~flags); }
  [[nodiscard]] constexpr word_view with_ticket(std::uint16_t t) const noexcept {
    return word_view((bits_ & ~std::uint64_t{0xffff}) | t);
  }
  [[nodiscard]] constexpr word_view with_shield(unsigned depth) const noexcept {
    const std::uint64_t field = depth < max_shield ? depth : max_shield;
    return word_view((bits_ & ~(std::uint64_t{0xff} << 32)) | (field << 32));
  }

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
struct finish_result {
  bool wake_joiners;    // somebody asked to be told
  bool last_reference;  // the frame may be recycled
};

class fiber_word {
 public:
  [[nodiscard]] word_view load() const noexcept { return word_view(bits_.load(std::memory_order_acquire)); }

  // INIT, one reference. The frame is not shared yet.
  void initialise(std::uint16_t ticket) noexcept {
    bits_.store(word_view::plain(lifecycle::init, ticket).bits(), std::memory_order_relaxed);
  }

  // Spawner. The release is the queue's: see schedule().
  void init_to_runnable() noexcept { owner_step(lifecycle::init, lifecycle::runnable); }
  // Both in one: nobody sees INIT.
  void initialise_runnable(std::uint16_t ticket) noexcept {
    bits_.store(word_view::plain(lifecycle::runnable, ticket).bits(), std::memory_order_relaxed);
  }

  // The fiber itself, when it is given a stack or gets its own back. Acquire: pairs with the release of
  // whoever made it runnable, so that it sees what its waker did. F1.
  void runnable_to_running() noexcept { owner_step(lifecycle::runnable, lifecycle::running); }

  // The worker that has left the yielding fiber's stack.
  void running_to_runnable() noexcept { owner_step(lifecycle::running, lifecycle::runnable); }

  // The fiber itself, before it publishes its waiter. Clears what an earlier wait left behind.
  void running_to_parking(std::uint16_t ticket) noexcept {
    if (load().is_plain(lifecycle::running)) [[likely]]
      return put(word_view::plain(lifecycle::parking, ticket));
    owner_update(lifecycle::running, [ticket](word_view w) {
      return w.in(lifecycle::parking).without(word_view::notified | word_view::claimed).with_ticket(ticket);
    });
  }

  // The fiber itself, still on its stack: publishing failed, or a wake came before the switch. If a
  // partner holds a claim the wait can't be called off.
  [[nodiscard]] unpark_result parking_to_running() noexcept {
    for (auto seen = load();;) {
      expect(seen, lifecycle::parking, lifecycle::running);
      if (seen.has(word_view::claimed) && !seen.has(word_view::notified)) return unpark_result::claimed;
      const auto next = seen.in(lifecycle::running).without(word_view::notified | word_view::claimed);
      if (replace(seen, next)) return seen.has(word_view::notified) ? unpark_result::woken : unpark_result::running;
    }
  }

  // Whoever runs after the parker's stack has been left; never the parker on its own stack. F5.
  [[nodiscard]] commit_result commit_park() noexcept {
    for (auto seen = load();;) {
      expect(seen, lifecycle::parking, lifecycle::parked);
      if (seen.has(word_view::notified)) {
        if (replace(seen, seen.in(lifecycle::runnable).without(word_view::notified | word_view::claimed))) {
          return commit_result::must_enqueue;
        }
      } else if (seen.has(word_view::claimed)) {
        if (replace(seen, seen.in(lifecycle::waking))) return commit_result::left_claimed;
      } else if (replace(seen, seen.in(lifecycle::parked))) {
        return commit_result::parked;
      }
    }
  }

  // Any thread that found the waiter. F3, F4. It begins with a guess, which the exchange corrects.
  [[nodiscard]] claim_result claim(std::uint16_t ticket) noexcept {
    for (auto seen = word_view::plain(lifecycle::parked, ticket);;) {
      if (!claimable(seen, ticket)) return claim_result::lost;
      const auto next = seen.state() == lifecycle::parked ? seen.in(lifecycle::waking) : seen;
      if (replace(seen, next.with(word_view::claimed))) return claim_result::won;
    }
  }

  // The winner of claim, once, after the element has moved.
  [[nodiscard]] complete_result complete() noexcept {
    for (auto seen = load();;) {
      if (seen.is_plain(lifecycle::waking, word_view::claimed)) [[likely]] {
        put(word_view::plain(lifecycle::runnable, seen.ticket()));
        return complete_result::must_enqueue;
      }
      if (seen.state() == lifecycle::waking) {
        owner_update(lifecycle::waking,
                     [](word_view w) { return w.in(lifecycle::runnable).without(word_view::claimed); });
        return complete_result::must_enqueue;
      } else {
        expect(seen, lifecycle::parking, lifecycle::runnable);
        if (replace(seen, seen.with(word_view::notified))) return complete_result::deferred;
      }
    }
  }

  // Claim and complete in one step. `flags` (cancel_seen) ride along.
  [[nodiscard]] wake_result wake(std::uint16_t ticket, std::uint64_t flags = 0) noexcept {
    for (auto seen = load();;) {
      if (!claimable(seen, ticket)) return wake_result::ignored;
      if (seen.state() == lifecycle::parked) {
        if (replace(seen, seen.in(lifecycle::runnable).with(flags))) return wake_result::must_enqueue;
      } else if (replace(seen, seen.with(word_view::claimed | word_view::notified | flags))) {
        return wake_result::deferred;
      }
    }
  }

  // The fiber itself, at its end. Gives up the owner's reference in the same step.
  [[nodiscard]] finish_result finish(lifecycle end) noexcept {
    if (const auto seen = load(); seen.is_plain(lifecycle::running)) [[likely]] {
      put(word_view(word_view::plain(end, seen.ticket()).bits() - word_view::ref_one));
      return {false, true};
    }
    const auto last = owner_update(lifecycle::running,
                                   [end](word_view w) { return word_view(w.in(end).bits() - word_view::ref_one); });
    return {last.has(word_view::join_interest), last.sole_reference()};
  }

  // Holders of a reference.
  void retain() noexcept {
    const word_view before(bits_.fetch_add(word_view::ref_one, std::memory_order_relaxed));
    if (before.refs() == 0 || before.refs() == word_view::max_refs) {
      platform::fatal("a fiber has %llu references: corruption of the runtime.",
                      static_cast<unsigned long long>(before.refs()));
    }
  }
  // True: it was the last one, and the caller recycles the frame.
  [[nodiscard]] bool release() noexcept {
    const word_view before(bits_.fetch_sub(word_view::ref_one, std::memory_order_acq_rel));
    if (before.refs() == 0)
      platform::fatal("a fiber was released more often than retained: corruption of the runtime.");
    return before.sole_reference();
  }
  // False: the fiber is over already, nobody will tell the caller.
  [[nodiscard]] bool ask_to_join() noexcept { return set_unless_complete(word_view::join_interest); }
  [[nodiscard]] bool detach() noexcept { return set_unless_complete(word_view::detached); }

  // The fiber itself. The field is a mirror of the owner's true depth, for dumps and cancellers.
  void mirror_shield(unsigned depth) noexcept {
    owner_update(lifecycle::running, [depth](word_view w) { return w.with_shield(depth); });
  }
  // The fiber itself: it has looked at its scopes.
  void set_cancel_seen(bool seen_it) noexcept {
    owner_update(lifecycle::running, [seen_it](word_view w) {
      return seen_it ? w.with(word_view::cancel_seen) : w.without(word_view::cancel_seen);
    });
  }

 private:
  static bool claimable(word_view seen, std::uint16_t ticket) noexcept {
    if (seen.ticket() != ticket) return false;
    if (seen.state() == lifecycle::parked) return true;
    return seen.state() == lifecycle::parking && !seen.has(word_view::claimed);
  }

  static void expect(word_view seen, lifecycle from, lifecycle to) noexcept {
    if (seen.state() != from) [[unlikely]]
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

  // By the owner, alone with the word.
  void put(word_view next) noexcept { bits_.store(next.bits(), std::memory_order_release); }

  // A change by the owner in a state where only it and holders of references write.
  template <class Change>
  word_view owner_update(lifecycle from, Change change) noexcept {
    for (auto seen = load();;) {
      expect(seen, from, change(seen).state());
      if (seen.sole_reference()) {
        put(change(seen));
        return seen;
      }
      if (replace(seen, change(seen))) return seen;
    }
  }
  void owner_step(lifecycle from, lifecycle to) noexcept {
    if (const auto seen = load(); seen.is_plain(from)) [[likely]]
      return put(word_view::plain(to, seen.ticket()));
    owner_update(from, [to](word_view w) { return w.in(to); });
  }

  bool set_unless_complete(std::uint64_t flag) noexcept {
    for (auto seen = load();;) {
      if (phase_of(seen.state()) == phase::complete) return false;
      if (replace(seen, seen.with(flag))) return true;
    }
  }

  platform::atomic<std::uint64_t> bits_{0};
};

}  // namespace ramie::detail
