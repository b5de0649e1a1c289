// SPDX-License-Identifier: BSL-1.0
// Where the caller is. Looking up the worker of the moment is a call that can't be inlined (docs/hazards.md), so floors
// above look once per operation and take all they need from that. Valid until the caller switches.
#pragma once

#include <atomic>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/biased_lock.hpp>

namespace ramie::detail {

class cancel_scope;
class fiber;
class scheduler;

// A list of things that a floor above keeps with a worker, so that taking one needs no lock. Owner only;
// `empty_out` is called for what is left when the runtime ends. Without room to begin with: the first one that is put
// there finds the floor's slow path, which sets it up.
struct shelf {
  platform::owned<void*> first{nullptr};
  platform::owned<std::uint32_t> room{0};  // for so many more
  platform::owned<void (*)(shelf&) noexcept> empty_out{nullptr};
};

// The part of a fiber's frame that floors above read and write, only as that fiber.
struct fiber_face {
  cancel_scope* scope = nullptr;                 // innermost
  platform::owned<std::uint64_t> seen_epoch{0};  // of cancellations, when it last looked and was not cancelled
};
[[nodiscard]] inline fiber_face& face_of(fiber& f) noexcept {
  return reinterpret_cast<fiber_face&>(f);  // its first base; frame.hpp asserts it
}

// The part of a worker that floors above see, only from that worker's thread.
struct worker_desk {
  platform::owned<fiber*> current{nullptr};  // null: the scheduler's own code runs
  scheduler* runs_in = nullptr;
  const platform::atomic<std::uint64_t>* cancel_epoch = nullptr;
  const std::uintptr_t* in_flight = nullptr;  // how many exceptions of the current fiber are
  platform::lock_party party;                 // as which its thread takes locks
  platform::owned<std::uint32_t> budget{0};   // operations without a wait before somebody else has a turn (budget.hpp)
  platform::owned<std::uint64_t> dice{0};     // for random choices; never 0 on a worker
  shelf nurseries;
  shelf memory;  // for tasks
};

}  // namespace ramie::detail

// The only thread-local that fibers read (this_worker.cpp). Never by name: the compiler would keep its address, or its
// value, across a switch to another thread.
extern "C" {
extern constinit thread_local ramie::detail::worker_desk* ramie_this_desk
    [[gnu::visibility("hidden")]] [[gnu::tls_model("initial-exec")]];
}

namespace ramie::detail {

// Null on a plain thread. Read anew each time: a volatile asm is neither repeated, nor merged with another, nor moved
// across a switch, which is one too. Elsewhere a function that can't be inlined and hides what it returns.
#if defined(__x86_64__) && defined(__linux__)
[[nodiscard, gnu::always_inline]] inline worker_desk* this_desk() noexcept {
  worker_desk* here;
  asm volatile("movq ramie_this_desk@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(here));
  return here;
}
#else
[[nodiscard]] worker_desk* this_desk() noexcept;
#endif

struct whereabouts {
  worker_desk* desk = nullptr;
  fiber* self = nullptr;  // null: a plain thread, or the scheduler's own code
  [[nodiscard]] cancel_scope*& innermost() const noexcept { return face_of(*self).scope; }
};

[[nodiscard]] inline whereabouts look_around() noexcept {
  worker_desk* const desk = this_desk();
  return {desk, desk != nullptr ? desk->current.get() : nullptr};
}

}  // namespace ramie::detail
