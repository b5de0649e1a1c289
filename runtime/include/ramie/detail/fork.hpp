// SPDX-License-Identifier: BSL-1.0
// A fork: a part of a call that the caller offers to other workers, and makes itself if none has taken it by then. Not
// part of the API; templates of parallel.hpp make these.
//
// The record is on the caller's stack. It is pushed to the young end of the worker's ring like a task, with the caller's
// innermost scope as its home. The caller pops it again and has paid for no fiber; or a worker has taken it from a queue
// and runs it as a fiber, and the caller waits for the end of that.
//
// Invariants
//   FK1  From push_fork to take_fork or drop_fork the caller keeps the record there, and its innermost scope open.
//   FK5  Whatever cancels the caller cancels the fiber of its fork. A task that is cancelled alone (task::cancel) has its
//        own scope on no chain of parents; those inside see it only from a scope that the task has opened
//        (cancel_scope.hpp). So a fiber that could be cancelled alone opens one before it pushes a fork, once for all
//        calls below (call_in_reach). Forks have no handles, and are inside such a scope.
//   FK2  Forks of one fiber nest: what was pushed last is taken back first.
//   FK3  A fork that was pushed is called once: by whoever has taken its entry from a queue. If that one could not start it
//        (it was cancelled, or there was no memory or no stack for a fiber), the caller does (fork_outcome::not_run).
//   FK4  The fiber's last access to the record is the RMW that sets `finished`, unless that shows that the caller waits.
//
//       fiber that ends                        caller that waits (fork_end::publish)
//       1. the outcome                         1. `waits` = itself
//       2. marks |= finished       (RMW)       2. marks |= wanted        (RMW)
//       3. wanted? wake `waits`                3. finished? then it need not wait
#pragma once

#include <cstdint>
#include <exception>

#include <ramie/detail/fiber_ops.hpp>
#include <ramie/source_location.hpp>

namespace ramie::runtime_internal {

class fork_end;

enum class fork_outcome : std::uint8_t {
  done,
  not_run,    // by nobody: the caller is to call it
  failed,     // by the exception that it has
  cancelled,  // the fiber was, while it ran
};

struct fork_record : fiber_record {
  using function = void(fork_record& self);
  explicit fork_record(function* what) noexcept : call(what) {}

  function* const call;
  fork_outcome outcome = fork_outcome::done;
  fork_end* waits = nullptr;
  std::exception_ptr failure;

  // The record's `marks`.
  static constexpr std::uint8_t finished = 1;
  static constexpr std::uint8_t wanted = 2;
};

enum class fork_push : std::uint8_t {
  pushed,
  alone,      // there is no memory for the queue: the caller calls it
  not_plain,  // its fiber would need more than this: call_in_reach, or spawn it
};

// The beginning of a call that may push forks, when there is nothing to push. A cancellation point, and counted as a poll.
// Fibers only: throws usage_error on a plain thread, naming `function`; `cancelled`.
void begin_calls(const char* function);
// Likewise, and offers `part`.
[[nodiscard]] fork_push push_fork(fork_record& part, source_location site, const char* function);
// Likewise, for a fiber that has taken a fork of the same call. Never not_plain: what calls have left it, values to
// inherit say, is not for the others.
[[nodiscard]] fork_push push_fork_again(fork_record& part, source_location site);
// Where push_fork has said not_plain: if all that is missing is a scope of the caller's own (FK5), calls f(data) inside of
// one. False: something else is, and nothing was called. Throws what f throws.
[[nodiscard]] bool call_in_reach(source_location site, void (*f)(void* data), void* data);
// True: the caller has it back and is to call it. False: it has ended as a fiber. Throws its failure, and `cancelled` if
// a cancellation of the caller has ended it.
[[nodiscard]] bool take_fork(fork_record& part);
// Like take_fork, for a caller that is in a catch block: nobody calls it any more, and a failure of its fiber is reported as
// lost. True: the caller has it back.
bool drop_fork(fork_record& part) noexcept;

// The calling fiber has made `calls` calls of a loop, each of which counts as a poll: a cancellation point, and at the end
// of a tick others have a turn. Throws `cancelled`.
void look_around(std::uint32_t calls);

// What the fiber of a fork runs, for those that are run in another way: calls it and notes how it has ended. The caller is
// a fiber.
fiber_end run_fork(fiber_record& self) noexcept;
// What take_fork does when it has ended. True: the caller is to call it.
[[nodiscard]] bool settle_fork(fork_record& part);
// Reports it as lost.
void report_fork_failure(const std::exception_ptr& failure) noexcept;

}  // namespace ramie::runtime_internal
