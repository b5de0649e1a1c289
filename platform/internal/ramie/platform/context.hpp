// SPDX-License-Identifier: BSL-1.0
// Switching stacks. The jump itself is one of two twin files: jump_x86_64.hpp, inline, or
// jump_fcontext.hpp, Boost's, wherever else (or with -Dcontext=fcontext). Around it go the sanitizers'
// hooks and the C++ exception globals, so that a fiber may be suspended inside a catch block and go on
// on another thread.
//
// Who owns what. A stack_block describes one stack. Where it goes on is a context that is kept in the block or,
// if it is a fiber that is suspended there, in the fiber's frame, which is at hand anyway: one cache line less per
// switch. It is valid exactly while the stack is suspended: it is written by the code that arrives elsewhere, never
// by the one that leaves, because only then are the registers saved. A thread_anchor holds what a switch must know
// about the thread it happens on; the anchor, not thread-local storage, travels with the jump, so arrival needs no
// lookup.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ramie/platform/annotate.hpp>
#include <ramie/platform/atomic.hpp>

#if defined(__x86_64__) && defined(__linux__) && !defined(RAMIE_USE_FCONTEXT)
#include <ramie/platform/jump_x86_64.hpp>
#else
#include <ramie/platform/jump_fcontext.hpp>
#endif

namespace ramie::platform {

// The two words behind __cxa_get_globals(): caught exceptions, and how many are in flight. A stack that is left inside
// a catch block, or while it unwinds, takes them along; so the code that arrives on another stack finds none.
struct exception_globals {
  void* caught;
  std::uintptr_t uncaught;
  [[nodiscard]] bool any() const noexcept { return caught != nullptr || uncaught != 0; }
};

inline constexpr std::uint8_t native_stack_class = 0xff;

struct stack_block {
  context resume_point = nullptr;     // unless a fiber's frame has it
  owned<stack_block*> next{nullptr};  // link in a cache or in the pool
  char* low = nullptr;                // lowest usable byte, just above the guard
  const char* call_floor = nullptr;   // see largest_call
  std::size_t call_span = 0;
  void* region = nullptr;             // where it was carved, and which slot there; of supplied memory: its end
  std::uint32_t slot = 0;
  std::uint8_t size_class = native_stack_class;
  annotate::stack_note note;
};

struct thread_anchor {
  context* left_at = nullptr;  // where to write the resume point of the stack that is left: filled in on arrival
  owned<exception_globals*> exceptions{nullptr};  // of the thread: fibers read it, and a later thread writes it anew
  annotate::thread_note identity;
  owned<std::uint64_t> float_controls{0};  // as the thread started
};

// Fills in what is specific to the calling thread. Call once per thread, on that thread.
void anchor_this_thread(thread_anchor& anchor) noexcept;

// Leaves `from`, the running stack, for `to`, which goes on at `resume`. `on_arrival(anchor)` runs on `to` before
// anything else, as the thread, when the jump lands in a switch_stack: it finishes what could not be done while the old
// stack was in use. Returns when a later switch resumes what was put into `left_at`, with the anchor of the thread that
// is current then.
template <class OnArrival>
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY thread_anchor* switch_stack(thread_anchor* here, stack_block& from,
                                                                  context& left_at, stack_block& to, context resume,
                                                                  OnArrival on_arrival) noexcept {
  exception_globals saved = *here->exceptions.get();
  const bool unwinding = saved.any();
  if (unwinding) [[unlikely]]
    *here->exceptions.get() = {nullptr, 0};
  here->left_at = &left_at;
  annotate::leave(from.note, to.note, here->identity);
  const arrival landed = jump(resume, here);
  here = static_cast<thread_anchor*>(landed.data);
  *here->left_at = landed.from;
  annotate::arrive(from.note);
  if (unwinding) [[unlikely]]
    *here->exceptions.get() = saved;
  on_arrival(here);
  annotate::take_identity(from.note);
  return here;
}

// Like the one above, but the blocks of both stacks keep their resume points.
template <class OnArrival>
RAMIE_FLATTEN RAMIE_SWITCHES_IDENTITY thread_anchor* switch_stack(thread_anchor* here, stack_block& from,
                                                                  stack_block& to, OnArrival on_arrival) noexcept {
  return switch_stack(here, from, from.resume_point, to, to.resume_point, on_arrival);
}

// What switch_stack does on arrival, for a stack that runs for the first time; `self` is its block.
template <class OnArrival>
RAMIE_SWITCHES_IDENTITY inline thread_anchor* first_arrival(arrival landed, stack_block& self,
                                                            OnArrival on_arrival) noexcept {
  auto* here = static_cast<thread_anchor*>(landed.data);
  *here->left_at = landed.from;
  annotate::arrive_first(self.note);
  on_arrival(here);
  return here;
}

}  // namespace ramie::platform
