// SPDX-License-Identifier: BSL-1.0
// How a fiber begins and ends, inline: by the worker's loop (loop.cpp), or above a join (join.cpp).
#pragma once

#include <ramie/runtime/spawn.hpp>

#include "hot.hpp"

namespace ramie::detail {

[[noreturn]] void ended_inside_a_scope(const fiber& f) noexcept;
// It has been away from the stack it was started on. A frame in the pool has none.
void part_from_stack(const worker& w, fiber& f) noexcept;

// From here on the stack is the fiber's. False: it was cancelled before it started.
RAMIE_FLATTEN bool scheduler::begin(worker& w, fiber& f) noexcept {
  f.word.runnable_to_running();
  w.current.set(&f);
  const auto epoch = w.sched.cancel_epoch.load(std::memory_order_acquire);
  if (f.seen_epoch.get() != epoch) [[unlikely]] {
    if (cancel_scope::effective(f.scope, epoch) != nullptr) {
      w.count.discarded.add(1);
      return false;
    }
    f.seen_epoch.set(epoch);
  }
  w.count.started.add(1);
  return true;
}

// Still as the fiber, but no longer its code. Returns whether its frame is nobody's any more.
RAMIE_FLATTEN bool scheduler::conclude(worker& w, fiber& f, fiber_end how, const cancel_scope* joiner) noexcept {
  if (f.scope != f.home) [[unlikely]]  // a shield is a scope, too
    ended_inside_a_scope(f);
  if (f.stack.get() == nullptr) [[likely]] {
    w.count.finished_in_place.add(1);
  } else {
    part_from_stack(w, f);
  }
  w.current.set(nullptr);
  if (f.linked) [[unlikely]]  // also if it never left: a wait may be refused after that
    f.home->unlink_fiber(f);
  const fiber_ops& ops = *f.ops;  // after finish the frame may be another's
  fiber_record& record = *f.record;
  cancel_scope& home = *f.home;
  bool last = false;
  if (how == fiber_end::done) [[likely]] {
    last = f.word.finish(lifecycle::done).last_reference;
  } else {
    last = f.word.finish(lifecycle::cancelled).last_reference;
  }
  ops.retire(record, home, joiner);
  return last;
}

// The fiber's own code: its function, or what is left to do without it; then the destructors of its fiber-locals.
RAMIE_FLATTEN fiber_end run_body(fiber& f, bool wanted) noexcept {
  fiber_record& record = *f.record;
  auto how = fiber_end::cancelled;
  if (wanted) [[likely]] {
    how = f.ops->run(record);
  } else {
    f.ops->discard(record, discard_cause::cancelled);
  }
  if (record.extras != nullptr) [[unlikely]]
    drop_extras(record);
  return how;
}

}  // namespace ramie::detail
