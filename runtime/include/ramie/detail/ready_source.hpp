// SPDX-License-Identifier: BSL-1.0
// How select waits for something without knowing what it is: a task's end, a lock, a permit, a signal, a descriptor's
// readiness. The contract between channel/ (select) and the rooms that have such things. Not part of the API.
//
// A source is a target and five functions on it. It is either something that becomes true and stays so (a task's end:
// nothing is taken), or something that is taken by whoever wins it (a lock). Both are the same contract, which is that
// of a waitable (runtime/wait.hpp) with two additions: try_take accepts what was handed over, and publish takes
// nothing.
//
// What a select does with its sources, always as the waiting fiber (or plain thread):
//
//   1. enter      each, before anything else.
//   2. try_take   each in random order, while no node is listed. The first true wins: the select is over, go to 6.
//   3. publish    each, beside the channels' nodes. All nodes of a select carry one fiber and one ticket: one claim
//                 settles them all.
//   4. park, until somebody has claimed a node and completed it, or has woken the fiber without a claim.
//   5. unpublish  each. If a channel won, go to 6. Else back to 2, where a node with an outcome is asked first; then a
//                 cancellation or a timeout is looked at, unless something was taken.
//   6. leave      each that was entered; then the handler of the winner runs.
//
// A waker, who calls from anywhere, does one of these:
//   - It has something to hand over (a lock, a permit): under the source's own lock it takes a listed node, claims it,
//     gives it the thing, sets node.outcome != 0, unlists it; then, without any lock, it completes node.who. If the
//     claim fails the select has another winner: take the next waiter. After a claim the case wins for certain,
//     because try_take is asked before anything else can happen.
//   - It has nothing to hand over: a plain wake (`waker(node).wake()`), or claim and complete as above. The select asks
//     all sources again; a wake by mistake does no harm.
//
// So nothing is taken but by winning, and no wake is lost: a losing case has taken nothing, and what was not taken goes
// to the next waiter of its source.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace ramie::runtime_internal {

struct waiter;
struct ready_ops;

// Where to find it; what the fields but the first mean is the source's own affair.
struct ready_source {
  const ready_ops* ops = nullptr;  // null: never ready
  void* what = nullptr;
  void* home = nullptr;
  std::uint64_t number = 0;
};

// Memory for a source's node, aligned for anything. What needs more belongs into the case (see source_case).
inline constexpr std::size_t ready_node_size = 96;

struct ready_ops {
  // Begins: keeps the target alive, gets what publish will need, and makes the node in `memory`: a `waiter`, or what
  // derives from it. Throws usage_error if the target is gone, and whatever else it likes; then there is no leave.
  waiter& (*enter)(const ready_source& from, void* memory);
  // Ends. Nothing is listed. May wait, but not as a cancellation point (a descriptor: for the kernel to let go).
  void (*leave)(const ready_source& from, waiter& node) noexcept;
  // True: it is taken (or true), and this case has won; whatever the node got by a claim must be seen here. Never
  // waits. May throw, for example what the operating system said; then nothing is taken, and select throws that.
  bool (*try_take)(const ready_source& from, waiter& node);
  // Lists the node, whose `who` and `ticket` are set. Takes nothing: channels' nodes are listed already, and another
  // case may have won. False: not listed, because it looks as if try_take would succeed (or throw); select asks
  // again. Instead, a source may serve its own node as any waker would: claim, outcome, complete, and return true.
  bool (*publish)(const ready_source& from, waiter& node) noexcept;
  // Unlists it, if it is listed. Idempotent, and harmless after a publish that was refused or never came. From then on
  // nobody claims this node. May wait, but not as a cancellation point.
  void (*unpublish)(const ready_source& from, waiter& node) noexcept;
};

// What other rooms hand to select: `select` and `selector::add` take any object like this, beside the channels' cases.
template <class Case>
concept source_case = requires(Case& c) {
  // Asked once each time a select begins, before enter. The object stays where it is until happen or the end of the
  // select.
  { c.source() } -> std::same_as<ready_source>;
  // This case has won, and everything has been left: call the user's handler.
  c.happen();
};

// The usual one: a source that stays the same, and what to do when it was taken. For example
//   return taking_case(mutex_source(m),
//                      [&m, f = std::forward<F>(f)]() mutable { f(std::unique_lock(m, std::adopt_lock)); });
template <std::invocable<> Happen>
class taking_case {
 public:
  taking_case(const ready_source& from, Happen happen) : source_(from), happen_(std::move(happen)) {}
  [[nodiscard]] ready_source source() const noexcept { return source_; }
  void happen() { std::invoke(happen_); }

 private:
  ready_source source_;
  Happen happen_;
};

// The one way to `as_ready_source`, which may be private in a class that makes this its friend. `on_ready(t, f)` takes
// every t that has it: const, asked anew each time a select begins.
struct ready_access {
  template <class T>
  [[nodiscard]] static auto source_of(const T& t) noexcept -> decltype(t.as_ready_source()) {
    return t.as_ready_source();
  }
};

}  // namespace ramie::runtime_internal
