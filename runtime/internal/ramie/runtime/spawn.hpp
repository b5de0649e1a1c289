// SPDX-License-Identifier: BSL-1.0
// Making fibers, for the rooms above: a fiber is a frame, a record and three functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <ramie/cancel.hpp>
#include <ramie/detail/fiber_ops.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/source_location.hpp>

namespace ramie::runtime_internal {

class cancel_scope;
class scheduler;
struct counted_scope;

// Makes a fiber runnable in the scheduler of `scope`, which must outlive it. A stack size of 0 is the
// runtime's default. The fiber inherits the caller's inheritable fiber-local values. Any thread. Throws
// std::bad_alloc when no frame can be had, std::system_error when the very first worker can't be started,
// usage_error for an impossible stack size, and what copying an inherited value throws; nothing is called then,
// and the record keeps its extras (drop_extras).
void spawn(const fiber_ops& ops, fiber_record& record, cancel_scope& scope, std::size_t stack_size = 0,
           source_location site = source_location::current());

// Like spawn, but the caller is a fiber of that scheduler and has its context.
void spawn_here(const call_context& at, const fiber_ops& ops, fiber_record& record, cancel_scope& scope,
                std::size_t stack_size, source_location site);

// Like spawn_here, but for the owner of the scope and the plain case: a default stack, nothing to inherit. The record,
// whose `ops` are set, is queued as a task: it gets a frame when it starts. The fiber is counted.
[[nodiscard]] task_spawn try_spawn_task(counted_scope& scope, fiber_record& record, source_location site) noexcept;
// Like try_spawn_task, for a record that is a task already (make_task), and a caller that knows where it is. Returns the
// record; null: nothing has happened, and the record is in `scope.unused`.
[[nodiscard]] fiber_record* try_spawn_made(counted_scope& scope, fiber_record& record, worker_local& here) noexcept;

// Before the fiber is spawned, or by the fiber itself. Throws std::bad_alloc.
void name_fiber(fiber_record& record, std::string_view name);
// Frees what the record holds besides its fiber; for a fiber that was not spawned after all.
void drop_extras(fiber_record& record) noexcept;

// For messages: "fiber #7 'acceptor', spawned at server.cpp:12". The fiber must be known to be alive.
[[nodiscard]] std::string describe(const fiber& f);
// Its name, or its number and site if it has none. Any thread that keeps the record there; if the fiber has ended
// before this returns, the text may be another fiber's.
[[nodiscard]] std::string describe_briefly(const fiber_record& record);

// Where the fiber was spawned; empty if it is getting its frame at this moment. Any thread that keeps the record there.
[[nodiscard]] source_location spawn_site(const fiber_record& record) noexcept;

// The calling fiber's thread is being ended by force (platform::forced_unwind): says what to do, and ends the program.
[[noreturn]] void thread_ended_in_fiber() noexcept;

// Of a live fiber: the scope it was spawned into.
[[nodiscard]] cancel_scope& home_of(const fiber& f) noexcept;
// Puts the fiber's number and name into a reason it gives.
void sign(cancel_reason& reason, const fiber& by) noexcept;
// Like sign, but for the caller: a fiber or a plain thread. In scheduler code, and in callbacks on a thread of the
// runtime, the reason keeps its origin.
void sign_as_caller(cancel_reason& reason) noexcept;

}  // namespace ramie::runtime_internal
