// SPDX-License-Identifier: BSL-1.0
// Joining runs work: a join takes unstarted descendants from the young end of its worker's ring (from the injection
// queue, if the ring is empty) and calls them in place, on the joiner's own stack.
//
// Sound under these conditions, all of them (J1–J4 are the caller's, J5–J7 are checked for each entry):
//
//   J1  The caller is the fiber that opened the scope.
//   J2  The scope is its innermost: no timeout, deadline, shield or other nursery opened since is still open.
//       Else a child called in place would sit above code that has yet to leave that inner scope, and could
//       wait for what the joiner does after it: a join inside with_timeout whose child waits for what comes
//       after the timeout would never end.
//   J3  The join does not return or throw before the scope's last fiber has ended: a child that parks keeps
//       the joiner's stack. Cancellation only passes on to the children.
//   J4  Nothing but a join waits this way. get() on a task of an outer nursery, say, could find a sibling
//       above itself that waits for the getter.
//   J5  The entry has not started: a started fiber has a stack of its own.
//   J6  It is a descendant of the scope: whatever it waits for, the joiner has nothing to do before it ends.
//   J7  The stack has at least as many bytes left as the child was promised.
//
// At the young end it pops and never peeks; an entry that does not fit is handed back to the caller, who parks and lets
// it run.
//
// Whose stack it is. While a child runs in place the joiner stays RUNNING: it is inside a call. It has no waiter
// published, so no waker can claim it, and cancellation only moves the epoch. The stack belongs to the fiber that runs
// at its top: if that parks, the frames below are parked with it, and they go on where it ends, perhaps on another
// worker. this_fiber, the exception globals and the fiber-locals are those of the fiber at the top; the joiner's
// exception globals are put aside for the call, else a child started while the joiner unwinds would believe it unwinds
// too.
//
// Fairness. A join that finds nothing to do takes one from the budget of operations that do not wait (budget.hpp).
// Every start consumes a poll. At the end of a tick the join does the tick's maintenance, and yields to what the
// injection queue has, to the newest woken fiber, or to a started fiber that is the oldest in the ring. An unstarted
// one there may be a stranger that has waited since before, or another branch of the same fork-join; to start those
// oldest first would take the tree breadth first, with a stack for every branch. So joins yield to them too, but
// after 1 ms, 2 ms, 4 ms … of a worker's time: the joiner goes to the end of the ring, so each time all that is older
// than it has its turn.
#pragma once

#include <ramie/detail/fiber_ops.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/runtime/live_count.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

class queued;

// How far join_in_place came.
enum class join_so_far : std::uint8_t {
  nothing,    // it is another case than the plain one; nothing has happened
  stuck,      // fibers live, and there is no child at hand to call
  all_ended,  // and the scope is closed for spawns, but has more to do before it is left
};

// A scope that counts the fibers spawned into it, and keeps records that the owner may use for its next children.
struct counted_scope : cancel_scope {
  // Ends a join that join_in_place has begun. `other`: as in children_called. May throw.
  using join_rest = void(counted_scope& of, join_so_far how_far, queued* other);
  counted_scope(unopened closed, join_rest* otherwise) noexcept : cancel_scope(closed), finish_join(otherwise) {}

  live_count live;
  record_list unused;  // the owner's: the memory of children that have ended in place, plainly

  // Who opened it in this life or the last (the scope's owner only until the join), and how far its end is: one word, so
  // that one comparison answers for both.
  platform::owned<std::uintptr_t> opener{0};
  static constexpr std::uintptr_t joined = 1;   // nobody spawns into it any more
  static constexpr std::uintptr_t lingers = 2;  // with `joined`: inner scopes are still open, so this one is, too
  [[nodiscard]] bool is_open_to(const fiber* caller) const noexcept {
    return opener.get() == reinterpret_cast<std::uintptr_t>(caller);
  }
  [[nodiscard]] bool was_joined_by(const fiber* caller) const noexcept {
    return opener.get() == reinterpret_cast<std::uintptr_t>(caller) + joined;
  }
  [[nodiscard]] bool has_joined() const noexcept { return (opener.get() & joined) != 0; }
  [[nodiscard]] fiber* opened_by() const noexcept {
    return reinterpret_cast<fiber*>(opener.get() & ~(joined | lingers));
  }

  join_rest* const finish_join;
};

// The plain join, from beginning to end: the owner calls it, its children are all at hand, nothing was cancelled. Else
// `finish_join` does the rest. Throws what that throws.
void join_in_place(counted_scope& of);

// The part of run_descendants that is nearly always all of it: calls children of `of` from the young end of the ring,
// plain ones, which need no more of a frame than one after the other can share. `local`: the caller's.
struct children_called {
  worker_local* local;  // of the moment, if no fiber lives any more; else null
  queued* other;        // what was taken and is no such child; or null
};
[[nodiscard]] children_called call_children(counted_scope& of, worker_local& local) noexcept;

// While fibers of `of` live: calls descendants in place, until none is at hand or one was taken that does not fit:
// the caller must wait with that (join_wait) or give it back.
struct in_place_result {
  worker_local* local;  // of the moment, if no fiber lives any more; else null
  fiber* unfit;         // or null
};
[[nodiscard]] in_place_result run_others(counted_scope& of, queued* other) noexcept;  // after call_children
[[nodiscard]] inline in_place_result run_descendants(counted_scope& of, worker_local& local) noexcept {
  const auto called = call_children(of, local);
  if (called.local != nullptr) [[likely]]
    return {called.local, nullptr};
  return run_others(of, called.other);
}

// fiber_wait, not a cancellation point, that switches to `next` (may be null). `on.try_complete` may throw.
void join_wait(waitable& on, waiter& self, const wait_reason& why, fiber* next);

// A RUNNABLE fiber that was taken and is not needed.
void give_back(fiber& f) noexcept;

}  // namespace ramie::runtime_internal
