// SPDX-License-Identifier: BSL-1.0
// Where the caller is. Its worker can't be cached across a switch (docs/hazards.md), so the rooms above call
// current_context() once per operation and take all they need from that. Valid until the caller switches.
#pragma once

#include <atomic>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/biased_lock.hpp>

namespace ramie::runtime_internal {

class cancel_scope;
class fiber;
class scheduler;

// A list of things that a room above keeps with a worker, so that taking one needs no lock. Owner only;
// `empty_out` is called for what is left when the runtime ends. Without free slots to begin with: the first one that is
// put there finds the room's slow path, which sets it up.
struct worker_cache {
  platform::owned<void*> first{nullptr};
  platform::owned<std::int32_t> free_slots{0};
  platform::owned<void (*)(worker_cache&) noexcept> empty_out{nullptr};
};

// The part of a fiber's frame that rooms above read and write, only as that fiber.
struct fiber_head {
  cancel_scope* scope = nullptr;                 // innermost
  platform::owned<std::uint64_t> seen_epoch{0};  // of cancellations, when it last checked and was not cancelled
};
[[nodiscard]] inline fiber_head& head_of(fiber& f) noexcept {
  return reinterpret_cast<fiber_head&>(f);  // its first base; frame.hpp asserts it
}

// The part of a worker that rooms above see, only from that worker's thread.
struct worker_local {
  platform::owned<fiber*> current{nullptr};  // null: the scheduler's own code runs
  scheduler* runs_in = nullptr;
  const platform::atomic<std::uint64_t>* cancel_epoch = nullptr;
  platform::owned<const std::uintptr_t*> in_flight{nullptr};  // how many exceptions of the current fiber are
  platform::lock_user lock_user;                              // as which its thread takes locks
  platform::owned<std::uint32_t> budget{0};                   // operations without a wait before a yield (budget.hpp)
  platform::owned<std::uint64_t> rng{0};                      // for random choices; never 0 on a worker
  worker_cache nurseries;
  worker_cache memory;  // for tasks

  worker_local() noexcept = default;
  struct of_no_worker {};
  explicit constexpr worker_local(of_no_worker) noexcept : lock_user{nullptr, 0, 0} {}
};

}  // namespace ramie::runtime_internal

// The only thread-locals that fibers read (this_worker.cpp). Never by name: the compiler would keep their addresses, or
// values, across a switch to another thread. On the thread of a worker they are the same; on a plain thread the first is
// null, and the second has neither a fiber nor anything else.
extern "C" {
extern constinit thread_local ramie::runtime_internal::worker_local* ramie_this_worker_local
    [[gnu::visibility("hidden")]] [[gnu::tls_model("initial-exec")]];
extern constinit thread_local ramie::runtime_internal::worker_local* ramie_this_worker_local_or_none
    [[gnu::visibility("hidden")]] [[gnu::tls_model("initial-exec")]];
}

namespace ramie::runtime_internal {

// Null on a plain thread. Read anew each time: a volatile asm is neither repeated, nor merged with another, nor moved
// across a switch, which is one too. Elsewhere a function that can't be inlined and hides what it returns.
#if defined(__x86_64__) && defined(__linux__)
[[nodiscard, gnu::always_inline]] inline worker_local* this_worker_local() noexcept {
  worker_local* here;
  asm volatile("movq ramie_this_worker_local@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(here));
  return here;
}
// Like this_worker_local, but on a plain thread one whose `current` is null: for paths that need not tell that from
// scheduler code.
[[nodiscard, gnu::always_inline]] inline worker_local& this_worker_local_or_none() noexcept {
  worker_local* here;
  asm volatile("movq ramie_this_worker_local_or_none@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(here));
  return *here;
}
#else
[[nodiscard]] worker_local* this_worker_local() noexcept;
[[nodiscard]] worker_local& this_worker_local_or_none() noexcept;
#endif

struct call_context {
  worker_local* local = nullptr;
  fiber* self = nullptr;  // null: a plain thread, or the scheduler's own code
  [[nodiscard]] cancel_scope*& innermost() const noexcept { return head_of(*self).scope; }
};

[[nodiscard]] inline call_context current_context() noexcept {
  worker_local* const local = this_worker_local();
  return {local, local != nullptr ? local->current.get() : nullptr};
}

}  // namespace ramie::runtime_internal
